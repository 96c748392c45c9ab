//! Defines the links on a value's way back to its origin.

use afterimage_ids::OpId;
use afterimage_machine::{Range, Register};

use afterimage_replay::values::{Bits, Instance};

/// A value to follow back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The contents of a register in an execution of a node.
    Register(Instance, Register),
    /// Some bytes of a register in an execution of a node, if only these bytes are of interest.
    Part(Instance, Register, Bytes),
    /// A result of the call that ends an execution.
    Result(Instance, u32),
    /// Bytes or a global that an instruction wrote.
    Written {
        /// The execution of the instruction's node.
        instance: Instance,
        /// The position of the instruction.
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

/// The origin of a value, where the way back ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A constant of the code.
    Constant {
        /// The bits of the constant.
        bits: Bits,
        /// The execution of the node that contains the constant.
        instance: Instance,
        /// The operator of the constant.
        op: OpId,
    },
    /// A local that was never written, so it is zero or null.
    Zero,
    /// The host passed the value to the activation that begins with this execution.
    Argument {
        /// The execution that begins the activation.
        instance: Instance,
        /// The number of the argument, from 0.
        index: u32,
    },
    /// The host returned the value.
    Returned {
        /// The execution that ends with the call.
        instance: Instance,
        /// The number of the result, from 0.
        index: u32,
    },
    /// The host wrote the value to memory.
    Host {
        /// The number of the host call, from 1.
        call: u64,
        /// The bytes that the host wrote.
        range: Range,
    },
    /// Memory before the run, from a data segment or zero.
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
    /// There is no value, because the call did not return. The call ends this execution.
    Open(Instance),
    /// The value came with the exception that this execution threw. It is a reference to the
    /// exception, or one of the values that the exception carries.
    Thrown(Instance),
}

/// A way in which a value was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The value was read from memory.
    Load(Range),
    /// The value was written to memory.
    Store(Range),
    /// The value was copied within memory.
    Copy {
        /// The bytes that were copied.
        from: Range,
        /// The bytes to which they were copied.
        to: Range,
    },
    /// Memory was filled with the value.
    Fill(Range),
    /// The value was read from a global.
    GlobalGet(u32),
    /// The value was written to a global.
    GlobalSet(u32),
    /// A condition chose the value from two. `true` means the first value.
    Select(bool),
    /// The bytes of a vector were taken from a lane, put into a lane, kept beside a new lane,
    /// repeated or shuffled.
    Lanes {
        /// The operand that contains the bytes, from 0.
        operand: usize,
        /// The bytes of that operand that were moved.
        bytes: Bytes,
    },
}

/// The result of following a value back by one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepBack {
    /// The value was moved.
    Moved {
        /// The way in which the value was moved.
        how: Move,
        /// The execution of the instruction's node.
        instance: Instance,
        /// The instruction's position.
        inst: usize,
        /// The previous place of the value.
        next: At,
        /// The number of other parts that were read. Only one part is followed.
        besides: u64,
    },
    /// An instruction computed the value.
    Computed(Computed),
    /// The value has no earlier origin.
    End(End),
}

/// An instruction that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Computed {
    /// The execution of the instruction's node.
    pub instance: Instance,
    /// The position of the instruction.
    pub inst: usize,
}
