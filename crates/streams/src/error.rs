//! Errors of reading a stream.

/// The reason why a stream cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The bytes end too early.
    #[error("the coded stream ends too early")]
    Truncated,
    /// The bytes contain something that no encoder writes.
    #[error("the coded stream is malformed: {0}")]
    Malformed(&'static str),
    /// The requested position lies after the end.
    #[error("position {position} in a stream of {len} values")]
    OutOfBounds {
        /// The requested position.
        position: u64,
        /// The number of values in the stream.
        len: u64,
    },
    /// There is not enough memory for the values.
    #[error("no memory for a stream of {0} values")]
    TooLong(u64),
}
