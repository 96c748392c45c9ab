//! Defines the errors of `why` questions.

use afterimage_profile::ProfileError;
use afterimage_replay::values::{HostReadsError, ValuesError};
use afterimage_wet::EpochFileError;

/// The reason why the origin of a value cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// The whole execution trace cannot be read.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The bytes that the host read cannot be determined.
    #[error(transparent)]
    Host(#[from] HostReadsError),
    /// The module does not match the program.
    #[error(transparent)]
    Program(#[from] ProfileError),
    /// The boundary log cannot be read.
    #[error(transparent)]
    Log(#[from] afterimage_trace::TraceError),
    /// The module cannot be read.
    #[error(transparent)]
    Module(#[from] afterimage_machine::MachineError),
    /// The recording contradicts itself.
    #[error("the recording is damaged: it names {0}")]
    Damaged(&'static str),
}

impl WhyError {
    /// Whether the answer requires building more of the run than is allowed.
    pub fn is_too_many(&self) -> bool {
        let of_values =
            |error: &ValuesError| matches!(error, ValuesError::Epoch(EpochFileError::TooMany(_)));
        match self {
            Self::Values(error) | Self::Host(HostReadsError::Values(error)) => of_values(error),
            _ => false,
        }
    }

    /// Whether the question concerns a part of the run without stored values.
    pub fn is_outside(&self) -> bool {
        match self {
            Self::Values(ValuesError::Outside { .. }) => true,
            Self::Host(error) => error.is_outside(),
            _ => false,
        }
    }
}
