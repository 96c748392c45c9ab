//! Defines the errors of simulating a run.

use std::error::Error;

use afterimage_profile::ProfileError;
use afterimage_replay::steps::StepsError;

/// The reason why a run cannot be simulated. `E` is the error of loading a segment of its path.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError<E: Error + 'static> {
    /// The run cannot be followed.
    #[error(transparent)]
    Steps(#[from] StepsError<E>),
    /// The module's bytes do not belong to the program.
    #[error(transparent)]
    Module(#[from] ProfileError),
    /// The receiver of histories failed.
    #[error("{0}")]
    Kept(Box<dyn Error + Send + Sync>),
}
