//! The events of a single-threaded run.

use std::fmt;

use afterimage_ids::{BlockId, FuncId};

/// An event of a run.
///
/// A run is a sequence of function activations that begin from outside. Each activation executes
/// blocks and makes calls. A tail call is a `Leave` followed by an `Enter`. Activations that are
/// still open at the end never returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An activation of a function begins.
    Enter(FuncId),
    /// The innermost activation executes a block.
    Block(BlockId),
    /// The innermost activation ends.
    Leave,
}

/// The reason why an event cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// A block was executed, or an activation ended, while no activation was open.
    #[error("{0} outside every activation")]
    NoActivation(Outside),
    /// There are more different call trees, or more path traces of a function, than 32 bits can
    /// number.
    #[error("more than 2^32 different call trees or path traces")]
    TooMany,
    /// The run has more blocks or calls than any run can have.
    #[error("a run of more than 2^60 blocks or calls")]
    TooLong,
}

/// An event outside of all activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// A block was executed.
    Block(BlockId),
    /// An activation ended.
    Leave,
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(block) => write!(f, "{block} was executed"),
            Self::Leave => f.write_str("a function was left"),
        }
    }
}
