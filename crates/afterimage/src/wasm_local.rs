//! Reads WebAssembly locals by their names in the name section or by their indices, for functions
//! that the debug information does not describe.

use afterimage_analyses::why::ValType;
use afterimage_ids::FuncId;
use afterimage_program::Names;
use afterimage_replay::state::{
    Activation, Bodies, Evaluated, Occasion, StateError, Unavailable, VariableLocation,
};
use afterimage_replay::values::{Bits, RecordedValues, ValuesError};
use anyhow::Result;

use crate::Session;

/// Finds the local of a function by a name such as `n` or `$n`, or by its index, as in `$3`, if the
/// debug information does not describe the function. A local with this index may not exist.
pub fn wasm_local(session: &Session, names: &Names, function: FuncId, text: &str) -> Option<u32> {
    let text = text.trim();
    let name = text.strip_prefix('$');
    let index = || name?.parse().ok();
    let local = names.find_local(function, name.unwrap_or(text));
    let local = local.or_else(index)?;
    let described = session
        .variables()
        .is_ok_and(|known| known.function(function).is_ok());
    (!described).then_some(local)
}

/// The values of a local at some moments.
pub struct WasmLocal<'w, 'a> {
    pub values: &'w RecordedValues<'a>,
    pub bodies: &'w Bodies<'a>,
    pub local: u32,
}

impl WasmLocal<'_, '_> {
    /// Computes `wanted` from the local's value at each of the moments. The value is missing at
    /// moments where the trace lacks it.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged.
    pub fn at<T>(
        &self,
        occasions: &[Occasion],
        wanted: impl Fn(ValType, Bits) -> T,
    ) -> Result<Vec<Evaluated<T>>> {
        let evaluated = |occasion: &Occasion| {
            let &Occasion { number, time, op } = occasion;
            let activation = Activation::at(self.values, self.bodies, time, op)?;
            let place = VariableLocation::Local(self.local);
            let unknown = || Unavailable::Unknown(place).into();
            let ty = activation.locals().get(self.local as usize);
            let value = match (ty, activation.recorded(self.values, self.local)) {
                (Some(&ty), Ok(bits)) => Ok(wanted(ty, bits)),
                (None, _) | (_, Err(StateError::Values(ValuesError::Outside { .. }))) => {
                    Err(unknown())
                }
                (_, Err(error)) => return Err(error.into()),
            };
            Ok(Evaluated {
                number,
                time,
                function: activation.function,
                value,
            })
        };
        occasions.iter().map(evaluated).collect()
    }
}
