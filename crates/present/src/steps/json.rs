//! Writes steps as lines of JSON.

use afterimage_profile::SourceLine;
use afterimage_replay::steps::{Level, Step, Tried, Value, What};
use schemars::JsonSchema;
use serde::Serialize;

use super::{NextStep, StepScene, level_name};
use crate::PresentError;
use crate::document::TakeRows;
use crate::document::objects::{Function, MemoryRange, Position, TypedValue, digits, position};
use crate::own::OwnPlace;
use crate::trace::{Stretch, TraceHead, TraceRow};

/// An executed statement, or an action of the host on memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StepRow {
    /// The time of its block.
    pub t: u64,
    /// Its function.
    pub function: Function,
    /// The operator's name in the text format; `null` if the host acted on its own.
    pub operator: Option<String>,
    /// The operator's offset in the original module.
    pub offset: Option<u32>,
    /// Its line, if known.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub source: Option<SourceLine>,
    /// The bytes in hexadecimal, if there are at most 32. Present for a copy, an initialisation, or
    /// bytes that the host read or wrote.
    #[serde(serialize_with = "as_digits", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub contents: Option<Vec<u8>>,
    /// Its effect.
    #[serde(flatten)]
    pub what: StepWhat,
    /// For library code, the line that a sentence shows instead.
    #[serde(skip)]
    pub own: Option<OwnPlace>,
}

/// The effect of a step.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum StepWhat {
    /// A value was computed or read from a global or a table, or it is the size of a memory or
    /// table.
    Value {
        /// The value.
        value: TypedValue,
    },
    /// Memory was read.
    Load {
        /// The bytes read.
        access: MemoryRange,
        /// The result.
        value: TypedValue,
    },
    /// Memory was written.
    Store {
        /// The bytes written.
        access: MemoryRange,
        /// The new value.
        value: TypedValue,
    },
    /// Bytes were copied.
    Copy {
        /// The bytes written.
        access: MemoryRange,
        /// The bytes read.
        from: MemoryRange,
    },
    /// Bytes were filled.
    Fill {
        /// The bytes written.
        access: MemoryRange,
        /// The new value of each byte.
        byte: u8,
    },
    /// Bytes of a data segment were written.
    Init {
        /// The bytes written.
        access: MemoryRange,
        /// The data segment.
        segment: u32,
        /// The offset of the first byte in the segment.
        offset_in_segment: u64,
    },
    /// Memory grew, or a request to grow it failed.
    Grow {
        /// The memory.
        memory: u32,
        /// The number of pages to add.
        pages: u64,
        /// The result.
        value: TypedValue,
    },
    /// A global was written.
    #[serde(rename = "set global")]
    SetGlobal {
        /// The global.
        global: u32,
        /// The new value of the global.
        value: TypedValue,
    },
    /// A table or a segment was changed.
    Change {
        /// The operands.
        values: Vec<TypedValue>,
    },
    /// A branch was executed.
    Branch {
        /// The value that decided the branch.
        value: TypedValue,
    },
    /// A jump.
    Jump,
    /// A call.
    Call {
        /// The callee.
        callee: Function,
        /// The arguments.
        values: Vec<TypedValue>,
    },
    /// A return.
    Return {
        /// The results.
        values: Vec<TypedValue>,
    },
    /// The host returned from a call.
    #[serde(rename = "host return")]
    HostReturn {
        /// The callee.
        callee: Function,
        /// The results.
        values: Vec<TypedValue>,
    },
    /// The host read memory.
    #[serde(rename = "host read")]
    HostRead {
        /// The callee.
        callee: Function,
        /// The bytes read.
        access: MemoryRange,
    },
    /// The host wrote memory.
    #[serde(rename = "host write")]
    HostWrite {
        /// The callee.
        callee: Function,
        /// The bytes written.
        access: MemoryRange,
    },
    /// An exception was thrown.
    Throw {
        /// The values of the exception.
        values: Vec<TypedValue>,
    },
    /// The run ended with a trap.
    Trap {
        /// The reason.
        trap: String,
        /// The access that the operator would have made, if it accesses memory.
        #[serde(skip_serializing_if = "Option::is_none")]
        tried: Option<StepTried>,
    },
}

/// The access that a trapped operator would have made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum StepTried {
    /// A read of memory.
    Load {
        /// The bytes that it would have read.
        access: MemoryRange,
    },
    /// A write to memory.
    Store {
        /// The bytes that it would have written.
        access: MemoryRange,
        /// The value that it would have written.
        value: TypedValue,
    },
    /// A copy of bytes.
    Copy {
        /// The bytes that it would have written.
        access: MemoryRange,
        /// The bytes that it would have read.
        from: MemoryRange,
    },
    /// A fill of bytes.
    Fill {
        /// The bytes that it would have written.
        access: MemoryRange,
        /// The value that each byte would have.
        byte: u8,
    },
    /// A write of bytes from a data segment.
    Init {
        /// The bytes that it would have written.
        access: MemoryRange,
        /// The data segment.
        segment: u32,
        /// The offset of the first byte in the segment.
        offset_in_segment: u64,
    },
}

