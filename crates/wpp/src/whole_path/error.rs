//! Why a path cannot be read.

use thiserror::Error;

use crate::CheckError;

/// Why a path cannot be read. `E` is why a segment cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError<E> {
    /// A segment cannot be loaded.
    #[error("segment {segment} cannot be loaded")]
    Load {
        /// Which.
        segment: usize,
        /// Why.
        source: E,
    },
    /// A segment is not sound.
    #[error("segment {segment} is not sound")]
    Check {
        /// Which.
        segment: usize,
        /// Why.
        source: CheckError,
    },
    /// A segment is not what its summary says.
    #[error("segment {segment} is not what its summary says")]
    Summary {
        /// Which.
        segment: usize,
    },
    /// A segment does not begin where and with what the one before ends.
    #[error("segment {segment} does not continue the one before")]
    Follow {
        /// Which.
        segment: usize,
    },
}
