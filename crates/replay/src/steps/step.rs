//! What happens in a run, one thing after the other.

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::{GlobalBits, Range, Trap};
use wasmparser::ValType;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    /// Its type.
    pub ty: ValType,
    /// Its bits, and the upper half of a vector's.
    pub bits: GlobalBits,
}

impl Value {
    /// A value of this type. The upper halves of what is no vector are left as they were by the machine.
    pub fn new(ty: ValType, (low, high): GlobalBits) -> Self {
        let high = if ty == ValType::V128 { high } else { 0 };
        let bits = (low, high);
        Self { ty, bits }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// When: the time of the block. Of two steps the later one never has an earlier time.
    pub time: u64,
    /// In which function's code. The import's, where the host called itself.
    pub function: FuncId,
    /// Which operator did it; `None` if the host did it by itself.
    pub op: Option<OpId>,
    /// What.
    pub what: What,
    /// The bytes, if they are at most [`SHORT`](Self::SHORT): of a copy, of what was initialised, or of what the host read or wrote.
    pub bytes: Option<Box<[u8]>>,
}

impl Step {
    /// So many bytes are told with a step.
    pub const SHORT: usize = 32;
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A value was computed, or read from a global, a table or a size.
    Computed(Value),
    /// Memory was read, and gave this value.
    Load(Range, Value),
    /// This value was written to memory: of an integer only the bytes that were written.
    Store(Range, Value),
    /// Memory was copied.
    Copy {
        /// What was read.
        from: Range,
        /// What was written.
        to: Range,
    },
    /// Memory was set to one byte.
    Fill(Range, u8),
    /// A data segment was copied to memory.
    Init {
        /// What was written.
        to: Range,
        /// The segment.
        segment: u32,
        /// The first of its bytes.
        from: u64,
    },
    /// A memory was to grow.
    Grow {
        /// Which memory.
        memory: u32,
        /// By how many pages.
        by: u64,
        /// How many it had, or -1 if it did not grow.
        result: Value,
    },
    /// A global was set.
    SetGlobal(u32, Value),
    /// A table or a segment was changed, by these operands.
    Changed(Box<[Value]>),
    /// Control went one of several ways: decided by this value.
    Branch(Value),
    /// Control went the only way.
    Jump,
    /// A call began. The host's calls have no operator.
    Call {
        /// Who was called.
        callee: FuncId,
        /// With what.
        arguments: Box<[Value]>,
    },
    /// A function returned these. If it executes nothing more after a call, or after an exception that its own label caught, this is at its end, and the time is that of the last
    /// block that was executed.
    Return(Box<[Value]>),
    /// The host returned these from the call of an import.
    HostReturn(FuncId, Box<[Value]>),
    /// The host read memory, during a call of this import.
    HostRead(FuncId, Range),
    /// The host wrote to memory.
    HostWrite(FuncId, Range),
    /// An exception was thrown: what it carries, or the reference to it.
    Throw(Box<[Value]>),
    /// The run ended here, with what the operator would have done to memory.
    Trap(Trap, Option<Tried>),
}

/// What an operator that trapped would have done to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tried {
    /// Read these bytes.
    Load(Range),
    /// Written this value: of an integer only the bytes that would have been written.
    Store(Range, Value),
    /// Copied memory.
    Copy {
        /// What would have been read.
        from: Range,
        /// What would have been written.
        to: Range,
    },
    /// Set memory to one byte.
    Fill(Range, u8),
    /// Copied a data segment to memory.
    Init {
        /// What would have been written.
        to: Range,
        /// The segment.
        segment: u32,
        /// The first of its bytes.
        from: u64,
    },
}

impl What {
    /// What it read of memory.
    pub fn read(&self) -> Option<Range> {
        match *self {
            What::Load(range, _) | What::HostRead(_, range) => Some(range),
            What::Copy { from, .. } => Some(from),
            _ => None,
        }
    }

    /// What it wrote to memory.
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
