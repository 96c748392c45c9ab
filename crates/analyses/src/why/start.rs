//! Finds the start of a chain, which is a statement's value or one of its operands.

use afterimage_ids::OpId;
use afterimage_machine::{Code, Range};
use afterimage_program::Callee;

use super::{At, Walk, WhyError};
use afterimage_replay::values::{Instance, Kind, Statement};

impl Walk<'_, '_> {
    /// Returns the value of a statement in an execution of its node. This is the value that the
    /// statement computed, read, wrote or returned, or the condition of a branch. Returns `None` if
    /// the statement has no value.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn start(&self, instance: Instance, statement: Statement) -> Result<Option<At>, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        let inst = match statement.kind {
            Kind::Inst(inst) => inst,
            Kind::Call(callee) => {
                return Ok(match self.results(callee) {
                    0 => None,
                    _ => Some(At::Result(instance, 0)),
                });
            }
            Kind::Return | Kind::Throw => {
                let operands = statement.operands(&compiled.code);
                let first = operands.first();
                return Ok(first.map(|operand| At::Register(instance, operand.register)));
            }
        };
        let one = &compiled.code.insts[inst];
        let written = |range| At::Written {
            instance,
            inst,
            range,
        };
        Ok(match one.code {
            code if code.gives() => {
                let register = compiled.code.first_result() + inst as u32;
                Some(At::Register(instance, register))
            }
            Code::Store(_) | Code::StoreVector(_) | Code::MemoryFill | Code::MemoryCopy => {
                let range = self.values.range_written(instance, inst)?;
                // An empty range has no origin.
                range.filter(|range| range.length > 0).map(written)
            }
            Code::GlobalSet => Some(written(Range {
                memory: 0,
                address: 0,
                length: 0,
            })),
            Code::Branch(_) => Some(At::Register(instance, one.a)),
            _ => None,
        })
    }

    /// Returns the statement of an operator in an execution of its node. Returns `None` if the
    /// operator is not a statement in that node.
    pub fn statement(&self, instance: Instance, op: OpId) -> Result<Option<Statement>, WhyError> {
        let node = &self.values.path().nodes()[instance.node];
        let function = self.program.function(node.function);
        let block = function.and_then(|function| function.block_of(op));
        let position = node.blocks.iter().position(|&other| Some(other) == block);
        let Some(position) = position else {
            return Ok(None);
        };
        let compiled = self.values.compiled(instance.node)?;
        let last = position + 1 == node.blocks.len();
        let position = position as u64;
        Ok(Statement::find(
            self.program,
            &compiled.code,
            position,
            op,
            last,
        ))
    }

    /// Returns the offset that a load, store, wait or notify adds to its address. Returns `None` if
    /// the offset is 0, and for other operators.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged.
    pub fn offset(&self, instance: Instance, op: OpId) -> Result<Option<u64>, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        let one = compiled.code.inst_of(op);
        let one = one.map(|inst| &compiled.code.insts[inst]);
        let accesses = |code| {
            matches!(
                code,
                Code::Load(_)
                    | Code::Store(_)
                    | Code::LoadVector(_)
                    | Code::StoreVector(_)
                    | Code::Wait(_)
                    | Code::Notify
            )
        };
        Ok(one
            .filter(|one| accesses(one.code) && one.immediate > 0)
            .map(|one| one.immediate))
    }

    fn results(&self, callee: Callee) -> usize {
        let ty = match callee {
            Callee::Direct(function) => match self.program.function(function) {
                Some(function) => Some(function.ty),
                None => {
                    let import = self.program.imports.get(function.as_u32() as usize);
                    import.map(|import| import.ty)
                }
            },
            Callee::Indirect { ty, .. } => Some(ty),
        };
        let ty = ty.and_then(|ty| self.program.types.get(ty));
        ty.map_or(0, |ty| ty.results.len())
    }
}
