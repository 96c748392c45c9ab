//! What can be wrong with coded bytes.

/// Why a stream cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The bytes end too early.
    #[error("the coded stream ends too early")]
    Truncated,
    /// Something that no encoder writes.
    #[error("the coded stream is malformed: {0}")]
    Malformed(&'static str),
    /// A position behind the end.
    #[error("position {position} in a stream of {len} values")]
    OutOfBounds {
        /// The position asked for.
        position: u64,
        /// How many values there are.
        len: u64,
    },
    /// There is no memory for so many values.
    #[error("no memory for a stream of {0} values")]
    TooLong(u64),
}
