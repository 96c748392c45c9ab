//! Reads function bodies for the compiler.

use std::sync::Arc;

use afterimage_ids::{EntityRef, FuncId, TypeId};
use afterimage_numeric::{Kind, Vector, VectorLoad};
use afterimage_program::{Callee, Function, FunctionType, Program, Slots};
use wasmparser::{Operator, ValType};

use crate::MachineError;

/// A function, in the form that the compiler needs.
#[derive(Debug)]
pub struct Body<'a> {
    /// The function that has this body.
    pub function: &'a Function,
    /// The operators of the function's body.
    pub operators: Vec<Operator<'a>>,
    /// The function's variables.
    pub slots: Arc<Slots>,
    /// Whether any value may be a vector.
    pub wide: bool,
    /// The number of the function's results.
    results: u32,
}

impl<'a> Body<'a> {
    /// Reads a function's body. Time: O(operators).
    ///
    /// # Errors
    /// Returns an error if `bytes` is not the module from which the program was parsed.
    pub fn read(
        program: &'a Program,
        bytes: &'a [u8],
        function: &'a Function,
    ) -> Result<Self, MachineError> {
        let slots = program.slots(bytes, function)?;
        let operators = program.operators(bytes, function);
        let operators = Vec::from_iter(operators.map(|(_, _, operator)| operator));
        let types = slots.locals.iter().chain(slots.at_start.values().flatten());
        let ty = program.types.get(function.ty);
        let results = ty.map_or(&[][..], |ty| &ty.results);
        let wide = types.chain(results).any(|ty| *ty == ValType::V128)
            || operators.iter().any(|o| gives_vector(program, o));
        let results = results.len() as u32;
        Ok(Self {
            function,
            operators,
            slots,
            wide,
            results,
        })
    }

    /// Returns the number of an activation's variables, which are the variables of [`Slots`] and
    /// room for the results. The room is needed because a handler that is the function's own label
    /// may catch more values than the operand stack ever contains.
    pub fn variables(&self) -> usize {
        let results = self.slots.locals.len() + self.results as usize;
        self.slots.count().max(results)
    }
}

/// Whether an operator may leave a vector on the operand stack that was not one of its operands.
fn gives_vector(program: &Program, operator: &Operator<'_>) -> bool {
    if let Some((vector, _)) = Vector::of(operator) {
        return vector.signature().1 == Kind::Vector;
    }
    match *operator {
        Operator::V128Const { .. } => true,
        Operator::GlobalGet { global_index } => {
            program.globals.get(global_index as usize) == Some(&ValType::V128)
        }
        _ if VectorLoad::of(operator).is_some() => true,
        _ => callee_of(operator)
            .and_then(|(callee, _)| type_of(program, callee))
            .is_some_and(|ty| ty.results.contains(&ValType::V128)),
    }
}

/// Returns the callee of a call, and whether it is a tail call.
pub(super) fn callee_of(operator: &Operator<'_>) -> Option<(Callee, bool)> {
    let indirect = |table, ty| Callee::Indirect {
        table,
        ty: TypeId::from_u32(ty),
    };
    let direct = |function| Callee::Direct(FuncId::from_u32(function));
    Some(match *operator {
        Operator::Call { function_index } => (direct(function_index), false),
        Operator::ReturnCall { function_index } => (direct(function_index), true),
        Operator::CallIndirect {
            type_index,
            table_index,
        } => (indirect(table_index, type_index), false),
        Operator::ReturnCallIndirect {
            type_index,
            table_index,
        } => (indirect(table_index, type_index), true),
        _ => return None,
    })
}

/// Returns the type of a call's callee.
pub(crate) fn type_of(program: &Program, callee: Callee) -> Option<&FunctionType> {
    let ty = match callee {
        Callee::Direct(function) => match program.function(function) {
            Some(function) => function.ty,
            None => program.imports.get(function.index())?.ty,
        },
        Callee::Indirect { ty, .. } => ty,
    };
    program.types.get(ty)
}
