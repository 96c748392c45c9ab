//! Defines the steps in which a segment is written.

use afterimage_ids::{FuncId, NodeId};

/// One step of the walk over a segment. A rule's definition is written where the rule first occurs.
/// A step opens the rule, its symbols follow, and a step ends it. Later occurrences give the rule's
/// number. Rules are numbered in the order in which they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A terminal.
    Node(NodeId),
    /// A rule that has ended.
    Again(u32),
    /// A `Sequence` begins.
    Sequence,
    /// The last `symbols` symbols of the innermost open rule are executed `times` times, not once.
    Loop {
        /// The number of symbols, at least one.
        symbols: u32,
        /// The number of executions, at least two.
        times: u64,
    },
    /// A `Call` begins.
    Call(FuncId),
    /// Ends the innermost open rule, or the segment.
    End,
    /// An activation begins that does not end in the segment, as in
    /// [`Root::Enter`](crate::Root::Enter).
    Enter(FuncId),
    /// An activation ends that began earlier, as in [`Root::Leave`](crate::Root::Leave).
    Leave,
}

/// A step as one word, for the tables of successors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Token(pub(super) u32);

impl Token {
    /// No step, or a step whose number is too large to be remembered.
    pub(super) const NONE: Self = Self(u32::MAX);

    pub(super) fn of(step: Step) -> Self {
        let (kind, number) = match step {
            Step::Node(node) => (0, node.as_u32()),
            Step::Again(rule) => (1, rule),
            Step::Call(function) => (2, function.as_u32()),
            Step::End => (3, 0),
            Step::Sequence => (3, 1),
            Step::Leave => (3, 2),
            Step::Loop { symbols, .. } => (3, symbols.saturating_mul(2).saturating_add(3)),
            Step::Enter(function) => (3, function.as_u32().saturating_mul(2).saturating_add(4)),
        };
        if number < (1 << 30) - 1 {
            Self(number << 2 | kind)
        } else {
            Self::NONE
        }
    }

    /// Returns the step that the token represents. The step of a loop lacks its count. The token
    /// must not be [`Token::NONE`].
    pub(super) fn step(self) -> Step {
        let number = self.0 >> 2;
        match (self.0 & 3, number) {
            (0, _) => Step::Node(NodeId::from_u32(number)),
            (1, _) => Step::Again(number),
            (2, _) => Step::Call(FuncId::from_u32(number)),
            (_, 0) => Step::End,
            (_, 1) => Step::Sequence,
            (_, 2) => Step::Leave,
            _ if number & 1 == 1 => Step::Loop {
                symbols: (number - 3) / 2,
                times: 0,
            },
            _ => Step::Enter(FuncId::from_u32((number - 4) / 2)),
        }
    }

    /// Whether the token is a structural step, not a symbol. Structural steps are allowed only at
    /// certain positions.
    #[inline]
    pub(super) fn is_structure(self) -> bool {
        self.0 & 3 == 3
    }
}
