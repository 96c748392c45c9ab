//! Finds the ranges and values that instructions write to memory.
//!
//! An instruction is identified by its position in the node, never by a register. Other code of the
//! same node ([`compile`](afterimage_machine::compile())) has the same positions, but different
//! registers.

use afterimage_machine::{Inst, Range};
use afterimage_wpp::Segments;

use super::evaluate::{Bits, ComputedValues};
use super::{Compiled, Epochs, Failure, Instance, TraceError, WholeTrace};
use crate::model::{WriteTo, write_to};

impl<S: Segments, E: Epochs> WholeTrace<'_, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Returns the range of memory that an instruction of an execution writes. Returns `None` if
    /// the instruction does not write to memory, or would write beyond all addresses.
    ///
    /// # Errors
    /// Returns an error if the node has no such instruction, and the errors of
    /// [`value`](Self::value).
    pub fn range_written(
        &self,
        instance: Instance,
        position: usize,
    ) -> Result<Option<Range>, Failure<S, E>> {
        self.range_written_knowing(instance, position, &mut ComputedValues::default())
    }

    /// Works like [`range_written`](Self::range_written), but for one of several related ranges, as
    /// with [`value_knowing`](Self::value_knowing).
    ///
    /// # Errors
    /// Returns the errors of [`range_written`](Self::range_written).
    pub fn range_written_knowing(
        &self,
        instance: Instance,
        position: usize,
        known: &mut ComputedValues,
    ) -> Result<Option<Range>, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let inst = inst(&compiled, position)?;
        let length = match write_to(inst.code) {
            None | Some(WriteTo::Global) => return Ok(None),
            // The instruction itself determines the length.
            Some(WriteTo::Memory(_)) => 0,
            Some(WriteTo::Many | WriteTo::Copy) => self.value_knowing(instance, inst.c, known)?.0,
        };
        let (base, _) = self.value_knowing(instance, inst.a, known)?;
        Ok(inst.accesses([base, 0, length]).written)
    }

    /// Returns the value that a store of an execution wrote. An integer contains only the written
    /// bytes. Returns `None` if the instruction is not a store.
    ///
    /// # Errors
    /// Returns the errors of [`range_written`](Self::range_written).
    pub fn stored(
        &self,
        instance: Instance,
        position: usize,
    ) -> Result<Option<Bits>, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let inst = inst(&compiled, position)?;
        match write_to(inst.code) {
            Some(WriteTo::Memory(_)) => {
                let bits = self.value(instance, inst.b)?;
                Ok(Some(inst.stored(bits)))
            }
            _ => Ok(None),
        }
    }
}

fn inst<P, E>(compiled: &Compiled, position: usize) -> Result<&Inst, TraceError<P, E>>
where
    P: std::error::Error + 'static,
    E: std::error::Error + 'static,
{
    let missing = TraceError::Damaged("an instruction that does not exist");
    compiled.code.insts.get(position).ok_or(missing)
}
