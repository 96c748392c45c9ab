//! Errors of searches for occurrences.

use afterimage_ids::NodeId;
use thiserror::Error;

/// The reason why occurrences cannot be searched for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    /// The node does not exist.
    #[error("{0} is not known")]
    Unknown(NodeId),
    /// The node has fewer blocks than the position requires.
    #[error("{0} has fewer blocks than the position requires")]
    Position(NodeId),
    /// The node is given twice.
    #[error("{0} is given twice")]
    Twice(NodeId),
    /// There are 2^64 occurrences or more.
    #[error("there are more occurrences than can be counted")]
    Uncountable,
}
