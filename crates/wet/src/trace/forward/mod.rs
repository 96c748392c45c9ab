//! The way forward: who used what an execution made.
//!
//! It is the exact reverse of [`WholeTrace::source`], [`WholeTrace::reading`] and [`WholeTrace::copied`]: an execution uses a definition if
//! these name it. So it is of [`WholeTrace::taken`]: [`Takers`] are found along the path. Variables are followed along the path, as nothing is stored of them ([`Holders`]); what was written to memory and
//! globals is looked for in the labels of what was executed later ([`Readers`]).

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

/// What may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definition {
    /// The result of an instruction.
    Result {
        /// The execution of its node.
        instance: Instance,
        /// Its position.
        inst: usize,
    },
    /// What an instruction wrote to a memory or a global, or set in a table.
    Write {
        /// The execution of its node.
        instance: Instance,
        /// Its position.
        inst: usize,
    },
    /// What came after an execution: the results of the call that it ends with, whoever made them; what the host wrote in that call; of a throw, the reference to the
    /// exception; of one that throws again, all that it carries, too.
    After {
        /// The execution.
        instance: Instance,
    },
}

impl Definition {
    /// The execution of the node.
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
    /// The executions that begin while variables hold what was defined, in the order of time.
    ///
    /// # Errors
    /// If the trace is damaged or holds too little.
    pub fn holders(&self, definition: Definition) -> Result<Holders<'_, 'a, S, E>, Failure<S, E>> {
        Holders::new(self, definition)
    }

    /// The executions that took what was set in tables, or as a size, in the order of time.
    ///
    /// # Errors
    /// If the trace is damaged or holds too little.
    pub fn takers(&self, definition: Definition) -> Result<Takers<'_, 'a, S, E>, Failure<S, E>> {
        Takers::new(self, definition)
    }

    /// The executions that read what was written to memories or globals, in the order of time.
    ///
    /// # Errors
    /// If the trace is damaged or holds too little.
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
                let write = write.ok_or(TraceError::Damaged("a write that is not there"))?;
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

/// Whether an instruction sets something in a table, or a size.
fn sets_elsewhere(compiled: &Compiled, inst: usize) -> bool {
    let inst = compiled.code.insts.get(inst);
    inst.is_some_and(|inst| sets(inst).next().is_some())
}
