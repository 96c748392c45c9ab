//! Finds the direct data dependences of a statement's execution: the producer of each operand, and
//! the writers of the data that the statement reads.

use afterimage_ids::OpId;
use afterimage_machine::{Code, Register, Taker};
use afterimage_wet::{
    ComputedValues, ReadFrom, Source, TableOrSize, WriteTo, Writer, read_from, write_to,
};

use super::{Bits, Execution, Instance, Kind, RecordedValues, Statement, ValuesError};

/// The origin of a value or of a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A constant of the code.
    Constant,
    /// An operator of the guest.
    Operator {
        /// The execution of the node that contains the operator.
        instance: Instance,
        /// The operator that gave the value.
        op: OpId,
    },
    /// The initial zero of a local that nothing wrote.
    Zero,
    /// An argument that the host passed to the activation that begins with this execution.
    Argument {
        /// The first execution of the activation.
        instance: Instance,
        /// The number of the argument.
        index: u32,
    },
    /// A result that the host returned from the call that ends this execution.
    Returned {
        /// The execution with the call.
        instance: Instance,
        /// The number of the result.
        index: u32,
    },
    /// The initial state of the module, which is a data segment, zeroed memory, or the initial
    /// value of a global.
    Initial,
    /// A write by the host during a call of an import. The guest made the call or, if the import is
    /// also exported, the host itself.
    Host {
        /// The number of the call, from 1.
        call: u64,
    },
}

/// A direct dependence on data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// The part of the statement that depends on data. For an operand, this is the operand's role.
    /// For a read, it is "memory", "global", "element" (of a table) or "size" (of a table or a
    /// memory).
    pub role: &'static str,
    /// The value of the operand, or `None` for a read.
    pub value: Option<Bits>,
    /// The number of bytes read from memory, or 0 for all.
    pub bytes: u64,
    /// The number of elements taken from a table, and otherwise 0.
    pub elements: u64,
    /// The origin of the value or of the data that was read.
    pub origin: Origin,
}

/// Returns the direct data dependences of a statement's execution. The dependences of its operands
/// come first, in order, and then the dependences of its reads, part by part.
///
/// # Errors
/// Returns an error if the trace is damaged or lacks the required data.
pub fn dependences(
    values: &RecordedValues<'_>,
    execution: &Execution,
) -> Result<Vec<Dependence>, ValuesError> {
    match execution.statement {
        Some(statement) => of_statement(values, execution.instance, statement),
        None => Ok(Vec::new()),
    }
}

/// Returns the direct data dependences of a statement in an execution of its node.
///
/// # Errors
/// Returns an error if the trace is damaged or lacks the required data.
pub fn of_statement(
    values: &RecordedValues<'_>,
    instance: Instance,
    statement: Statement,
) -> Result<Vec<Dependence>, ValuesError> {
    let mut known = ComputedValues::default();
    let compiled = values.compiled(instance.node)?;
    let mut found = Vec::new();
    for operand in statement.operands(&compiled.code) {
        let value = values.value_knowing(instance, operand.register, &mut known)?;
        let origin = origin_of(values, instance, operand.register)?;
        found.push(Dependence {
            role: operand.role,
            value: Some(value),
            bytes: 0,
            elements: 0,
            origin,
        });
    }
    found.extend(reads(values, instance, statement)?);
    Ok(found)
}

/// Returns the roles and origins of a statement's operands, in order. Leaves out the operands'
/// values, and therefore takes a tenth of the time of [`of_statement`].
///
/// # Errors
/// Returns an error if the trace is damaged or lacks the required data.
pub fn operands(
    values: &RecordedValues<'_>,
    instance: Instance,
    statement: Statement,
) -> Result<Vec<(&'static str, Origin)>, ValuesError> {
    let compiled = values.compiled(instance.node)?;
    let operands = statement.operands(&compiled.code);
    let origins = operands.iter().map(|operand| {
        let origin = origin_of(values, instance, operand.register)?;
        Ok((operand.role, origin))
    });
    origins.collect()
}

/// Returns the dependences on data that a statement's execution reads in addition to its operands,
/// part by part.
///
/// # Errors
/// Returns an error if the trace is damaged or lacks the required data.
pub fn reads(
    values: &RecordedValues<'_>,
    instance: Instance,
    statement: Statement,
) -> Result<Vec<Dependence>, ValuesError> {
    let compiled = values.compiled(instance.node)?;
    let mut found = Vec::new();
    if let Kind::Inst(inst) = statement.kind
        && let Some(role) = role_of_read(compiled.code.insts[inst].code)
    {
        // An operator that trapped did not read anything.
        let mut readings = read(values.reading(instance, inst))?;
        readings.extend(read(values.copied(instance, inst))?);
        for reading in readings {
            found.push(Dependence {
                role,
                value: None,
                bytes: reading.length,
                elements: 0,
                origin: written(values, reading.writer)?,
            });
        }
    }
    let taken = match statement.kind {
        Kind::Inst(inst) => read(values.taken(instance, Some(inst)))?,
        Kind::Call(_) => values.taken(instance, None)?,
        Kind::Return | Kind::Throw => Vec::new(),
    };
    for taken in taken {
        found.push(Dependence {
            role: role_of_place(taken.place),
            value: None,
            bytes: 0,
            elements: taken.elements,
            origin: written(values, taken.writer)?,
        });
    }
    Ok(found)
}

