//! Finds earlier writers for the reads of a stretch that was built alone, by searching the
//! preceding stretches.

use afterimage_ids::{FuncId, NodeId};
use afterimage_machine::Range;
use afterimage_wpp::Segments;

use super::{Epochs, Failure, Instance, Reading, TraceError, WholeTrace, Writer};
use crate::def::Origin;
use crate::epoch::Execution;
use crate::model::WriteTo;

/// A byte of memory or a global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageCell {
    /// A byte of a memory.
    Byte {
        /// The memory that contains the byte.
        memory: u32,
        /// The address of the byte.
        address: u64,
    },
    /// A global, by its index.
    Global(u32),
}

/// A variable of an activation that was open when a stretch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableBefore {
    /// The number of the stretch's epoch.
    pub position: usize,
    /// The number of the open activation, counted from the outermost.
    pub activation: usize,
    /// The function of the activation.
    pub function: FuncId,
    /// The variable, by its number in the function.
    pub variable: u32,
    /// Whether the variable is a result of the call for which the activation waited when the
    /// stretch began.
    pub is_given: bool,
}

/// The writer of a variable. If nothing wrote the variable, this is the beginning of its
/// activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinedBy {
    /// An execution of a node, by its number.
    Execution(NodeId, u64),
    /// The execution that contains this block.
    At(u64),
}

impl<S: Segments, E: Epochs> WholeTrace<'_, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Returns the writer that an epoch names in an execution's data, or `None` if the write came
    /// before the epoch's stretch.
    pub(super) fn writer(
        &self,
        origin: Origin,
        execution: Execution,
        at: Instance,
    ) -> Result<Option<Writer>, Failure<S, E>> {
        Ok(Some(match origin {
            Origin::Before => return Ok(None),
            Origin::Initial => Writer::Initial,
            Origin::Host => Writer::Host {
                call: match execution {
                    Execution::Number(call) | Execution::Ago(call) => call,
                },
            },
            Origin::Write {
                node,
                write,
                offset,
            } => {
                let instance = self.named(node, execution, at.time)?;
                let writer = self.compiled(node)?;
                let write = writer.model.writes.get(write as usize);
                let write = write.ok_or(TraceError::Damaged("a write that does not exist"))?;
                Writer::Write {
                    instance,
                    inst: write.inst as usize,
                    offset,
                }
            }
        }))
    }

    /// Returns the last writer of a place before the stretch of an execution, if the stretch was
    /// built alone. Returns [`Writer::Initial`] if there is none.
    ///
    /// # Errors
    /// Returns an error if an earlier stretch cannot be built, or is damaged.
    pub fn writer_before(&self, at: Instance, place: StorageCell) -> Result<Writer, Failure<S, E>> {
        let position = self.position(at.time)?;
        let found = self.epochs.written_before(position, place);
        let Some((origin, execution)) = found.map_err(TraceError::Epoch)? else {
            return Ok(Writer::Initial);
        };
        let writer = self.writer(origin, Execution::Number(execution), at)?;
        writer.ok_or(TraceError::Damaged("an unknown writer"))
    }

    /// Works like [`writer_before`](Self::writer_before), but finds the writers of several bytes,
    /// part by part.
    pub(super) fn readings_before(
        &self,
        at: Instance,
        range: Range,
        readings: &mut Vec<Reading>,
    ) -> Result<(), Failure<S, E>> {
        let first = readings.len();
        for i in 0..range.length {
            let memory = range.memory;
            let address = range.address.wrapping_add(i);
            let writer = self.writer_before(at, StorageCell::Byte { memory, address })?;
            match readings[first..].last_mut() {
                Some(last) if self.follows(last.writer, last.length)? == writer => {
                    last.length += 1;
                }
                _ => readings.push(Reading { length: 1, writer }),
            }
        }
        Ok(())
    }

    /// Returns the writer of the byte that lies `bytes` bytes further on. `writer` must have
    /// written both bytes together.
    fn follows(&self, writer: Writer, bytes: u64) -> Result<Writer, Failure<S, E>> {
        let Writer::Write {
            instance,
            inst,
            offset,
        } = writer
        else {
            return Ok(writer);
        };
        let compiled = self.compiled(instance.node)?;
        let ordinal = compiled.model.ordinal(inst);
        let write = ordinal.and_then(|ordinal| compiled.model.writes.get(ordinal));
        let offset = match write.map(|write| write.to) {
            Some(WriteTo::Memory(_)) => offset.wrapping_add(bytes as u8),
            _ => offset,
        };
        Ok(Writer::Write {
            instance,
            inst,
            offset,
        })
    }
}
