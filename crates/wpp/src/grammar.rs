//! The grammar of a segment.

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};

use crate::Symbol;

/// What a rule stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Its symbols, one after the other, within one activation.
    Sequence,
    /// Its only symbol so many times, at least twice.
    Repeat(u64),
    /// A whole activation of a function, from the call to the return: its symbols, one after the other. The callee's
    /// activation stands in the caller's sequence right after the path that ends with the call.
    Call(FuncId),
}

/// A rule's kind and where its symbols are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it stands for.
    pub kind: Kind,
    /// Its first symbol's position in [`Grammar::symbols`].
    pub start: u32,
    /// How many symbols it has: exactly one for a `Repeat`, at least two for a `Sequence`, any number for a `Call`.
    pub len: u32,
}

/// The rules of a segment, children before parents: a rule's symbols name rules with smaller numbers only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grammar {
    /// The rules. Their symbols stand in `symbols` without gaps, in the order of the rules.
    pub rules: PrimaryMap<RuleId, Rule>,
    /// The right-hand sides.
    pub symbols: Vec<Symbol>,
}

/// What a segment's path consists of, at the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// Executed in the innermost activation.
    Run(Symbol),
    /// An activation of this function begins, which does not end in this segment.
    Enter(FuncId),
    /// The innermost activation, which began in an earlier segment, ends.
    Leave,
}

/// A stretch of a run: a grammar, and what is made of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// How many blocks were executed before it.
    pub before: u64,
    /// How many blocks are executed in it.
    pub length: u64,
    /// The functions whose activations are open at its beginning, the outermost first.
    pub open: Vec<FuncId>,
    /// What happens in it.
    pub root: Vec<Root>,
    /// The rules.
    pub grammar: Grammar,
    /// How often each node that occurs is executed in it, ascending by node.
    pub node_counts: Vec<(NodeId, u64)>,
    /// How many activations of each function begin in it, if any, ascending by function.
    pub call_counts: Vec<(FuncId, u64)>,
}

impl Grammar {
    /// The right-hand side of a rule.
    pub fn symbols_of(&self, rule: RuleId) -> &[Symbol] {
        let rule = &self.rules[rule];
        &self.symbols[rule.start as usize..(rule.start + rule.len) as usize]
    }
}
