//! Makes slice criteria from executions of statements and from moments.

use afterimage_machine::{NodeCode, Operand, Range, Taker};
use afterimage_slice::{Criterion, Reach, Want};
use afterimage_variables::{Piece, VariableLocation};

use afterimage_replay::state::Activation;
use afterimage_replay::values::{Execution, Kind};

/// Returns the criterion for the execution of a statement, which covers all of its operands and the
/// fact that it was executed. Returns `None` if the executed operator is not a statement.
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

/// Returns the criterion for one operand of a statement's execution, by its number from 0. For a
/// constant, the criterion covers only the blocks through which it was moved. Returns `None` if
/// there is no such operand.
pub fn of_operand(execution: &Execution, code: &NodeCode, number: usize) -> Option<Criterion> {
    let statement = execution.statement?;
    let operands = statement.operands(code);
    let register = operands.get(number)?.register;
    let taker = statement.taker(code, number);
    let wants = want(code.source(register)).into_iter();
    Some(Criterion {
        start: execution.instance.time,
        wants: wants.chain(moved(code, taker)).collect(),
        reach: Reach::ALL,
    })
}

/// Returns all criteria that a question about an execution may have: all operands, one operand, or
/// only the fact that it was reached.
pub(super) fn all_of(execution: &Execution, code: &NodeCode) -> impl Iterator<Item = Vec<Want>> {
    let statement = execution.statement;
    let operands = statement.map_or(0, |statement| statement.operands(code).len());
    let of_operands = (0..operands).filter_map(|number| of_operand(execution, code, number));
    let block = (execution.time - execution.instance.time) as usize;
    let all = of_execution(execution).into_iter().chain(of_operands);
    all.map(|criterion| criterion.wants)
        .chain([vec![Want::Block(block)]])
}

/// Returns the criterion for bytes of memory at a moment.
pub fn of_bytes(activation: &Activation<'_>, range: Range) -> Criterion {
    Criterion {
        start: activation.instance.time,
        wants: vec![Want::Bytes(range, activation.instructions())],
        reach: Reach::ALL,
    }
}

/// Returns the criterion for bytes of memory at the end of the node that contains a moment.
pub fn of_bytes_behind(activation: &Activation<'_>, range: Range) -> Criterion {
    Criterion {
        start: activation.instance.time,
        wants: vec![Want::Bytes(range, usize::MAX)],
        reach: Reach::ALL,
    }
}

/// Returns the criterion for a variable's places in memory and globals, after the variable's
/// function has ended. The criterion applies to the end of the node that contains a moment.
pub fn of_pieces_behind(activation: &Activation<'_>, pieces: &[Piece]) -> Criterion {
    let lasting = |piece: &&Piece| {
        matches!(
            piece.place,
            VariableLocation::Global(_) | VariableLocation::Memory(_)
        )
    };
    let lasting = Vec::from_iter(pieces.iter().filter(lasting).cloned());
    of_pieces_after(activation, &lasting, usize::MAX)
}

/// Returns the criterion for the places of a variable at a moment.
pub fn of_pieces(activation: &Activation<'_>, pieces: &[Piece]) -> Criterion {
    of_pieces_after(activation, pieces, activation.instructions())
}

fn of_pieces_after(activation: &Activation<'_>, pieces: &[Piece], behind: usize) -> Criterion {
    let held = |variable| want(activation.source(variable));
    let variable = |piece: &Piece| match piece.place {
        VariableLocation::Local(local) => Some(local),
        VariableLocation::OperandStack(slot) => activation.slot(slot).map(|(variable, _)| variable),
        _ => None,
    };
    let variables = pieces.iter().filter_map(variable);
    let blocks = variables.flat_map(|variable| activation.moved(variable));
    let wants = pieces.iter().filter_map(|piece| match piece.place {
        VariableLocation::Local(_) | VariableLocation::OperandStack(_) => held(variable(piece)?),
        VariableLocation::Global(global) => Some(Want::Global(global, behind)),
        VariableLocation::Memory(address) => {
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
        VariableLocation::Value(_) | VariableLocation::OptimisedOut => None,
    });
    Criterion {
        start: activation.instance.time,
        wants: wants.chain(blocks.map(Want::Block)).collect(),
        reach: Reach::ALL,
    }
}

/// Returns the blocks through which a value was moved before its use.
fn moved(code: &NodeCode, taker: Taker) -> impl Iterator<Item = Want> {
    let all = code.moved(taker).iter();
    all.map(|moved| Want::Block(moved.block as usize))
}

fn want(source: Operand) -> Option<Want> {
    match source {
        Operand::Constant(_) => None,
        Operand::Variable(variable) => Some(Want::Variable(variable)),
        Operand::Result(inst) => Some(Want::Inst(inst)),
    }
}
