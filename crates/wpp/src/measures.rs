//! Checks and measures a segment when it is opened.

mod call_rules;
mod check;
mod directory;
mod error;
mod layout;
mod order;
mod uses;

use std::sync::{Arc, OnceLock};

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

pub(crate) use self::call_rules::{CallRule, CallRules, occurrences, occurrences_in};
pub(crate) use self::directory::Directory;
pub use self::error::CheckError;
pub(crate) use self::layout::{Body, FEW, Layout, Word};
pub(crate) use self::uses::{Use, User, Uses};
use crate::{Grammar, Kind, Node, Root, Rule, Segment, Symbol};

/// A checked segment, with the data needed to find a position in it.
pub(crate) struct Measured {
    pub(crate) segment: Arc<Segment>,
    /// The rules, laid out for searching.
    pub(crate) layout: Layout,
    /// The symbol of each item of the root. The word is empty if the item has no symbol, and one
    /// more empty word ends the list.
    pub(crate) words: Vec<Word>,
    /// Whether each rule is an activation or contains one.
    pub(crate) calls: PrimaryMap<RuleId, bool>,
    /// The number of the segment's blocks executed before each item of the root, and in total.
    pub(crate) root_starts: Vec<u64>,
    /// The number of activations open before each item of the root, and at the end.
    pub(crate) depths: Vec<u32>,
    /// The function of the innermost activation before each item of the root, and at the end.
    pub(crate) functions: Vec<Option<FuncId>>,
    /// The rules that represent activations, once requested.
    call_rules: OnceLock<CallRules>,
    /// The occurrences of symbols, once requested.
    uses: OnceLock<Uses>,
}

impl Measured {
    /// Checks a segment and measures it. Time: linear.
    pub(crate) fn new(
        segment: Arc<Segment>,
        nodes: &PrimaryMap<NodeId, Node>,
    ) -> Result<Self, CheckError> {
        let rules = check::rules(&segment.grammar, nodes)?;
        let root = check::root(&segment, nodes, &rules)?;
        check::counts(&segment)?;
        let layout = Layout::new(&segment, nodes, &rules.lengths, &rules.calls)
            .ok_or(CheckError::TooLarge)?;
        let mut words = Vec::with_capacity(segment.root.len() + 1);
        words.extend(segment.root.iter().map(|item| match *item {
            Root::Run(symbol) => layout.word(symbol),
            Root::Enter(_) | Root::Leave => Word::NONE,
        }));
        words.push(Word::NONE);
        Ok(Self {
            segment,
            layout,
            words,
            calls: rules.calls,
            root_starts: root.starts,
            depths: root.depths,
            functions: root.functions,
            call_rules: OnceLock::new(),
            uses: OnceLock::new(),
        })
    }
}

impl Measured {
    /// Returns the rules that represent activations, and the number of occurrences of each. The
    /// first call is linear in the grammar.
    pub(crate) fn call_rules(&self) -> &CallRules {
        self.call_rules.get_or_init(|| CallRules::new(self))
    }

    /// Returns the occurrences of symbols. The first call is linear.
    pub(crate) fn uses(&self) -> &Uses {
        self.uses.get_or_init(|| Uses::new(self))
    }

    /// Returns the approximate memory use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        const RULE: usize = size_of::<Rule>() + 1 + size_of::<u32>();
        const ITEM: usize = size_of::<Root>() + 4 + 8 + 4 + size_of::<Option<FuncId>>();
        const COUNT: usize = size_of::<(NodeId, u64)>();
        let segment = &self.segment;
        let kinds = segment.grammar.rules.values().map(|rule| rule.kind);
        let activations = kinds.filter(|kind| matches!(kind, Kind::Call(_)));
        self.layout.bytes()
            + activations.count() * CallRules::RULE
            + segment.grammar.symbols.len() * (size_of::<Symbol>() + Uses::SYMBOL)
            + segment.grammar.rules.len() * RULE
            + segment.root.len() * ITEM
            + (segment.node_counts.len() + segment.call_counts.len()) * COUNT
            + segment.open.len() * size_of::<FuncId>()
    }
}

impl Segment {
    /// Verifies everything on which a reader relies, including the counts. Time: linear.
    ///
    /// # Errors
    /// Returns the first error found.
    pub fn check(&self, nodes: &PrimaryMap<NodeId, Node>) -> Result<(), CheckError> {
        let rules = check::rules(&self.grammar, nodes)?;
        check::root(self, nodes, &rules)?;
        check::counts(self)
    }

    /// Returns the functions whose activations are open at the segment's end, outermost first. The
    /// segment must be sound.
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

/// Counts the executions of each node, and the activations of each function that begin. The numbers
/// of rules and nodes must be valid. Time: linear in the grammar and the number of nodes, except
/// for sorting the functions. Returns `None` if a count exceeds 64 bits.
pub(crate) fn tally(grammar: &Grammar, root: &[Root]) -> Option<Tallies> {
    let mut rules: Vec<u64> = vec![0; grammar.rules.len()];
    let mut nodes: Vec<u64> = Vec::new();
    let mut calls: HashMap<FuncId, u64, FxBuildHasher> = HashMap::default();
    for item in root {
        match *item {
            Root::Run(symbol) => add_symbol(&mut rules, &mut nodes, symbol, 1)?,
            Root::Enter(function) => add(calls.entry(function).or_default(), 1)?,
            Root::Leave => {}
        }
    }
    for (id, rule) in grammar.rules.iter().rev() {
        let mut times = rules[id.as_u32() as usize];
        if times == 0 {
            continue;
        }
        match rule.kind {
            Kind::Sequence => {}
            Kind::Repeat(rounds) => times = times.checked_mul(rounds)?,
            Kind::Call(function) => add(calls.entry(function).or_default(), times)?,
        }
        for &symbol in grammar.symbols_of(id) {
            add_symbol(&mut rules, &mut nodes, symbol, times)?;
        }
    }
    let nodes = (0..).map(NodeId::from_u32).zip(nodes);
    let mut calls: Vec<_> = calls.into_iter().collect();
    calls.sort_unstable();
    Some((nodes.filter(|&(_, count)| count > 0).collect(), calls))
}

fn add_symbol(rules: &mut [u64], nodes: &mut Vec<u64>, symbol: Symbol, times: u64) -> Option<()> {
    let number = (symbol.bits() >> 1) as usize;
    if symbol.as_rule().is_some() {
        return add(&mut rules[number], times);
    }
    if number >= nodes.len() {
        nodes.resize(number + 1, 0);
    }
    add(&mut nodes[number], times)
}

fn add(count: &mut u64, more: u64) -> Option<()> {
    *count = count.checked_add(more)?;
    Some(())
}
