//! Why the state at a moment cannot be told.

use afterimage_machine::MachineError;
use afterimage_wpp::PathError;

use crate::paths::PathFileError;
use crate::steps::CheckpointError;
use crate::values::ValuesError;

/// Why the state at a moment cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The whole execution trace does not tell it.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<PathFileError>),
    /// The program is another one.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// What memory held cannot be read.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    /// There is no such moment.
    #[error("nothing was executed at t={0}")]
    NoMoment(u64),
    /// The path names what the program does not have.
    #[error("the path is of another program: {0}")]
    Program(&'static str),
}
