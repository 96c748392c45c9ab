//! What is computed of a segment when it is opened: lengths, counts, and whether it is sound.

mod check;
mod error;

use std::sync::Arc;

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

pub use self::error::CheckError;
use crate::{Grammar, Kind, Node, Root, Segment, Symbol};

/// A sound segment, and what it takes to find a position in it. As large as four words for each symbol.
pub(crate) struct Measured {
    pub(crate) segment: Arc<Segment>,
    /// For every symbol of the grammar, how many blocks its rule's symbols up to this one execute.
    pub(crate) ends: Vec<u64>,
    /// How many blocks each rule executes.
    pub(crate) lengths: PrimaryMap<RuleId, u64>,
    /// Which rules are activations or contain some.
    pub(crate) calls: PrimaryMap<RuleId, bool>,
    /// How many blocks of the segment are executed before each item of the root, and in all.
    pub(crate) root_starts: Vec<u64>,
    /// How many activations are open before each item of the root, and at the end.
    pub(crate) depths: Vec<u32>,
    /// The function of the innermost activation before each item of the root, and at the end.
    pub(crate) functions: Vec<Option<FuncId>>,
}

impl Measured {
    /// Checks a segment and measures it. Linear.
    pub(crate) fn new(
        segment: Arc<Segment>,
        nodes: &PrimaryMap<NodeId, Node>,
    ) -> Result<Self, CheckError> {
        let rules = check::rules(&segment.grammar, nodes)?;
        let root = check::root(&segment, nodes, &rules)?;
        check::counts(&segment)?;
        let mut calls = PrimaryMap::with_capacity(rules.lengths.len());
        for (id, rule) in segment.grammar.rules.iter() {
            let within = |symbol: &Symbol| symbol.as_rule().is_some_and(|child| calls[child]);
            let any = matches!(rule.kind, Kind::Call(_))
                || segment.grammar.symbols_of(id).iter().any(within);
            calls.push(any);
        }
        Ok(Self {
            segment,
            ends: rules.ends,
            lengths: rules.lengths,
            calls,
            root_starts: root.starts,
            depths: root.depths,
            functions: root.functions,
        })
    }
}

impl Segment {
    /// Verifies everything that a reader relies on, and that the counts are right. Linear.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, nodes: &PrimaryMap<NodeId, Node>) -> Result<(), CheckError> {
        let rules = check::rules(&self.grammar, nodes)?;
        check::root(self, nodes, &rules)?;
        check::counts(self)
    }

    /// The functions whose activations are open at its end, the outermost first. The segment must be sound.
    pub fn open_after(&self) -> Vec<FuncId> {
        let mut open = self.open.clone();
        for item in &self.root {
            match *item {
                Root::Run(_) => {}
                Root::Enter(function) => open.push(function),
                Root::Leave => {
                    open.pop();
                }
            }
        }
        open
    }
}

/// Counts by node and by function, ascending, as in a [`Segment`].
pub(crate) type Tallies = (Vec<(NodeId, u64)>, Vec<(FuncId, u64)>);

/// How often each node is executed and how many activations of each function begin. The rules' numbers must be sound. Linear,
/// but for the sorting of the functions. `None` if a count does not fit.
pub(crate) fn tally(grammar: &Grammar, root: &[Root]) -> Option<Tallies> {
    let mut times: Vec<u64> = vec![0; grammar.rules.len()];
    let mut nodes: HashMap<NodeId, u64, FxBuildHasher> = HashMap::default();
    let mut calls: HashMap<FuncId, u64, FxBuildHasher> = HashMap::default();
    let add = |count: &mut u64, more: u64| {
        *count = count.checked_add(more)?;
        Some(())
    };
    for item in root {
        match *item {
            Root::Run(symbol) => match symbol.as_rule() {
                Some(rule) => add(&mut times[rule.as_u32() as usize], 1)?,
                None => add(nodes.entry(symbol.as_node()?).or_default(), 1)?,
            },
            Root::Enter(function) => add(calls.entry(function).or_default(), 1)?,
            Root::Leave => {}
        }
    }
    for (id, rule) in grammar.rules.iter().rev() {
        let mut times_rule = times[id.as_u32() as usize];
        match rule.kind {
            Kind::Sequence => {}
            Kind::Repeat(count) => times_rule = times_rule.checked_mul(count)?,
            Kind::Call(function) if times_rule > 0 => {
                add(calls.entry(function).or_default(), times_rule)?;
            }
            Kind::Call(_) => {}
        }
        if times_rule == 0 {
            continue;
        }
        for &symbol in grammar.symbols_of(id) {
            match symbol.as_rule() {
                Some(child) => add(&mut times[child.as_u32() as usize], times_rule)?,
                None => add(nodes.entry(symbol.as_node()?).or_default(), times_rule)?,
            }
        }
    }
    let mut nodes: Vec<_> = nodes.into_iter().collect();
    let mut calls: Vec<_> = calls.into_iter().collect();
    nodes.sort_unstable();
    calls.sort_unstable();
    Some((nodes, calls))
}
