//! The errors that occur when a run cannot be followed.

use std::error::Error;

use afterimage_ids::{FuncId, OpId, grouped};
use afterimage_machine::{MachineError, SnapshotError, WrittenLinesError};
use afterimage_wet::checkpoint::{CheckpointError, RestoreError};
use afterimage_wpp::PathError;

use afterimage_profile::ProfileError;

/// The reason why a run cannot be followed. `E` is the reason why a segment of its path cannot be
/// loaded.
#[derive(Debug, thiserror::Error)]
pub enum StepsError<E: Error + 'static> {
    /// The machine, the path and the log disagree.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
    /// The checkpoints cannot be read.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    /// The snapshots are damaged.
    #[error(transparent)]
    Snapshots(#[from] SnapshotError),
    /// The index of written lines is damaged.
    #[error(transparent)]
    Lines(#[from] WrittenLinesError),
    /// Parts of the run were left out of the path.
    #[error(
        "the path lacks code of some functions, so the run cannot be followed; build the whole path with `afterimage build --lens paths --again`"
    )]
    Partial,
    /// The module's bytes do not match the program.
    #[error(transparent)]
    Module(#[from] ProfileError),
    /// A function's body cannot be read.
    #[error("the module lacks the body of {0}")]
    NoBody(FuncId),
    /// The machine has no instruction for a statement.
    #[error("{0}, {1} is a statement, but the machine has no instruction for it")]
    Statement(FuncId, OpId),
    /// The run executed too many distinct operators of the requested kind, counted separately for
    /// each path.
    #[error(
        "the run executed more than {} different operators of the requested kind, counted per path",
        grouped(u64::from(*.0))
    )]
    Sites(u32),
    /// The sketches of the statements belong to another run.
    #[error("the sketches of the statements were made from a different run")]
    OtherRun,
    /// More nodes were executed than can be counted.
    #[error("the run is too long to be counted")]
    TooLong,
    /// The range of bytes is not in the memory.
    #[error(
        "0x{address:x} is outside memory {memory}, which has {} bytes at that time (0x0 to 0x{last:x})",
        grouped(*size),
        last = size.saturating_sub(1)
    )]
    Outside {
        /// The index of the memory.
        memory: u32,
        /// The size of the memory in bytes.
        size: u64,
        /// The first address that does not exist.
        address: u64,
    },
    /// The program has no memory with this index.
    #[error("the program has no memory {memory}; it has {count}, counted from 0")]
    NoMemory {
        /// The requested index of a memory.
        memory: u32,
        /// The number of memories in the program.
        count: usize,
    },
}

impl<E: Error + 'static> From<RestoreError> for StepsError<E> {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Checkpoints(error) => error.into(),
            RestoreError::Machine(error) => error.into(),
        }
    }
}
