//! Why a run cannot be followed.

use std::fmt;

use afterimage_ids::{BlockId, FuncId};
use afterimage_numeric::Trap as NumericTrap;
use afterimage_program::ParseError;
use afterimage_trace::{TraceError, TrapCode};

/// Why a run cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The module is not what the program was parsed from.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The module.
    #[error("the module cannot be read: {0}")]
    Module(#[from] wasmparser::BinaryReaderError),
    /// The log.
    #[error(transparent)]
    Log(#[from] TraceError),
    /// Blocks that do not follow each other.
    #[error("the blocks from {block} of {function} on are no path of the program")]
    NoPath {
        /// The function.
        function: FuncId,
        /// The first block.
        block: BlockId,
    },
    /// The path and what the program computes disagree.
    #[error("at block {time} the path does not fit what the program computes: {what}")]
    Diverged {
        /// When: the time of the first block of the node.
        time: u64,
        /// How.
        what: &'static str,
    },
    /// The log and what the program computes disagree.
    #[error("at block {time} the log does not fit what the program computes: {what}")]
    Boundary {
        /// When: the time of the first block of the node.
        time: u64,
        /// How.
        what: &'static str,
    },
    /// The recording was cut off, and its log before its path.
    #[error(
        "the recording was cut off: what the host did is in it up to t={time} only, so no more than that can be followed"
    )]
    LogEnds {
        /// The last block that can be followed.
        time: u64,
    },
    /// A checkpoint that is none of this run.
    #[error("a checkpoint does not fit the run")]
    Checkpoint,
    /// The activations that were open at the end are too large together: a documented limit, and no fault of the recording.
    #[error(
        "a run whose open activations have more than 67,108,864 locals and operands together cannot be followed"
    )]
    TooDeep,
    /// Something that the machine does not have.
    #[error("{0} cannot be followed")]
    Unsupported(&'static str),
    /// An operator trapped, and the run goes on.
    #[error("at block {time} an operator traps ({trap}), but the path goes on")]
    Trapped {
        /// When: the time of the first block of the node.
        time: u64,
        /// Why.
        trap: Trap,
    },
}

/// Why an operator traps. It is told in the words of recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trap {
    /// In an arithmetic operator.
    Numeric(NumericTrap),
    /// A memory is not that large.
    Memory,
    /// A table is not that large.
    Table,
    /// `unreachable` was reached.
    Unreachable,
    /// The element that is to be called is null.
    CallOfNull,
    /// The function that is to be called has another type.
    Signature,
    /// An exception that is to be thrown again is null.
    NullReference,
    /// The address of an atomic operator is not a multiple of its width.
    Unaligned,
    /// It waits on memory that nobody shares.
    Wait,
}

impl Trap {
    /// What a recording calls it.
    pub fn code(self) -> TrapCode {
        match self {
            Trap::Numeric(NumericTrap::DivisionByZero) => TrapCode::DivisionByZero,
            Trap::Numeric(NumericTrap::IntegerOverflow) => TrapCode::IntegerOverflow,
            Trap::Numeric(NumericTrap::InvalidConversion) => TrapCode::BadConversionToInteger,
            Trap::Memory => TrapCode::MemoryOutOfBounds,
            Trap::Table => TrapCode::TableOutOfBounds,
            Trap::Unreachable => TrapCode::Unreachable,
            Trap::CallOfNull => TrapCode::IndirectCallToNull,
            Trap::Signature => TrapCode::BadSignature,
            Trap::NullReference => TrapCode::NullReference,
            Trap::Unaligned => TrapCode::UnalignedAtomic,
            Trap::Wait => TrapCode::UnsharedWait,
        }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code().fmt(f)
    }
}

impl From<NumericTrap> for Trap {
    fn from(trap: NumericTrap) -> Self {
        Trap::Numeric(trap)
    }
}
