//! The reasons why the state at a moment is unknown.

use afterimage_ids::grouped;
use afterimage_machine::MachineError;
use afterimage_wpp::PathError;

use crate::steps::CheckpointError;
use crate::values::ValuesError;
use crate::whole_path::PathFileError;

/// The reason why the state at a moment is unknown.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The whole execution trace cannot be read, or lacks the values.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<PathFileError>),
    /// The program does not match the path.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The contents of memory cannot be read.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    /// No block was executed at the requested time.
    #[error("nothing was executed at t={}", grouped(*.0))]
    NoMoment(u64),
    /// The path belongs to another program.
    #[error("the path belongs to another program: {0}")]
    Program(&'static str),
}
