//! The reasons why the writers of bytes that the host read are unknown.

use afterimage_machine::MachineError;
use afterimage_trace::TraceError;
use afterimage_wet::PrintedError;
use afterimage_wet::checkpoint::CheckpointError;
use afterimage_wpp::{PathError, TargetError};

use crate::steps::StepsError;
use crate::values::ValuesError;
use crate::whole_path::PathFileError;

/// The reason why the writers of a host read are unknown.
#[derive(Debug, thiserror::Error)]
pub enum HostReadsError {
    /// The whole execution trace cannot be read.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The run cannot be followed.
    #[error(transparent)]
    Steps(#[from] StepsError<PathFileError>),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] TraceError),
    /// The stored output cannot be read.
    #[error(transparent)]
    Printed(#[from] PrintedError),
    /// The recording names something that does not exist.
    #[error("the recording is damaged: it names {0}")]
    Damaged(&'static str),
}

impl From<PathError<PathFileError>> for HostReadsError {
    fn from(error: PathError<PathFileError>) -> Self {
        Self::Values(ValuesError::Path(error))
    }
}

impl From<TargetError> for HostReadsError {
    fn from(error: TargetError) -> Self {
        Self::Values(error.into())
    }
}

impl From<CheckpointError> for HostReadsError {
    fn from(error: CheckpointError) -> Self {
        Self::Steps(error.into())
    }
}

impl HostReadsError {
    /// Whether the recording was cut off, and its log ends before its path.
    pub(super) fn is_cut(&self) -> bool {
        matches!(
            self,
            Self::Steps(StepsError::Machine(MachineError::LogEnds { .. }))
                | Self::Values(ValuesError::Machine(MachineError::LogEnds { .. }))
        )
    }

    /// Whether the answer needs a part of the run without stored values.
    pub fn is_outside(&self) -> bool {
        matches!(self, Self::Values(ValuesError::Outside { .. }))
    }
}
