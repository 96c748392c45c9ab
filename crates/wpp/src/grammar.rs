//! Defines the grammar of a segment.

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};

use crate::Symbol;

/// The kind of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The rule's symbols, one after another, within one activation.
    Sequence,
    /// The rule's only symbol, repeated this many times, at least twice.
    Repeat(u64),
    /// A whole activation of a function, which executes the rule's symbols from the call to the
    /// return. In the caller's sequence, the callee's activation comes right after the path that
    /// ends with the call.
    Call(FuncId),
}

/// A rule's kind, and the location of its symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The kind of the rule.
    pub kind: Kind,
    /// The position of the rule's first symbol in [`Grammar::symbols`].
    pub start: u32,
    /// The number of the rule's symbols. It is one for a `Repeat`, at least two for a `Sequence`,
    /// and any number for a `Call`.
    pub len: u32,
}

/// The rules of a segment. Children come before parents, so a rule's symbols name only rules with
/// smaller numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grammar {
    /// The rules. Their symbols are in `symbols` without gaps, in the order of the rules.
    pub rules: PrimaryMap<RuleId, Rule>,
    /// The right-hand sides of the rules, one after another.
    pub symbols: Vec<Symbol>,
}

/// An item of a segment's path at the top level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// A symbol that the innermost activation executes.
    Run(Symbol),
    /// The beginning of an activation that does not end in this segment.
    Enter(FuncId),
    /// The end of the innermost activation, which began in an earlier segment.
    Leave,
}

/// A stretch of a run, as a grammar and facts derived from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The number of blocks executed before the segment.
    pub before: u64,
    /// The number of blocks executed in the segment.
    pub length: u64,
    /// The functions whose activations are open at the segment's beginning, outermost first.
    pub open: Vec<FuncId>,
    /// The top level of the segment's path.
    pub root: Vec<Root>,
    /// The rules to which the root refers.
    pub grammar: Grammar,
    /// The number of executions of each node that occurs, ascending by node.
    pub node_counts: Vec<(NodeId, u64)>,
    /// The number of activations of each function that begin in the segment, ascending by function.
    /// Functions without such activations are omitted.
    pub call_counts: Vec<(FuncId, u64)>,
}

impl Grammar {
    /// Returns the right-hand side of a rule.
    pub fn symbols_of(&self, rule: RuleId) -> &[Symbol] {
        let rule = &self.rules[rule];
        &self.symbols[rule.start as usize..(rule.start + rule.len) as usize]
    }
}
