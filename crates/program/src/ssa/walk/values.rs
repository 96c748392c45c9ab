//! Tracks values within a block, on the operand stack, in locals and in statements.

use std::ops::Range;

use afterimage_ids::{EntityRef, OpId, ValueId};
use wasmparser::{AbstractHeapType, HeapType, Operator, RefType, ValType};

use super::Walk;
use crate::ssa::build::{Variable, Walked};
use crate::ssa::{Effect, Statement, Value, ValueDef};

/// The values that an operator popped.
pub(super) enum Taken {
    Nothing,
    /// A value that is only moved.
    Copy(ValueId),
    /// The operands of a statement.
    Operands(Range<u32>),
}

impl Walk<'_> {
    /// Pops an operator's operands from the stack, before the operator is validated.
    pub(super) fn take(&mut self, operator: &Operator<'_>) -> Option<Taken> {
        Some(match operator {
            Operator::Nop | Operator::AtomicFence => Taken::Nothing,
            Operator::Drop => {
                self.stack.height = self.stack.height.checked_sub(1)?;
                Taken::Nothing
            }
            Operator::LocalGet { local_index } => {
                let ty = self.validator.get_local_type(*local_index)?;
                Taken::Copy(self.read(*local_index, general(ty)))
            }
            Operator::LocalSet { .. } => Taken::Copy(self.pop()?),
            Operator::LocalTee { .. } => {
                let value = self.pop()?;
                self.stack.height += 1;
                Taken::Copy(value)
            }
            _ if is_constant(operator) => Taken::Nothing,
            _ => {
                let taken = match operator {
                    Operator::Br { .. } => 0,
                    Operator::If { .. } | Operator::BrIf { .. } | Operator::BrTable { .. } => 1,
                    _ => operator.operator_arity(&self.validator)?.0,
                };
                let start = self.walked.operands.len();
                for depth in 0..taken {
                    let slot = self.stack.height.checked_sub(1 + depth)?;
                    let value = self.read_slot(slot, depth)?;
                    self.walked.operands.push(value);
                }
                self.walked.operands[start..].reverse();
                self.stack.height -= taken;
                Taken::Operands(start as u32..self.walked.operands.len() as u32)
            }
        })
    }

    /// Defines an operator's results, after the operator was validated.
    pub(super) fn give(&mut self, op: OpId, operator: &Operator<'_>, taken: Taken) -> Option<()> {
        match (operator, taken) {
            (Operator::LocalSet { local_index }, Taken::Copy(value)) => {
                self.write(*local_index, value);
            }
            (Operator::LocalTee { local_index }, Taken::Copy(value)) => {
                self.write(*local_index, value);
            }
            (_, Taken::Copy(value)) => self.push(value),
            (_, Taken::Nothing) if is_constant(operator) => {
                let ty = self.operand_type(0)?;
                let value = Value {
                    ty,
                    def: ValueDef::Constant(op),
                };
                let value = self.walked.values.push(value);
                self.push(value);
            }
            (_, Taken::Nothing) => {}
            (_, Taken::Operands(operands)) => self.statement(op, operator, operands)?,
        }
        Some(())
    }

    fn statement(&mut self, op: OpId, operator: &Operator<'_>, operands: Range<u32>) -> Option<()> {
        let effect = Effect::of(operator);
        let statement = self.walked.statements.next_key();
        let first = self.walked.values.next_key();
        let define = |walked: &mut Walked<'_>, ty, index| {
            walked.values.push(Value {
                ty,
                def: ValueDef::Result { statement, index },
            })
        };
        if let Effect::TailCall(_) = effect {
            // The callee has this function's result types.
            for (index, ty) in self.walked.results.clone().iter().enumerate() {
                define(&mut self.walked, general(*ty), index as u32);
            }
        } else if !matches!(effect, Effect::Control | Effect::Throw | Effect::Trap) {
            // The validator's stack equals this stack, with the results on top.
            let given = self
                .validator
                .operand_stack_height()
                .checked_sub(self.stack.height)?;
            for index in 0..given {
                let ty = self.operand_type(given - 1 - index)?;
                let value = define(&mut self.walked, ty, index);
                self.push(value);
            }
        }
        let results = first..self.walked.values.next_key();
        let block = self.block;
        self.walked.statements.push(Statement {
            op,
            block,
            effect,
            results,
            operands,
        });
        Some(())
    }

    /// Returns the type of an operand, counted from the top of the validator's stack.
    fn operand_type(&self, depth: u32) -> Option<ValType> {
        Some(general(self.validator.get_operand_type(depth as usize)??))
    }

    fn pop(&mut self) -> Option<ValueId> {
        let slot = self.stack.height.checked_sub(1)?;
        let value = self.read_slot(slot, 0)?;
        self.stack.height = slot;
        Some(value)
    }

    fn push(&mut self, value: ValueId) {
        self.write(self.walked.locals + self.stack.height, value);
        self.stack.height += 1;
    }

    fn read_slot(&mut self, slot: u32, depth: u32) -> Option<ValueId> {
        let ty = self.operand_type(depth)?;
        Some(self.read(self.walked.locals + slot, ty))
    }

    fn read(&mut self, variable: Variable, ty: ValType) -> ValueId {
        match self.current.get(variable as usize) {
            Some(&(block, value)) if block == self.block => value,
            _ => {
                let value = self.walked.entry(self.block, variable, ty);
                self.remember(variable, value);
                value
            }
        }
    }

    fn write(&mut self, variable: Variable, value: ValueId) {
        self.remember(variable, value);
        self.written.push(variable);
    }

    fn remember(&mut self, variable: Variable, value: ValueId) {
        let i = variable as usize;
        if i >= self.current.len() {
            // EXIT means "none", because the walk is always in code.
            let none = (self.walked.cfg.graph.exit(), ValueId::new(0));
            self.current.resize(i + 1, none);
        }
        self.current[i] = (self.block, value);
    }

    /// Stores the values that the block wrote, except in slots that it popped again.
    pub(super) fn leave_block(&mut self) {
        let limit = self.walked.locals + self.stack.height;
        self.written.sort_unstable();
        self.written.dedup();
        let current = &self.current;
        self.walked.writes[self.block] = self
            .written
            .drain(..)
            .filter(|variable| *variable < limit)
            .map(|variable| (variable, current[variable as usize].1))
            .collect();
    }
}

/// Whether an operator pushes a constant.
fn is_constant(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::I32Const { .. }
            | Operator::I64Const { .. }
            | Operator::F32Const { .. }
            | Operator::F64Const { .. }
            | Operator::V128Const { .. }
            | Operator::RefNull { .. }
            | Operator::RefFunc { .. }
    )
}

/// Returns a type without the details that only the validator needs, which are the nullability and
/// the exact target type of a reference.
pub(in crate::ssa) fn general(ty: ValType) -> ValType {
    let ValType::Ref(reference) = ty else {
        return ty;
    };
    match reference.heap_type() {
        HeapType::Abstract {
            ty: AbstractHeapType::Extern | AbstractHeapType::NoExtern,
            ..
        } => ValType::EXTERNREF,
        HeapType::Abstract {
            ty: AbstractHeapType::Exn | AbstractHeapType::NoExn,
            ..
        } => ValType::Ref(RefType::EXNREF),
        _ => ValType::FUNCREF,
    }
}
