//! Defines the steps of a run.

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::{GlobalBits, Range, Trap};
use wasmparser::ValType;

/// A value of a run, with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    /// The type of the value.
    pub ty: ValType,
    /// The bits of the value, including the upper half of a vector.
    pub bits: GlobalBits,
}

impl Value {
    /// Creates a value of this type. For types other than vectors, the upper half is ignored.
    pub fn new(ty: ValType, (low, high): GlobalBits) -> Self {
        let high = if ty == ValType::V128 { high } else { 0 };
        let bits = (low, high);
        Self { ty, bits }
    }
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The time of the step's block. Times never decrease from step to step.
    pub time: u64,
    /// The function whose code made the step, or the imported function if the host itself called
    /// that function.
    pub function: FuncId,
    /// The operator, or `None` if the host acted on its own.
    pub op: Option<OpId>,
    /// The event of the step.
    pub what: What,
    /// The bytes of a copy, of an initialization, or of a read or write by the host. This is `None`
    /// if there are more than [`SHORT`](Self::SHORT) bytes.
    pub bytes: Option<Box<[u8]>>,
}

impl Step {
    /// The largest number of bytes reported with a step.
    pub const SHORT: usize = 32;
}

/// The event of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// This value was computed, was read from a global or a table, or is the size of a memory or
    /// table.
    Computed(Value),
    /// This value was read from memory.
    Load(Range, Value),
    /// This value was written to memory. An integer contains only the bytes that were written.
    Store(Range, Value),
    /// Bytes were copied within or between memories.
    Copy {
        /// The range of bytes read.
        from: Range,
        /// The range of bytes written.
        to: Range,
    },
    /// Memory was set to one byte.
    Fill(Range, u8),
    /// A data segment was copied to memory.
    Init {
        /// The range of bytes written.
        to: Range,
        /// The data segment that was read.
        segment: u32,
        /// The offset of the first byte in the segment.
        from: u64,
    },
    /// The code requested that a memory grow. The growth may have failed.
    Grow {
        /// The memory that should grow.
        memory: u32,
        /// The number of pages to add.
        by: u64,
        /// The number of pages before, or -1 if the memory did not grow.
        result: Value,
    },
    /// A global was set to a value.
    SetGlobal(u32, Value),
    /// A table or a segment was changed, with these operands.
    Changed(Box<[Value]>),
    /// This value decided which of several directions control took.
    Branch(Value),
    /// Control took the only possible direction.
    Jump,
    /// A call began. The host's calls have no operator.
    Call {
        /// The function that was called.
        callee: FuncId,
        /// The arguments of the call.
        arguments: Box<[Value]>,
    },
    /// The function returned these values. If the function executed nothing after a call, or after
    /// an exception that its own label caught, the step is at the function's end. Its time is then
    /// the time of the last executed block.
    Return(Box<[Value]>),
    /// The host returned these values from the call to an import.
    HostReturn(FuncId, Box<[Value]>),
    /// The host read memory during a call to this import.
    HostRead(FuncId, Range),
    /// The host wrote to memory during a call to this import.
    HostWrite(FuncId, Range),
    /// An exception was thrown, with these values or by this reference.
    Throw(Box<[Value]>),
    /// The run ended with this trap. The operator would have made this memory access.
    Trap(Trap, Option<Tried>),
}

/// The memory access that a trapping operator would have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tried {
    /// A read of these bytes.
    Load(Range),
    /// A write of this value. An integer contains only the bytes that would have been written.
    Store(Range, Value),
    /// A copy of memory.
    Copy {
        /// The bytes that would have been read.
        from: Range,
        /// The bytes that would have been written.
        to: Range,
    },
    /// A fill of memory with one byte.
    Fill(Range, u8),
    /// A copy of a data segment to memory.
    Init {
        /// The bytes that would have been written.
        to: Range,
        /// The data segment that would have been read.
        segment: u32,
        /// The offset of the first byte in the segment.
        from: u64,
    },
}

impl What {
    /// Returns the memory that the step read.
    pub fn read(&self) -> Option<Range> {
        match *self {
            What::Load(range, _) | What::HostRead(_, range) => Some(range),
            What::Copy { from, .. } => Some(from),
            _ => None,
        }
    }

    /// Returns the memory that the step wrote.
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

    /// Whether the step reads or writes any of these bytes.
    pub fn touches(&self, range: Range) -> bool {
        let mut touched = self.read().into_iter().chain(self.written());
        touched.any(|touched| overlap(touched, range))
    }
}

/// Whether two ranges share a byte.
pub fn overlap(a: Range, b: Range) -> bool {
    a.memory == b.memory
        && a.length > 0
        && b.length > 0
        && a.address <= b.address.saturating_add(b.length - 1)
        && b.address <= a.address.saturating_add(a.length - 1)
}
