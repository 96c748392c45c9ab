//! What statements give: results, stored values, decisions, with their types.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::{Code, NodeEnd};
use afterimage_program::{Program, Ssa};
use wasmparser::ValType;

use super::{Bits, Execution, Kind, RecordedValues, ValuesError};

/// A value of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedValue {
    /// What it is for the statement: "" for its only result.
    pub role: &'static str,
    /// Its type.
    pub ty: ValType,
    /// Its bits.
    pub bits: Bits,
}

/// The types of statements' operands and results. Those of a function are found when it is first asked about.
pub struct Types<'a> {
    program: &'a Program,
    module: &'a [u8],
    known: RefCell<HashMap<FuncId, Option<Rc<Ssa>>>>,
}

impl<'a> Types<'a> {
    /// Those of a program; `module` is what it was parsed from.
    pub fn new(program: &'a Program, module: &'a [u8]) -> Self {
        Self {
            program,
            module,
            known: RefCell::default(),
        }
    }

    /// The statements of a function; `None` if it has none.
    pub fn statements(&self, function: FuncId) -> Option<Rc<Ssa>> {
        let mut known = self.known.borrow_mut();
        let found = known.entry(function).or_insert_with(|| {
            let function = self.program.function(function)?;
            let ssa = Ssa::build(self.program, self.module, function);
            ssa.ok().map(Rc::new)
        });
        found.clone()
    }

    /// The types of a statement's operands, the last one topmost on the stack, and of its results.
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

    /// What an execution gave: the results of an instruction or a call, what was stored, what a branch decided by. Empty for what gives nothing, and for what trapped.
    ///
    /// # Errors
    /// If the trace is damaged or holds too little.
    pub fn given(
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
                let inst = &code.insts[position];
                if let Some(&ty) = results.first() {
                    let register = code.first_result() + position as u32;
                    let bits = match values.value(instance, register) {
                        Ok(bits) => bits,
                        // It was the last thing that the run tried.
                        Err(ValuesError::Trapped | ValuesError::NotExecuted) => {
                            return Ok(Vec::new());
                        }
                        Err(error) => return Err(error),
                    };
                    let role = "";
                    return Ok(vec![TypedValue { role, ty, bits }]);
                }
                match inst.code {
                    Code::Store(_) | Code::StoreVector(_) => operand(1, "stored", inst.b),
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
}