/// Returns the origin of the value in a register of an execution.
pub fn origin_of(
    values: &RecordedValues<'_>,
    instance: Instance,
    register: Register,
) -> Result<Origin, ValuesError> {
    Ok(match values.source(instance, register)? {
        Source::Constant(_) => Origin::Constant,
        Source::Result { instance, inst } => Origin::Operator {
            instance,
            op: values.compiled(instance.node)?.code.insts[inst].op,
        },
        Source::Zero => Origin::Zero,
        Source::Argument { instance, index } => Origin::Argument { instance, index },
        Source::Returned { instance, index } => Origin::Returned { instance, index },
        Source::Thrown { instance } => Origin::Operator {
            instance,
            op: end_of(values, instance)?,
        },
        Source::Open { .. } => {
            return Err(ValuesError::Damaged(
                "the result of a call that did not return",
            ));
        }
    })
}

/// Returns the blocks that moved operands before a statement took them, in the order of the
/// operands. These blocks selected the values that the statement got, so the statement depends on
/// the causes of their executions. Each block is returned as an execution without a statement.
/// `is_taken` selects operands by number and role.
///
/// # Errors
/// Returns an error if the trace is damaged or lacks the required data.
pub fn moves(
    values: &RecordedValues<'_>,
    instance: Instance,
    statement: Statement,
    is_taken: impl Fn(usize, &'static str) -> bool,
) -> Result<Vec<Execution>, ValuesError> {
    let compiled = values.compiled(instance.node)?;
    let mut moves: Vec<Execution> = Vec::new();
    for (number, operand) in statement.operands(&compiled.code).iter().enumerate() {
        if is_taken(number, operand.role) {
            let taker = Some(statement.taker(&compiled.code, number));
            for moved in moves_of(values, instance, operand.register, taker)? {
                if moves.iter().all(|known| known.time != moved.time) {
                    moves.push(moved);
                }
            }
        }
    }
    Ok(moves)
}

/// Like [`moves`], but for a register of an execution. `taker` is the operand that takes the
/// register's value, or `None` if no operand takes it.
pub fn moves_of(
    values: &RecordedValues<'_>,
    instance: Instance,
    register: Register,
    taker: Option<Taker>,
) -> Result<Vec<Execution>, ValuesError> {
    let mut moves = Vec::new();
    let own = taker.map(|taker| (instance, taker));
    let takers = values.takers_of(instance, register)?;
    for (instance, taker) in own.into_iter().chain(takers) {
        for moved in values.compiled(instance.node)?.code.moved(taker) {
            moves.push(Execution {
                number: 0,
                time: instance.time + u64::from(moved.block),
                instance,
                statement: None,
            });
        }
    }
    Ok(moves)
}

/// Returns the origin of a written value.
fn written(values: &RecordedValues<'_>, writer: Writer) -> Result<Origin, ValuesError> {
    Ok(match writer {
        Writer::Initial => Origin::Initial,
        Writer::Host { call } => Origin::Host { call },
        Writer::Write { instance, inst, .. } => Origin::Operator {
            instance,
            op: values.compiled(instance.node)?.code.insts[inst].op,
        },
    })
}

/// Returns the operator that ends an execution of a node.
pub fn end_of(values: &RecordedValues<'_>, instance: Instance) -> Result<OpId, ValuesError> {
    let node = values.path().nodes().get(instance.node);
    let op = node.and_then(|node| {
        let function = values.program().function(node.function)?;
        let block = function.cfg.blocks.get(*node.blocks.last()?)?;
        Some(OpId::from_u32(block.ops.end.as_u32().checked_sub(1)?))
    });
    op.ok_or(ValuesError::Damaged("a block without operators"))
}

/// Returns the reads of an instruction. An instruction that the run did not complete has no reads.
fn read<T>(readings: Result<Vec<T>, ValuesError>) -> Result<Vec<T>, ValuesError> {
    match readings {
        Err(ValuesError::NotExecuted) => Ok(Vec::new()),
        readings => readings,
    }
}

/// Returns the role that a place has in the statement that reads it.
pub(super) fn role_of_place(place: TableOrSize) -> &'static str {
    match place {
        TableOrSize::Elements(_) => "element",
        TableOrSize::TableSize(_) | TableOrSize::MemorySize(_) => "size",
    }
}

/// Returns the role of the data that an instruction reads in addition to its operands, if the data
/// may have been written.
pub(super) fn role_of_read(code: Code) -> Option<&'static str> {
    match (read_from(code), write_to(code)) {
        (Some(ReadFrom::Memory), _) | (_, Some(WriteTo::Copy)) => Some("memory"),
        (Some(ReadFrom::Global), _) => Some("global"),
        _ => None,
    }
}
