//! Finds the place and the operands of an instruction in an execution.

use afterimage_ids::OpId;
use afterimage_machine::{Code, NodeEnd, Register, Taker};
use afterimage_wet::Source;

use super::{Computed, Move, Operand, Spot, Walk, WhyError};
use afterimage_replay::values::{Bits, Instance, Kind, Statement, ValuesError, end_of};

impl Walk<'_, '_> {
    /// Returns the place of an instruction in an execution.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged.
    pub fn spot(&self, instance: Instance, inst: usize) -> Result<Spot, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        let op = compiled.code.insts[inst].op;
        Ok(self.spot_of(instance, op))
    }

    /// Returns the place of an operator in an execution.
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

    /// Returns the place of the operator that ends an execution.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged.
    pub fn end_spot(&self, instance: Instance) -> Result<Spot, WhyError> {
        Ok(self.spot_of(instance, end_of(self.values, instance)?))
    }

    /// Returns the call in the constant's block that takes the constant as an argument, if any.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged.
    pub fn passed_by(&self, instance: Instance, constant: OpId) -> Result<Option<Spot>, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        let (NodeEnd::Call { arguments, .. } | NodeEnd::TailCall { arguments, .. }) =
            &compiled.code.end
        else {
            return Ok(None);
        };
        let position = compiled.constants.iter().position(|&op| op == constant);
        let register = position.map(|position| compiled.code.variables + position as u32);
        if register.is_none_or(|register| !arguments.contains(&register)) {
            return Ok(None);
        }
        let call = self.end_spot(instance)?;
        Ok(Some(call).filter(|call| call.time == self.spot_of(instance, constant).time))
    }

    /// Whether a function returned the register's value on the value's way to its use.
    pub(super) fn was_returned(
        &self,
        instance: Instance,
        register: Register,
    ) -> Result<bool, WhyError> {
        for (of, taker) in self.values.takers_of(instance, register)? {
            let compiled = self.values.compiled(of.node)?;
            if let (Taker::Given(_), NodeEnd::Return(_)) = (taker, &compiled.code.end) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the value that an instruction produced.
    pub(super) fn value(&self, computed: Computed) -> Result<Bits, ValuesError> {
        let compiled = self.values.compiled(computed.instance.node)?;
        let register = compiled.code.first_result() + computed.inst as u32;
        self.values.value(computed.instance, register)
    }

    /// Whether an instruction reads memory from an address that is not a constant of the code.
    pub(super) fn address_computed(&self, how: Move, it: Computed) -> Result<bool, WhyError> {
        if !matches!(how, Move::Load(_)) {
            return Ok(false);
        }
        let compiled = self.values.compiled(it.instance.node)?;
        let address = compiled.code.insts[it.inst].a;
        let source = self.values.source(it.instance, address)?;
        Ok(!matches!(source, Source::Constant(_)))
    }

    /// Returns the operands of an instruction.
    pub(super) fn operands(&self, computed: Computed) -> Result<Vec<Operand>, WhyError> {
        let Computed { instance, inst } = computed;
        let compiled = self.values.compiled(instance.node)?;
        let statement = Statement {
            kind: Kind::Inst(inst),
            block: 0,
        };
        let mut operands = statement.operands(&compiled.code);
        // For a load, only the address matters. For a copy, only the source address matters.
        match compiled.code.insts[inst].code {
            Code::Load(_) | Code::LoadVector(_) => operands.truncate(1),
            Code::MemoryCopy => operands.retain(|operand| operand.role == "from"),
            _ => {}
        }
        let mut all = Vec::new();
        for operand in operands {
            let register = operand.register;
            let source = self.values.source(instance, register)?;
            all.push(Operand {
                role: operand.role,
                value: self.values.value(instance, register)?,
                constant: matches!(source, Source::Constant(_)),
                elsewhere: false,
                register,
            });
        }
        Ok(all)
    }
}
