//! Finds the results of statements, which are typed values, stored values, and decisions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::{Accesses, Code, NodeEnd};
use afterimage_program::{Program, Ssa, ValueDef};
use wasmparser::ValType;

use afterimage_wet::ComputedValues;

use super::{Bits, Execution, Kind, RecordedValues, Statement, ValuesError};

/// A value of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedValue {
    /// The value's role in the statement, or empty for a result.
    pub role: &'static str,
    /// The type of the value.
    pub ty: ValType,
    /// The bits of the value.
    pub bits: Bits,
}

/// The effect of a statement's execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The values that the execution gave ([`Types::results_of`]). For a call, its arguments come
    /// first. If the execution had no result, or trapped, these are its operands, except addresses
    /// and lengths, which are in `accesses`. For a store that trapped, this is the value that it
    /// would have written.
    pub values: Vec<TypedValue>,
    /// The memory that the execution read and wrote. If it trapped, this is the memory that it
    /// would have read and written.
    pub accesses: Accesses,
    /// Whether the execution trapped. If so, it had no effect.
    pub trapped: bool,
}

/// The types of statements' operands and results. The types of a function are computed on first
/// use.
pub struct Types<'a> {
    program: &'a Program,
    module: &'a [u8],
    known: RefCell<HashMap<FuncId, Option<Rc<Ssa>>>>,
}

impl<'a> Types<'a> {
    /// Creates an index of the types of a program. `module` contains the bytes from which the
    /// program was parsed.
    pub fn new(program: &'a Program, module: &'a [u8]) -> Self {
        Self {
            program,
            module,
            known: RefCell::default(),
        }
    }

    /// Returns the statements of a function, or `None` if there is no such function or its body
    /// cannot be read.
    pub fn statements(&self, function: FuncId) -> Option<Rc<Ssa>> {
        let mut known = self.known.borrow_mut();
        let found = known.entry(function).or_insert_with(|| {
            let function = self.program.function(function)?;
            let ssa = Ssa::build(self.program, self.module, function);
            ssa.ok().map(Rc::new)
        });
        found.clone()
    }

    /// Returns the types of a statement's operands, the topmost of the stack last, and the types of
    /// its results.
    pub fn of(&self, function: FuncId, op: OpId) -> Option<(Vec<ValType>, Vec<ValType>)> {
        let ssa = self.statements(function)?;
        let statement = ssa.statement_at(op)?;
        let operands = ssa.operands(statement).iter();
        let operands = operands.map(|&value| ssa.values[value].ty).collect();
        let results = ssa.statements[statement].results.clone();
        let results = (results.start.as_u32()..results.end.as_u32())
            .map(|value| ssa.values[afterimage_ids::ValueId::from_u32(value)].ty);
        Some((operands, results.collect()))
    }

    /// Returns the type of a constant. O(values of its function).
    pub fn constant(&self, function: FuncId, op: OpId) -> Option<ValType> {
        let ssa = self.statements(function)?;
        let mut values = ssa.values.values();
        let found = values.find(|value| value.def == ValueDef::Constant(op))?;
        Some(found.ty)
    }

    /// Returns the results of an instruction or a call, the value of a store or a `global.set`, the
    /// condition of a branch, or the values of a return. The list is empty if the execution gave no
    /// value, or trapped.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or lacks the required data.
    pub fn results_of(
        &self,
        values: &RecordedValues<'_>,
        execution: &Execution,
        op: OpId,
    ) -> Result<Vec<TypedValue>, ValuesError> {
        let instance = execution.instance;
        let compiled = values.compiled(instance.node)?;
        let code = &compiled.code;
        let (Some(statement), Some((operands, results))) =
            (execution.statement, self.of(code.function, op))
        else {
            return Ok(Vec::new());
        };
        let operand = |position: usize, role, register| -> Result<Vec<TypedValue>, ValuesError> {
            let Some(&ty) = operands.get(position) else {
                return Ok(Vec::new());
            };
            let bits = values.value(instance, register)?;
            Ok(vec![TypedValue { role, ty, bits }])
        };
        match statement.kind {
            Kind::Inst(position) => {
                if is_beyond(values, execution, position)? {
                    return Ok(Vec::new());
                }
                let inst = &code.insts[position];
                if let Some(&ty) = results.first() {
                    let register = code.first_result() + position as u32;
                    let bits = values.value(instance, register)?;
                    let role = "";
                    return Ok(vec![TypedValue { role, ty, bits }]);
                }
                match inst.code {
                    Code::Store(_) | Code::StoreVector(_) => {
                        let mut given = operand(1, "stored", inst.b)?;
                        for value in &mut given {
                            value.bits = inst.stored(value.bits);
                        }
                        Ok(given)
                    }
                    Code::GlobalSet => operand(0, "set", inst.a),
                    Code::Branch(_) => operand(operands.len() - 1, "decided by", inst.a),
                    _ => Ok(Vec::new()),
                }
            }
            Kind::Call(_) => {
                let mut given = Vec::new();
                for (index, &ty) in (0..).zip(&results) {
                    if let Some(bits) = values.result(instance, index)? {
                        let role = "";
                        given.push(TypedValue { role, ty, bits });
                    }
                }
                Ok(given)
            }
            Kind::Return => {
                let NodeEnd::Return(registers) = &code.end else {
                    return Ok(Vec::new());
                };
                let mut given = Vec::new();
                for (position, &register) in registers.iter().enumerate() {
                    given.extend(operand(position, "returned", register)?);
                }
                Ok(given)
            }
            Kind::Throw => Ok(Vec::new()),
        }
    }

