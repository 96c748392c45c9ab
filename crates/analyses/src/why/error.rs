//! Why a question cannot be answered.

use afterimage_profile::ProfileError;
use afterimage_replay::values::{HostReadsError, ValuesError};

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
    /// Whether it is about a part of the run of which no values are kept.
    pub fn is_outside(&self) -> bool {
        match self {
            Self::Values(ValuesError::Outside { .. }) => true,
            Self::Host(error) => error.is_outside(),
            _ => false,
        }
    }
}
