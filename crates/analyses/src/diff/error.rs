//! Defines the errors of comparing two runs.

use std::error::Error;

use afterimage_ids::grouped;
use afterimage_trace::TraceError;
use afterimage_wpp::{PathError, TargetError};

use afterimage_replay::steps::{CheckpointError, StepsError};

/// The reason why two runs cannot be compared. `E` is the error of loading a segment of a path.
#[derive(Debug, thiserror::Error)]
pub enum DiffError<E: Error + 'static> {
    /// A run cannot be followed.
    #[error(transparent)]
    Steps(#[from] StepsError<E>),
    /// A log cannot be read.
    #[error(transparent)]
    Log(#[from] TraceError),
    /// A path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
    /// Executions cannot be counted.
    #[error(transparent)]
    Count(#[from] TargetError),
    /// The checkpoints cannot be read.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    /// Parts of a path were left out when it was built.
    #[error(
        "a path lacks code of some functions, so the runs cannot be compared; build the whole path with `afterimage build --lens paths --again`"
    )]
    Partial,
    /// The runs differ, but all of their steps are equal.
    #[error(
        "the runs differ after t={}, but none of their steps does; this is a bug in afterimage",
        grouped(*.0)
    )]
    Untold(u64),
}
