//! Where an instruction of an execution is, and what it takes.

use afterimage_ids::OpId;
use afterimage_machine::Code;
use afterimage_wet::Source;

use super::{Computed, Move, Operand, Spot, Walk, WhyError};
use crate::values::{Bits, Instance, Kind, Statement, ValuesError, end_of};

impl Walk<'_, '_> {
    /// Where an instruction of an execution is.
    ///
    /// # Errors
    /// If the trace is damaged.
    pub fn spot(&self, instance: Instance, inst: usize) -> Result<Spot, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        let op = compiled.code.insts[inst].op;
        Ok(self.spot_of(instance, op))
    }

    /// Where an operator of an execution is.
    pub fn spot_of(&self, instance: Instance, op: OpId) -> Spot {
        let node = &self.values.path().nodes()[instance.node];
        let function = self.program.function(node.function);
        let block = function.and_then(|function| function.block_of(op));
        let position = node.blocks.iter().position(|&other| Some(other) == block);
        Spot {
            function: node.function,
            op,
            time: instance.time + position.unwrap_or(0) as u64,
            instance,
        }
    }

    /// Where the operator is that an execution ends with.
    ///
    /// # Errors
    /// If the trace is damaged.
    pub fn end_spot(&self, instance: Instance) -> Result<Spot, WhyError> {
        Ok(self.spot_of(instance, end_of(self.values, instance)?))
    }

    /// What an instruction gave.
    pub(super) fn value(&self, computed: Computed) -> Result<Bits, ValuesError> {
        let compiled = self.values.compiled(computed.instance.node)?;
        let register = compiled.code.first_result() + computed.inst as u32;
        self.values.value(computed.instance, register)
    }

    /// Whether an instruction reads memory, from an address that is not a constant of the code.
    pub(super) fn address_computed(&self, how: Move, it: Computed) -> Result<bool, WhyError> {
        if !matches!(how, Move::Load(_)) {
            return Ok(false);
        }
        let compiled = self.values.compiled(it.instance.node)?;
        let address = compiled.code.insts[it.inst].a;
        let source = self.values.source(it.instance, address)?;
        Ok(!matches!(source, Source::Constant(_)))
    }

    /// What an instruction takes.
    pub(super) fn operands(&self, computed: Computed) -> Result<Vec<Operand>, WhyError> {
        let Computed { instance, inst } = computed;
        let compiled = self.values.compiled(instance.node)?;
        let statement = Statement {
            kind: Kind::Inst(inst),
            block: 0,
        };
        let mut operands = statement.operands(&compiled.code);
        // Of a read it is the address that matters.
        if let Code::Load(_) | Code::LoadVector(_) = compiled.code.insts[inst].code {
            operands.truncate(1);
        }
        let mut all = Vec::new();
        for operand in operands {
            let register = operand.register;
            let source = self.values.source(instance, register)?;
            all.push(Operand {
                role: operand.role,
                value: self.values.value(instance, register)?,
                constant: matches!(source, Source::Constant(_)),
                register,
            });
        }
        Ok(all)
    }
}
