//! What a walk has to know of a rule to step over it.

use afterimage_ids::{NodeId, PrimaryMap, RuleId};
use afterimage_wpp::{Kind, Node, Segment, Symbol};

/// A symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Blocks that it executes.
    pub length: u64,
    /// Activations that begin in it.
    pub calls: u64,
    /// Blocks of the longest.
    pub longest: u64,
    /// Blocks that are executed in activations that begin in it.
    pub inside: u64,
    /// Blocks before the first of these begins, and behind the end of the last.
    pub lead: u64,
    pub trail: u64,
}

impl Known {
    fn of_blocks(length: u64) -> Self {
        Self {
            length,
            lead: length,
            trail: length,
            ..Self::default()
        }
    }

    /// This and what follows it. What is too long is in rules that are never executed.
    fn then(self, next: Self) -> Self {
        let length = self.length.saturating_add(next.length);
        let (lead, trail) = match (self.calls, next.calls) {
            (0, 0) => (length, length),
            (0, _) => (self.length.saturating_add(next.lead), next.trail),
            (_, 0) => (self.lead, self.trail.saturating_add(next.length)),
            _ => (self.lead, next.trail),
        };
        Self {
            length,
            calls: self.calls.saturating_add(next.calls),
            longest: self.longest.max(next.longest),
            inside: self.inside.saturating_add(next.inside),
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
            lead: if self.calls == 0 { length } else { self.lead },
            trail: if self.calls == 0 { length } else { self.trail },
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

/// What is known of a symbol.
pub(super) fn known(
    symbol: Symbol,
    rules: &PrimaryMap<RuleId, Known>,
    nodes: &PrimaryMap<NodeId, Node>,
) -> Known {
    match (symbol.as_rule(), symbol.as_node()) {
        (Some(rule), _) => rules[rule],
        (None, Some(node)) => Known::of_blocks(nodes[node].length()),
        (None, None) => Known::default(),
    }
}

/// What is known of each rule. Linear.
pub(super) fn rules(
    segment: &Segment,
    nodes: &PrimaryMap<NodeId, Node>,
) -> PrimaryMap<RuleId, Known> {
    let grammar = &segment.grammar;
    let mut rules = PrimaryMap::with_capacity(grammar.rules.len());
    for (id, rule) in grammar.rules.iter() {
        let symbols = grammar.symbols_of(id).iter();
        let whole = symbols.fold(Known::of_blocks(0), |whole, &symbol| {
            whole.then(known(symbol, &rules, nodes))
        });
        rules.push(match rule.kind {
            Kind::Sequence => whole,
            Kind::Repeat(times) => whole.repeated(times),
            Kind::Call(_) => whole.called(),
        });
    }
    rules
}
