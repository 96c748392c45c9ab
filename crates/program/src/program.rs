//! The parsed form of a whole module.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use afterimage_ids::{EntitySet, FuncId, OpId, OrigOffset, PrimaryMap, TypeId};
use wasmparser::{ValType, ValidatorResources};

use crate::{Cfg, ParseError, Slots};

/// A module, parsed and validated.
#[derive(Debug)]
pub struct Program {
    /// The function types, by index.
    pub types: PrimaryMap<TypeId, FunctionType>,
    /// The imported functions, in order. Their positions are their [`FuncId`]s.
    pub imports: Vec<Import>,
    /// The defined functions, in code-section order. The `FuncId` of the first defined function
    /// follows the `FuncId` of the last import.
    pub functions: Vec<Function>,
    /// The exported functions with their names, in the order of the export section.
    pub exports: Vec<(String, FuncId)>,
    /// The start function, if the module has one.
    pub start: Option<FuncId>,
    /// The functions to which a table or a reference may refer. An element segment or a `ref.func`
    /// names these functions. Exports also count if a table or a global of a reference type is
    /// exported, or if an import returns a reference.
    pub address_taken: EntitySet<FuncId>,
    /// The number of memories.
    pub memories: u32,
    /// The types of the globals, by index.
    pub globals: Vec<ValType>,
    /// The types of the exception tags, by index. The parameters of the type are the values of an
    /// exception.
    pub tags: Vec<TypeId>,
    /// The number of tables.
    pub tables: u32,
    /// The validator's data about the module.
    pub(crate) resources: Resources,
    /// The variables of the functions for which they have been requested.
    pub(crate) slots: Mutex<HashMap<FuncId, Arc<Slots>>>,
}

/// The validator's view of a module, or `None` if the module defines no function.
#[derive(Clone, Debug)]
pub(crate) struct Resources(pub(crate) Option<ValidatorResources>);

/// A function type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionType {
    /// The types of the parameters.
    pub params: Box<[ValType]>,
    /// The types of the results.
    pub results: Box<[ValType]>,
}

/// A function that the module imports.
#[derive(Clone, Debug)]
pub struct Import {
    /// The name of the module.
    pub module: String,
    /// The name of the field.
    pub name: String,
    /// The type of the function.
    pub ty: TypeId,
}

/// A function that the module defines.
#[derive(Clone, Debug)]
pub struct Function {
    /// The function's index in the module's index space.
    pub id: FuncId,
    /// The index of the function's type.
    pub ty: TypeId,
    /// The function's body in the code section, including locals.
    pub body: Range<OrigOffset>,
    /// The number of operators in the body, including the last `end`.
    pub operators: u32,
    /// Whether an exception can leave the function. The function itself may throw it, or a function
    /// that it calls or tail-calls. The analysis errs towards yes, because it ignores the tags of
    /// handlers, and includes unreachable code.
    pub may_throw: bool,
    /// The operators that access bytes outside a memory at every address, because their offset
    /// alone exceeds the memory.
    pub out_of_bounds: Box<[OpId]>,
    /// The operators that wait at an address of a memory, or wake waiters there.
    pub waits: Box<[OpId]>,
    /// The control-flow graph of the function.
    pub cfg: Cfg,
}

/// Writes a type as `(i32, i64) -> f64`. Several results are in parentheses, and a function without
/// results has `()`.
impl fmt::Display for FunctionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |types: &[ValType]| {
            let types = types.iter().map(ToString::to_string);
            Vec::from_iter(types).join(", ")
        };
        write!(f, "({}) -> ", list(&self.params))?;
        match &self.results[..] {
            [one] => write!(f, "{one}"),
            results => write!(f, "({})", list(results)),
        }
    }
}

impl Program {
    /// Returns the type of a function, imported or defined.
    pub fn type_of(&self, id: FuncId) -> Option<&FunctionType> {
        let import = self
            .imports
            .get(id.as_u32() as usize)
            .map(|import| import.ty);
        let ty = import.or_else(|| self.function(id).map(|function| function.ty));
        ty.and_then(|ty| self.types.get(ty))
    }

    /// Returns the defined function with this index, or `None` for an import or an index beyond the
    /// last.
    pub fn function(&self, id: FuncId) -> Option<&Function> {
        let first = self.imports.len();
        (id.as_u32() as usize)
            .checked_sub(first)
            .and_then(|i| self.functions.get(i))
    }

    /// Returns the variables of a function of this program. `bytes` is the module from which the
    /// program was parsed. The first call for a function takes as long as [`Slots::build`].
    ///
    /// # Errors
    /// Returns an error if `bytes` is not that module.
    pub fn slots(&self, bytes: &[u8], function: &Function) -> Result<Arc<Slots>, ParseError> {
        let known = || self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = known().get(&function.id) {
            return Ok(Arc::clone(slots));
        }
        let slots = Arc::new(Slots::build(self, bytes, function)?);
        known().insert(function.id, Arc::clone(&slots));
        Ok(slots)
    }
}
