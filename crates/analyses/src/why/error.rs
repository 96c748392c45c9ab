//! Why a question cannot be answered.

use afterimage_profile::ProfileError;
use afterimage_replay::values::{HostReadsError, ValuesError};
use afterimage_wet::EpochFileError;

/// Why it cannot be told where a value came from.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// The whole execution trace.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// What the host read.
    #[error(transparent)]
    Host(#[from] HostReadsError),
    /// The program.
    #[error(transparent)]
    Program(#[from] ProfileError),
    /// The log of what the host did.
    #[error(transparent)]
    Log(#[from] afterimage_trace::TraceError),
    /// The module.
    #[error(transparent)]
    Module(#[from] afterimage_machine::MachineError),
    /// The recording contradicts itself.
    #[error("the recording is damaged: it names {0}")]
    Damaged(&'static str),
}

impl WhyError {
    /// Whether more of the run had to be built than may be.
    pub fn is_too_many(&self) -> bool {
        let of_values =
            |error: &ValuesError| matches!(error, ValuesError::Epoch(EpochFileError::TooMany(_)));
        match self {
            Self::Values(error) | Self::Host(HostReadsError::Values(error)) => of_values(error),
            _ => false,
        }
    }

    /// Whether it is about a part of the run of which no values are kept.
    pub fn is_outside(&self) -> bool {
        match self {
            Self::Values(ValuesError::Outside { .. }) => true,
            Self::Host(error) => error.is_outside(),
            _ => false,
        }
    }
}
