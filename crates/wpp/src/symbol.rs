//! Packs a symbol of the grammar into one word.

use std::fmt;

use afterimage_ids::{NodeId, RuleId};

/// A symbol of the grammar in one word. It is a node, which is a terminal, or a rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(u32);

impl Symbol {
    /// The limit on the number of nodes, and on the number of rules.
    pub const LIMIT: u32 = 1 << 31;

    /// Returns the terminal of a node, whose number must be below [`Symbol::LIMIT`].
    pub fn node(node: NodeId) -> Self {
        debug_assert!(node.as_u32() < Self::LIMIT);
        Self(node.as_u32() << 1)
    }

    /// Returns the symbol of a rule, whose number must be below [`Symbol::LIMIT`].
    pub fn rule(rule: RuleId) -> Self {
        debug_assert!(rule.as_u32() < Self::LIMIT);
        Self(rule.as_u32() << 1 | 1)
    }

    /// Returns the node, if this is a terminal.
    pub fn as_node(self) -> Option<NodeId> {
        (self.0 & 1 == 0).then(|| NodeId::from_u32(self.0 >> 1))
    }

    /// Returns the rule, if this is a rule.
    pub fn as_rule(self) -> Option<RuleId> {
        (self.0 & 1 == 1).then(|| RuleId::from_u32(self.0 >> 1))
    }

    /// Returns the symbol as a word.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_rule() {
            Some(rule) => rule.fmt(f),
            None => NodeId::from_u32(self.0 >> 1).fmt(f),
        }
    }
}
