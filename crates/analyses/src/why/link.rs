//! What a link of the way back is.

use afterimage_ids::OpId;
use afterimage_machine::{Range, Register};

use afterimage_replay::values::{Bits, Instance};

/// A value that is gone back from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// What a register of an execution of a node holds.
    Register(Instance, Register),
    /// Some bytes of what a register of an execution of a node holds: less than all of it is asked about.
    Part(Instance, Register, Bytes),
    /// What the call that an execution ends with gave.
    Result(Instance, u32),
    /// Bytes that an instruction wrote.
    Written {
        /// The execution of its node.
        instance: Instance,
        /// Its position.
        inst: usize,
        /// The bytes; those of a global are none.
        range: Range,
    },
    /// Nothing is further back.
    End(End),
}

/// Bytes of a value that is in memory as it is in a register, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// The first, from 0.
    pub first: u64,
    /// How many, at least one.
    pub length: u64,
}

/// Where a way back ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A constant of the code.
    Constant {
        /// Its bits.
        bits: Bits,
        /// The execution of the node that has it.
        instance: Instance,
        /// The operator that is the constant.
        op: OpId,
    },
    /// A local that nothing wrote: zero or null.
    Zero,
    /// The host passed it to the activation that begins with this execution.
    Argument {
        /// The execution.
        instance: Instance,
        /// Which argument, from 0.
        index: u32,
    },
    /// The host returned it.
    Returned {
        /// The execution that ends with the call.
        instance: Instance,
        /// Which result, from 0.
        index: u32,
    },
    /// The host wrote it to memory.
    Host {
        /// In which call, from 1.
        call: u64,
        /// Which bytes.
        range: Range,
    },
    /// Memory before the run: a data segment, or zeros.
    Memory(Range),
    /// A data segment that was copied to memory later.
    Segment {
        /// Which one.
        segment: u32,
        /// The first byte in it.
        offset: u64,
    },
    /// A global before the run.
    Global(u32),
    /// It is what the call gave that this execution ends with: nothing, for the call did not return.
    Open(Instance),
    /// It came with the exception that this execution threw: it is a reference to it, or it is not known which of the values that it carries.
    Thrown(Instance),
}

/// How a value was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Read from memory.
    Load(Range),
    /// Written to memory.
    Store(Range),
    /// Copied in memory.
    Copy {
        /// From where.
        from: Range,
        /// To where.
        to: Range,
    },
    /// Memory was filled with it.
    Fill(Range),
    /// Read from a global.
    GlobalGet(u32),
    /// Written to a global.
    GlobalSet(u32),
    /// Chosen out of two by a condition: whether it was the first one.
    Select(bool),
    /// Taken from a lane, put into one, repeated or shuffled: bytes of a vector that stay the same.
    Lanes {
        /// Which operand they are of, from 0.
        operand: usize,
        /// Which bytes of it.
        bytes: Bytes,
    },
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepBack {
    /// It was moved.
    Moved {
        /// How.
        how: Move,
        /// The execution of the instruction's node.
        instance: Instance,
        /// The instruction's position.
        inst: usize,
        /// Where it was before.
        next: At,
        /// Other parts of what was read: how many. Only one is gone back from.
        besides: u64,
    },
    /// An instruction computed it.
    Computed(Computed),
    /// It comes from nowhere further back.
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
