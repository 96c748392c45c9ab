//! The steps of a run.

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::{GlobalBits, Range, Trap};
use wasmparser::ValType;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    /// Its type.
    pub ty: ValType,
    /// Its bits, with the upper half of a vector.
    pub bits: GlobalBits,
}

impl Value {
    /// A value of this type. For types other than vectors, the upper half is whatever the machine
    /// left.
    pub fn new(ty: ValType, (low, high): GlobalBits) -> Self {
        let high = if ty == ValType::V128 { high } else { 0 };
        let bits = (low, high);
        Self { ty, bits }
    }
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The time of its block. Times never decrease from step to step.
    pub time: u64,
    /// The function whose code it is. The import, where the host called itself.
    pub function: FuncId,
    /// The operator; `None` if the host acted on its own.
    pub op: Option<OpId>,
    /// The event.
    pub what: What,
    /// The bytes of a copy, an initialization, or a read or write by the host, if there are at most
    /// [`SHORT`](Self::SHORT).
    pub bytes: Option<Box<[u8]>>,
}

impl Step {
    /// The number of bytes reported with a step.
    pub const SHORT: usize = 32;
}

/// The event of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A value was computed, or read from a global, a table or a size.
    Computed(Value),
    /// Memory was read, and gave this value.
    Load(Range, Value),
    /// This value was written to memory. For an integer, only the bytes that were written.
    Store(Range, Value),
    /// Memory was copied.
    Copy {
        /// The bytes read.
        from: Range,
        /// The bytes written.
        to: Range,
    },
    /// Memory was set to one byte.
    Fill(Range, u8),
    /// A data segment was copied to memory.
    Init {
        /// The bytes written.
        to: Range,
        /// The segment.
        segment: u32,
        /// The offset of the first byte in it.
        from: u64,
    },
    /// A memory grew, or failed to grow.
    Grow {
        /// The memory.
        memory: u32,
        /// The number of pages to add.
        by: u64,
        /// The number of pages before, or -1 if it did not grow.
        result: Value,
    },
    /// A global was set.
    SetGlobal(u32, Value),
    /// A table or a segment was changed, with these operands.
    Changed(Box<[Value]>),
    /// Control took one of several directions, decided by this value.
    Branch(Value),
    /// Control went in the only direction.
    Jump,
    /// A call began. The host's calls have no operator.
    Call {
        /// The callee.
        callee: FuncId,
        /// The arguments.
        arguments: Box<[Value]>,
    },
    /// The function returned these values. If it executed nothing more after a call, or after an
    /// exception that its own label caught, the step is at the function's end, and its time is that
    /// of the last executed block.
    Return(Box<[Value]>),
    /// The host returned these values from the call of an import.
    HostReturn(FuncId, Box<[Value]>),
    /// The host read memory, during a call of this import.
    HostRead(FuncId, Range),
    /// The host wrote to memory.
    HostWrite(FuncId, Range),
    /// An exception was thrown: its values, or the reference to it.
    Throw(Box<[Value]>),
    /// The run ended here, with the memory access that the operator would have made.
    Trap(Trap, Option<Tried>),
}

/// The memory access that a trapping operator would have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tried {
    /// Read these bytes.
    Load(Range),
    /// Written this value. For an integer, only the bytes that would have been written.
    Store(Range, Value),
    /// Copied memory.
    Copy {
        /// The bytes that would have been read.
        from: Range,
        /// The bytes that would have been written.
        to: Range,
    },
    /// Set memory to one byte.
    Fill(Range, u8),
    /// Copied a data segment to memory.
    Init {
        /// The bytes that would have been written.
        to: Range,
        /// The segment.
        segment: u32,
        /// The offset of the first byte in it.
        from: u64,
    },
}

impl What {
    /// The memory that it read.
    pub fn read(&self) -> Option<Range> {
        match *self {
            What::Load(range, _) | What::HostRead(_, range) => Some(range),
            What::Copy { from, .. } => Some(from),
            _ => None,
        }
    }

    /// The memory that it wrote.
    pub fn written(&self) -> Option<Range> {
        match *self {
            What::Store(range, _)
            | What::Fill(range, _)
            | What::HostWrite(_, range)
            | What::Init { to: range, .. }
            | What::Copy { to: range, .. } => Some(range),
            _ => None,
        }
    }

    /// Whether it reads or writes these bytes.
    pub fn touches(&self, range: Range) -> bool {
        let mut touched = self.read().into_iter().chain(self.written());
        touched.any(|touched| overlap(touched, range))
    }
}

/// Whether two ranges share a byte.
pub(super) fn overlap(a: Range, b: Range) -> bool {
    a.memory == b.memory
        && a.length > 0
        && b.length > 0
        && a.address <= b.address.saturating_add(b.length - 1)
        && b.address <= a.address.saturating_add(a.length - 1)
}
