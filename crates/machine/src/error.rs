//! The errors that occur when a run cannot be followed.

use std::fmt;

use afterimage_ids::{BlockId, FuncId, grouped};
use afterimage_numeric::Trap as NumericTrap;
use afterimage_program::ParseError;
use afterimage_trace::{TraceError, TrapCode};

/// The reason why a run cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The module's bytes do not match the program.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The module cannot be read.
    #[error("the module cannot be read: {0}")]
    Module(#[from] wasmparser::BinaryReaderError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] TraceError),
    /// The blocks do not form a path.
    #[error("the blocks of {function} from {block} onward do not form a path of the program")]
    NoPath {
        /// The function that should contain the blocks.
        function: FuncId,
        /// The first of the blocks that do not form a path.
        block: BlockId,
    },
    /// The path disagrees with the program's computation.
    #[error("at t={} the path does not match what the program computes: {what}", grouped(*time))]
    Diverged {
        /// The time of the node's first block.
        time: u64,
        /// A description of the disagreement.
        what: &'static str,
    },
    /// The log disagrees with the program's computation.
    #[error("at t={} the log does not match what the program computes: {what}", grouped(*time))]
    Boundary {
        /// The time of the node's first block.
        time: u64,
        /// A description of the disagreement.
        what: &'static str,
    },
    /// The recording was cut off, and its log ends before its path.
    #[error(
        "the recording was cut off: it has the host's actions only up to t={}, so the run \
         cannot be followed further",
        grouped(*time)
    )]
    LogEnds {
        /// The time of the last block that can be followed.
        time: u64,
    },
    /// The checkpoint does not belong to this run.
    #[error("a checkpoint does not match the run")]
    Checkpoint,
    /// The activations open at the end have too many locals and operands in total. This is a
    /// documented limit, not a fault of the recording.
    #[error(
        "a run whose open activations have more than 67,108,864 locals and operands together cannot be followed"
    )]
    TooDeep,
    /// The machine does not support a feature of the run.
    #[error("{0} cannot be followed")]
    Unsupported(&'static str),
    /// An operator trapped, but the run continues.
    #[error("at t={} an operator traps ({trap}), but the path continues", grouped(*time))]
    Trapped {
        /// The time of the last block of the node that trapped.
        time: u64,
        /// The reason for the trap.
        trap: Trap,
    },
}

/// The reason why an operator traps, as recordings classify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trap {
    /// An arithmetic operator trapped.
    Numeric(NumericTrap),
    /// An address is beyond the memory.
    Memory,
    /// An index is beyond the table.
    Table,
    /// `unreachable` was executed.
    Unreachable,
    /// A call through a table reached a null element.
    CallOfNull,
    /// A call through a table reached a function of another type.
    Signature,
    /// The reference to the exception to be rethrown is null.
    NullReference,
    /// The address of an atomic operator is not a multiple of its width.
    Unaligned,
    /// An operator waits on memory that is not shared.
    Wait,
}

impl Trap {
    /// Returns the code of the trap in recordings.
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