fn as_digits<S: serde::Serializer>(bytes: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
    bytes.as_ref().map(|bytes| digits(bytes)).serialize(to)
}

impl TraceHead {
    /// Creates the head of a list of steps. `length` is the number of blocks that the run executed.
    pub fn of_steps(scene: &StepScene<'_>, level: Level, stretch: &Stretch, length: u64) -> Self {
        let function = stretch.function;
        Self {
            level: level_name(level),
            first: stretch.window.first,
            last: stretch.window.last,
            length,
            left_out: String::new(),
            reverse: stretch.reverse,
            function: function.map(|function| Function::new(scene.names, function)),
        }
    }
}

/// Writes steps for programs, at most `limit`.
///
/// # Errors
/// Returns an error if `to` fails or the run cannot be followed.
pub fn step_rows(
    to: &mut dyn TakeRows<TraceHead>,
    head: TraceHead,
    scene: &StepScene<'_>,
    next: &mut NextStep<'_>,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    to.head(head)?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(step) = next()?
    {
        to.row(TraceRow::Step(StepRow::new(scene, &step)?))?;
        room -= 1;
    }
    Ok(())
}

impl StepRow {
    /// Creates the row of a step.
    ///
    /// # Errors
    /// Returns an error if the module does not match the program.
    pub fn new(scene: &StepScene<'_>, step: &Step) -> Result<Self, PresentError> {
        let operator = scene.operator(step)?;
        let position = operator.position;
        Ok(Self {
            t: step.time,
            function: Function::new(scene.names, step.function),
            operator: step.op.map(|_| operator.name),
            offset: operator.offset.map(|offset| offset.0),
            source: position.map(|position| scene.source.line(position)),
            contents: step.bytes.as_ref().map(|bytes| bytes.to_vec()),
            what: what(scene, &step.what),
            own: None,
        })
    }
}

fn what(scene: &StepScene<'_>, what: &What) -> StepWhat {
    let all = |values: &[Value]| values.iter().map(TypedValue::from).collect();
    let callee = |function| Function::new(scene.names, function);
    match what {
        What::Computed(given) => StepWhat::Value {
            value: given.into(),
        },
        What::Branch(given) => StepWhat::Branch {
            value: given.into(),
        },
        What::Load(range, given) => StepWhat::Load {
            access: (*range).into(),
            value: given.into(),
        },
        What::Store(range, given) => StepWhat::Store {
            access: (*range).into(),
            value: given.into(),
        },
        What::Copy { from, to } => StepWhat::Copy {
            access: (*to).into(),
            from: (*from).into(),
        },
        What::Fill(range, byte) => StepWhat::Fill {
            access: (*range).into(),
            byte: *byte,
        },
        What::Init { to, segment, from } => StepWhat::Init {
            access: (*to).into(),
            segment: *segment,
            offset_in_segment: *from,
        },
        What::Grow { memory, by, result } => StepWhat::Grow {
            memory: *memory,
            pages: *by,
            value: result.into(),
        },
        What::SetGlobal(global, given) => StepWhat::SetGlobal {
            global: *global,
            value: given.into(),
        },
        What::Changed(values) => StepWhat::Change {
            values: all(values),
        },
        What::Return(values) => StepWhat::Return {
            values: all(values),
        },
        What::Throw(values) => StepWhat::Throw {
            values: all(values),
        },
        What::Jump => StepWhat::Jump,
        What::Call {
            callee: called,
            arguments,
        } => StepWhat::Call {
            callee: callee(*called),
            values: all(arguments),
        },
        What::HostReturn(import, values) => StepWhat::HostReturn {
            callee: callee(*import),
            values: all(values),
        },
        What::HostRead(import, range) => StepWhat::HostRead {
            callee: callee(*import),
            access: (*range).into(),
        },
        What::HostWrite(import, range) => StepWhat::HostWrite {
            callee: callee(*import),
            access: (*range).into(),
        },
        What::Trap(trap, tried) => StepWhat::Trap {
            trap: trap.to_string(),
            tried: tried.as_ref().map(self::tried),
        },
    }
}

fn tried(tried: &Tried) -> StepTried {
    match tried {
        Tried::Load(range) => StepTried::Load {
            access: (*range).into(),
        },
        Tried::Store(range, stored) => StepTried::Store {
            access: (*range).into(),
            value: stored.into(),
        },
        Tried::Copy { from, to } => StepTried::Copy {
            access: (*to).into(),
            from: (*from).into(),
        },
        Tried::Fill(range, byte) => StepTried::Fill {
            access: (*range).into(),
            byte: *byte,
        },
        Tried::Init { to, segment, from } => StepTried::Init {
            access: (*to).into(),
            segment: *segment,
            offset_in_segment: *from,
        },
    }
}
