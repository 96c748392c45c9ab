//! What a stretch of one activation looks like from outside.

use afterimage_ids::{FuncId, NodeId};
use afterimage_program::Callee;

/// How an activation may have ended: the path does not always tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// It may have returned.
    pub returns: bool,
    /// An exception may have left it.
    pub throws: bool,
    /// It has called somebody in its place.
    pub tail: Option<Callee>,
    /// It may have called anybody in its place: its end is not known.
    pub unknown: bool,
}

impl Outcome {
    pub const RETURNS: Self = Self {
        returns: true,
        throws: false,
        tail: None,
        unknown: false,
    };
    /// The end was left out, or something is wrong with it and has been reported.
    pub const UNKNOWN: Self = Self {
        returns: true,
        throws: true,
        tail: None,
        unknown: true,
    };
    /// What a call of an import can come to.
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

/// What happens first.
#[derive(Clone, Copy, Debug)]
pub(super) enum First {
    Node(NodeId),
    /// An activation of a function that it calls. If the stretch has a node, then also how the last activation before the first
    /// node ended, and that node: where it must begin is told by the node before the stretch.
    Call(FuncId, Option<(Outcome, NodeId)>),
}

/// What happened last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    /// The last node; `None` if there are calls only.
    pub node: Option<NodeId>,
    /// How the last activation ended that was called since, if one was.
    pub since: Option<Outcome>,
}

/// A stretch: its two sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub first: First,
    pub last: Last,
    /// One activation follows another, and the first has not called the second: that is for the host to do.
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

    /// This and what follows it.
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
    /// What was last when this follows.
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
