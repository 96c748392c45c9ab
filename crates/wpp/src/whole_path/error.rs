//! Errors of reading a path.

use thiserror::Error;

use crate::CheckError;

/// The reason why a path cannot be read. `E` is the error of loading a segment.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError<E> {
    /// A segment cannot be loaded.
    #[error("segment {segment} cannot be loaded")]
    Load {
        /// The segment's position in the path.
        segment: usize,
        /// The error of loading the segment.
        source: E,
    },
    /// A segment is not sound.
    #[error("segment {segment} is not sound")]
    Check {
        /// The segment's position in the path.
        segment: usize,
        /// The first fault found in the segment.
        source: CheckError,
    },
    /// A segment does not match its summary.
    #[error("segment {segment} differs from its summary")]
    Summary {
        /// The segment's position in the path.
        segment: usize,
    },
    /// A segment does not begin in the state in which the previous segment ends.
    #[error("segment {segment} does not continue the previous segment")]
    Follow {
        /// The segment's position in the path.
        segment: usize,
    },
}
