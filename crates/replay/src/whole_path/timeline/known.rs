//! Computes the facts about rules that a walk needs to skip them.

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};
use afterimage_wpp::{Kind, Node, Segment, Symbol};

/// The facts about a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SymbolFacts {
    /// The number of blocks that the symbol executes.
    pub length: u64,
    /// The number of activations that begin in the symbol.
    pub calls: u64,
    /// The number of blocks of the longest of these activations, or of the longest gap.
    pub longest: u64,
    /// The number of blocks that were executed in activations that begin in the symbol, or that
    /// were left out.
    pub inside: u64,
    /// The number of blocks left out.
    pub left_out: u64,
    /// The number of blocks before the first of these activations and gaps. `trail` is the number
    /// after the last of them.
    pub lead: u64,
    pub trail: u64,
}

impl SymbolFacts {
    fn of_blocks(length: u64) -> Self {
        Self {
            length,
            lead: length,
            trail: length,
            ..Self::default()
        }
    }

    fn of_node(node: &Node) -> Self {
        let length = node.length();
        match node.left_out {
            0 => Self::of_blocks(length),
            _ => Self {
                length,
                longest: length,
                inside: length,
                left_out: length,
                ..Self::default()
            },
        }
    }

    /// Whether the surrounding activation executes all blocks of the symbol.
    pub(super) fn is_own(&self) -> bool {
        self.calls == 0 && self.left_out == 0
    }

    /// Returns the combined facts about this symbol and the next. Numbers saturate only in rules
    /// that are never executed.
    fn then(self, next: Self) -> Self {
        let length = self.length.saturating_add(next.length);
        let (lead, trail) = match (self.is_own(), next.is_own()) {
            (true, true) => (length, length),
            (true, false) => (self.length.saturating_add(next.lead), next.trail),
            (false, true) => (self.lead, self.trail.saturating_add(next.length)),
            (false, false) => (self.lead, next.trail),
        };
        Self {
            length,
            calls: self.calls.saturating_add(next.calls),
            longest: self.longest.max(next.longest),
            inside: self.inside.saturating_add(next.inside),
            left_out: self.left_out.saturating_add(next.left_out),
            lead,
            trail,
        }
    }

    fn repeated(self, times: u64) -> Self {
        let length = self.length.saturating_mul(times);
        Self {
            length,
            calls: self.calls.saturating_mul(times),
            inside: self.inside.saturating_mul(times),
            left_out: self.left_out.saturating_mul(times),
            lead: if self.is_own() { length } else { self.lead },
            trail: if self.is_own() { length } else { self.trail },
            ..self
        }
    }

    fn called(self) -> Self {
        Self {
            calls: self.calls.saturating_add(1),
            longest: self.length,
            inside: self.length,
            lead: 0,
            trail: 0,
            ..self
        }
    }
}

/// Returns the known facts about a symbol.
pub(super) fn known(
    symbol: Symbol,
    rules: &PrimaryMap<RuleId, SymbolFacts>,
    nodes: &PrimaryMap<NodeId, Node>,
) -> SymbolFacts {
    match (symbol.as_rule(), symbol.as_node()) {
        (Some(rule), _) => rules[rule],
        (None, Some(node)) => SymbolFacts::of_node(&nodes[node]),
        (None, None) => SymbolFacts::default(),
    }
}

/// Returns the known facts about each rule. Takes linear time.
pub(super) fn rules(
    segment: &Segment,
    nodes: &PrimaryMap<NodeId, Node>,
    is_shown: &dyn Fn(FuncId) -> bool,
) -> PrimaryMap<RuleId, SymbolFacts> {
    let grammar = &segment.grammar;
    let mut rules = PrimaryMap::with_capacity(grammar.rules.len());
    for (id, rule) in grammar.rules.iter() {
        let symbols = grammar.symbols_of(id).iter();
        let whole = symbols.fold(SymbolFacts::of_blocks(0), |whole, &symbol| {
            whole.then(known(symbol, &rules, nodes))
        });
        rules.push(match rule.kind {
            Kind::Sequence => whole,
            Kind::Repeat(times) => whole.repeated(times),
            Kind::Call(function) if is_shown(function) => whole.called(),
            Kind::Call(_) => whole,
        });
    }
    rules
}
