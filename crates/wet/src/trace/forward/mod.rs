//! Follows values forward, to find the uses of an execution's results.
//!
//! This search is the exact reverse of [`WholeTrace::source`], [`WholeTrace::reading`],
//! [`WholeTrace::copied`] and [`WholeTrace::taken`]. An execution uses a definition if one of these
//! functions, called for the execution, returns the definition. Variables are followed along the
//! path, because the trace has no data about them ([`Holders`]). Uses of memory and globals are
//! searched for in the labels of later executions ([`Readers`]). Uses of tables and sizes are found
//! along the path ([`Takers`]).

mod far;
mod held;
mod landing;
mod readers;
mod takers;

use afterimage_wpp::Segments;

pub use held::{Held, Holders, HoldersMark};
pub use readers::{ReadBy, Readers};
pub use takers::{TakenBy, Takers};

use super::places::sets;
use super::{Compiled, Epochs, Failure, Instance, TraceError, WholeTrace};
use crate::epoch::Target;

/// A definition that later executions may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definition {
    /// The result of an instruction.
    Result {
        /// The execution of the instruction's node.
        instance: Instance,
        /// The instruction's position.
        inst: usize,
    },
    /// A value that an instruction wrote to a memory or a global, or set in a table.
    Write {
        /// The execution of the instruction's node.
        instance: Instance,
        /// The instruction's position.
        inst: usize,
    },
    /// The effects at the end of an execution. For a call, these are its results and the host's
    /// writes in it. For a throw, this is the reference to the exception. For a rethrow, it also
    /// includes all values of the exception.
    After {
        /// The execution that ends with the call or the throw.
        instance: Instance,
    },
}

impl Definition {
    /// Returns the execution of the node.
    pub fn instance(&self) -> Instance {
        match *self {
            Self::Result { instance, .. }
            | Self::Write { instance, .. }
            | Self::After { instance } => instance,
        }
    }
}

impl<'a, S: Segments, E: Epochs> WholeTrace<'a, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Returns the executions that begin while variables hold the defined value, in order of time.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn holders(&self, definition: Definition) -> Result<Holders<'_, 'a, S, E>, Failure<S, E>> {
        Holders::new(self, definition)
    }

    /// Returns the executions that used a value after it was set in a table or as a size, in order
    /// of time.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn takers(&self, definition: Definition) -> Result<Takers<'_, 'a, S, E>, Failure<S, E>> {
        Takers::new(self, definition)
    }

    /// Returns the executions that read a value that was written to a memory or a global, in order
    /// of time.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn readers(&self, definition: Definition) -> Result<Readers<'_, 'a, S, E>, Failure<S, E>> {
        let sought = match definition {
            Definition::Result { .. } => None,
            Definition::Write { instance, inst } => {
                let compiled = self.compiled(instance.node)?;
                let write = compiled.model.ordinal(inst);
                let write = write.filter(|&write| {
                    let write = compiled.model.writes.get(write);
                    write.is_some_and(|write| write.inst as usize == inst)
                });
                if write.is_none() && sets_elsewhere(&compiled, inst) {
                    return Ok(Readers::new(self, instance, None));
                }
                let write = write.ok_or(TraceError::Damaged("a write that does not exist"))?;
                let target = Target::Write {
                    node: instance.node,
                    write: write as u32,
                };
                Some((target, instance.number))
            }
            Definition::After { instance } => {
                let call = self.host_call(instance)?;
                call.map(|call| (Target::Host, call))
            }
        };
        Ok(Readers::new(self, definition.instance(), sought))
    }
}

/// Whether an instruction sets a table's element or a size.
fn sets_elsewhere(compiled: &Compiled, inst: usize) -> bool {
    let inst = compiled.code.insts.get(inst);
    inst.is_some_and(|inst| sets(inst).next().is_some())
}