    /// Returns the results and the memory accesses of an execution. For a call, or an execution
    /// without results, also returns the values that the execution took.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or lacks the required data.
    pub fn effect(
        &self,
        values: &RecordedValues<'_>,
        execution: &Execution,
        op: OpId,
    ) -> Result<Effect, ValuesError> {
        let instance = execution.instance;
        let compiled = values.compiled(instance.node)?;
        let code = &compiled.code;
        let Some(statement) = execution.statement else {
            return Ok(Effect::default());
        };
        let mut effect = Effect {
            values: self.results_of(values, execution, op)?,
            ..Effect::default()
        };
        let mut known = ComputedValues::default();
        if let Kind::Inst(position) = statement.kind {
            effect.trapped = is_beyond(values, execution, position)?;
            let inst = &code.insts[position];
            let takes = inst.accesses([0; 3]);
            if takes != Accesses::default() {
                let mut operands = [0; 3];
                let registers = [inst.a, inst.b, inst.c];
                let registers = registers.into_iter().take(inst.code.operands());
                for (operand, register) in operands.iter_mut().zip(registers) {
                    *operand = values.value_knowing(instance, register, &mut known)?.0;
                }
                effect.accesses = inst.accesses(operands);
            }
        }
        if effect.values.is_empty() || matches!(statement.kind, Kind::Call(_)) {
            let given = std::mem::take(&mut effect.values);
            effect.values = self.taken(values, execution, statement, op, &mut known)?;
            // The results come after the operands, with the role "returned".
            let role = if effect.values.is_empty() {
                ""
            } else {
                "returned"
            };
            let given = given.into_iter().map(|value| TypedValue { role, ..value });
            effect.values.extend(given);
        }
        Ok(effect)
    }

    /// Returns the values that an execution took, except addresses and lengths of memory.
    fn taken(
        &self,
        values: &RecordedValues<'_>,
        execution: &Execution,
        statement: Statement,
        op: OpId,
        known: &mut ComputedValues,
    ) -> Result<Vec<TypedValue>, ValuesError> {
        let instance = execution.instance;
        let compiled = values.compiled(instance.node)?;
        let code = &compiled.code;
        let (types, _) = self.of(code.function, op).unwrap_or_default();
        let inst = match statement.kind {
            Kind::Inst(position) => code.insts.get(position),
            _ => None,
        };
        let mut taken = Vec::new();
        for (operand, ty) in statement.operands(code).into_iter().zip(types) {
            let is_store = matches!(
                inst.map(|inst| inst.code),
                Some(Code::Store(_) | Code::StoreVector(_))
            );
            let role = match (inst.map(|inst| inst.code), operand.role) {
                // The accesses already contain these operands.
                (
                    Some(
                        Code::Load(_) | Code::LoadVector(_) | Code::Store(_) | Code::StoreVector(_),
                    ),
                    "address" | "base address",
                )
                | (Some(Code::MemoryCopy | Code::MemoryFill | Code::MemoryInit), "to" | "length")
                | (Some(Code::MemoryCopy), "from") => continue,
                (Some(Code::MemoryFill), _) => "byte",
                (Some(Code::MemoryInit), _) => "from byte",
                (_, role) => role,
            };
            let mut bits = values.value_knowing(instance, operand.register, known)?;
            match inst {
                Some(inst) if is_store => bits = inst.stored(bits),
                Some(inst) if inst.code == Code::MemoryFill => bits.0 &= 0xff,
                _ => {}
            }
            taken.push(TypedValue { role, ty, bits });
        }
        Ok(taken)
    }
}

/// Whether the run ended before this instruction was complete.
fn is_beyond(
    values: &RecordedValues<'_>,
    execution: &Execution,
    position: usize,
) -> Result<bool, ValuesError> {
    let stopped = values.stopped(execution.instance)?;
    Ok(stopped.is_some_and(|executed| position as u64 >= executed))
}
