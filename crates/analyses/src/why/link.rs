//! The links of the way back.

use afterimage_ids::OpId;
use afterimage_machine::{Range, Register};

use afterimage_replay::values::{Bits, Instance};

/// A value to follow back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The contents of a register in an execution of a node.
    Register(Instance, Register),
    /// Some bytes of a register in an execution of a node, if not all of it is in question.
    Part(Instance, Register, Bytes),
    /// A result of the call that ends an execution.
    Result(Instance, u32),
    /// Bytes that an instruction wrote.
    Written {
        /// The execution of its node.
        instance: Instance,
        /// Its position.
        inst: usize,
        /// The bytes; empty for a global.
        range: Range,
    },
    /// The value has no earlier origin.
    End(End),
}

/// Bytes of a value, in memory or in a register, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// The first byte, from 0.
    pub first: u64,
    /// The number of bytes, at least one.
    pub length: u64,
}

/// The end of a way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A constant of the code.
    Constant {
        /// Its bits.
        bits: Bits,
        /// The execution of its node.
        instance: Instance,
        /// The operator of the constant.
        op: OpId,
    },
    /// A local that nothing wrote: zero or null.
    Zero,
    /// The host passed it to the activation that begins with this execution.
    Argument {
        /// The execution.
        instance: Instance,
        /// The number of the argument, from 0.
        index: u32,
    },
    /// The host returned it.
    Returned {
        /// The execution that ends with the call.
        instance: Instance,
        /// The number of the result, from 0.
        index: u32,
    },
    /// The host wrote it to memory.
    Host {
        /// The number of the host call, from 1.
        call: u64,
        /// The bytes.
        range: Range,
    },
    /// Memory before the run: a data segment, or zeros.
    Memory(Range),
    /// A data segment that was copied to memory later.
    Segment {
        /// The number of the segment.
        segment: u32,
        /// The offset of the first byte in the segment.
        offset: u64,
    },
    /// A global before the run.
    Global(u32),
    /// There is no value: the call did not return. The call ends this execution.
    Open(Instance),
    /// It came with the exception that this execution threw. It is a reference to the exception, or
    /// one of the values that it carries.
    Thrown(Instance),
}

/// How a value was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Read from memory.
    Load(Range),
    /// Written to memory.
    Store(Range),
    /// Copied within memory.
    Copy {
        /// The source.
        from: Range,
        /// The destination.
        to: Range,
    },
    /// Memory was filled with it.
    Fill(Range),
    /// Read from a global.
    GlobalGet(u32),
    /// Written to a global.
    GlobalSet(u32),
    /// One of two values that a condition chose; `true` for the first.
    Select(bool),
    /// Bytes of a vector that stay the same: taken from a lane, put into one, repeated or shuffled.
    Lanes {
        /// The operand, from 0.
        operand: usize,
        /// Its bytes.
        bytes: Bytes,
    },
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepBack {
    /// It was moved.
    Moved {
        /// How it was moved.
        how: Move,
        /// The execution of the instruction's node.
        instance: Instance,
        /// The instruction's position.
        inst: usize,
        /// Its previous place.
        next: At,
        /// The number of other parts read. Only one part is followed.
        besides: u64,
    },
    /// An instruction computed it.
    Computed(Computed),
    /// It has no earlier origin.
    End(End),
}

/// An instruction that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Computed {
    /// The execution of its node.
    pub instance: Instance,
    /// Its position.
    pub inst: usize,
}
