//! Summarises a stretch of one activation by its first and last events.

use afterimage_ids::{FuncId, NodeId};
use afterimage_program::Callee;

/// The ways in which an activation may have ended, according to the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The activation may have returned.
    pub returns: bool,
    /// An exception may have left the activation.
    pub throws: bool,
    /// The activation made this tail call.
    pub tail: Option<Callee>,
    /// The activation may have made any tail call, because its end is unknown.
    pub unknown: bool,
}

impl Outcome {
    pub const RETURNS: Self = Self {
        returns: true,
        throws: false,
        tail: None,
        unknown: false,
    };
    /// An unknown outcome, because the end was left out, or is wrong and has been reported.
    pub const UNKNOWN: Self = Self {
        returns: true,
        throws: true,
        tail: None,
        unknown: true,
    };
    /// The possible outcomes of a call to an import.
    pub const ANY: Self = Self {
        returns: true,
        throws: true,
        tail: None,
        unknown: false,
    };

    pub fn tail(callee: Callee) -> Self {
        Self {
            returns: false,
            throws: false,
            tail: Some(callee),
            unknown: false,
        }
    }
}

/// The first event of a stretch.
#[derive(Clone, Copy, Debug)]
pub(super) enum First {
    Node(NodeId),
    /// An activation of a callee. If the stretch has a node, the second value is the outcome of the
    /// last activation before the first node, and this node. The node before the stretch determines
    /// the block with which the first node must begin.
    Call(FuncId, Option<(Outcome, NodeId)>),
}

/// The last event of a stretch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    /// The last node, or `None` if there are only calls.
    pub node: Option<NodeId>,
    /// The outcome of the last activation since that node, or `None` if there was no activation.
    pub since: Option<Outcome>,
}

/// A stretch, described by its beginning and its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub first: First,
    pub last: Last,
    /// Whether an activation follows another activation that did not call it. If so, the host must
    /// have called it.
    pub by_host: bool,
}

impl Span {
    pub fn of_node(node: NodeId) -> Self {
        Self {
            first: First::Node(node),
            last: Last {
                node: Some(node),
                since: None,
            },
            by_host: false,
        }
    }

    pub fn of_call(function: FuncId, outcome: Outcome) -> Self {
        Self {
            first: First::Call(function, None),
            last: Last {
                node: None,
                since: Some(outcome),
            },
            by_host: false,
        }
    }

    /// Combines this stretch and the next.
    pub fn then(self, next: Self) -> Self {
        let first = match (self.first, self.last) {
            (
                First::Call(function, None),
                Last {
                    node: None,
                    since: Some(outcome),
                },
            ) => {
                let then = match next.first {
                    First::Node(node) => Some((outcome, node)),
                    First::Call(_, then) => then,
                };
                First::Call(function, then)
            }
            (first, _) => first,
        };
        Self {
            first,
            last: self.last.then(next.last),
            by_host: self.by_host || next.by_host,
        }
    }
}

impl Last {
    /// Combines the last events of two consecutive stretches.
    pub fn then(self, next: Self) -> Self {
        match next.node {
            Some(_) => next,
            None => Self {
                node: self.node,
                since: next.since,
            },
        }
    }
}
