//! What slices begin with, from executions of statements and from moments.

use afterimage_machine::{NodeCode, Operand, Range};
use afterimage_slice::{Criterion, Reach, Want};
use afterimage_variables::{Piece, Place};

use crate::state::Activation;
use crate::values::{Execution, Kind};

/// The execution of a statement: what it takes, all of it, and that it was executed. `None` if it is no statement.
pub fn of_execution(execution: &Execution) -> Option<Criterion> {
    let statement = execution.statement?;
    let want = match statement.kind {
        Kind::Inst(inst) => Want::Inst(inst),
        Kind::Call(_) | Kind::Return | Kind::Throw => Want::End,
    };
    Some(Criterion {
        start: execution.instance.time,
        wants: vec![want],
        reach: Reach::ALL,
    })
}

/// One of the values that the execution of a statement takes, by its number from 0. Nothing is wanted of a constant; `None` if there is no such operand.
pub fn of_operand(execution: &Execution, code: &NodeCode, number: usize) -> Option<Criterion> {
    let statement = execution.statement?;
    let operands = statement.operands(code);
    let register = operands.get(number)?.register;
    Some(Criterion {
        start: execution.instance.time,
        wants: want(code.source(register)).into_iter().collect(),
        reach: Reach::ALL,
    })
}

/// Bytes of memory at a moment.
pub fn of_bytes(activation: &Activation<'_>, range: Range) -> Criterion {
    Criterion {
        start: activation.instance.time,
        wants: vec![Want::Bytes(range, activation.instructions())],
        reach: Reach::ALL,
    }
}

/// Bytes of memory when all of the node was executed that a moment is in.
pub fn of_bytes_behind(activation: &Activation<'_>, range: Range) -> Criterion {
    Criterion {
        start: activation.instance.time,
        wants: vec![Want::Bytes(range, usize::MAX)],
        reach: Reach::ALL,
    }
}

/// The places of a variable at a moment.
pub fn of_pieces(activation: &Activation<'_>, pieces: &[Piece]) -> Criterion {
    let behind = activation.instructions();
    let wants = pieces.iter().filter_map(|piece| match piece.place {
        Place::Local(local) => want(activation.source(local)),
        Place::OperandStack(slot) => {
            let (variable, _) = activation.slot(slot)?;
            want(activation.source(variable))
        }
        Place::Global(global) => Some(Want::Global(global, behind)),
        Place::Memory(address) => {
            let length = piece.bytes;
            let memory = 0;
            Some(Want::Bytes(
                Range {
                    memory,
                    address,
                    length,
                },
                behind,
            ))
        }
        Place::Value(_) | Place::OptimisedOut => None,
    });
    Criterion {
        start: activation.instance.time,
        wants: wants.collect(),
        reach: Reach::ALL,
    }
}

fn want(source: Operand) -> Option<Want> {
    match source {
        Operand::Constant(_) => None,
        Operand::Variable(variable) => Some(Want::Variable(variable)),
        Operand::Result(inst) => Some(Want::Inst(inst)),
    }
}
