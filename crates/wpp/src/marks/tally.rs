//! Counts marks, rule by rule.

use afterimage_ids::{NodeId, PrimaryMap, RuleId};

use super::Marking;
use crate::measures::Measured;
use crate::{Kind, Root, Rule, Symbol};

/// An activation's first and last node in a rule, and the number of marks in the rule. Marks that
/// the first node has because of earlier executions are excluded.
#[derive(Clone, Copy, Default)]
struct Part {
    /// The first and last node, or `None` if the activation itself executes no node.
    ends: Option<(NodeId, NodeId)>,
    count: u64,
}

/// The node executed before a symbol in the same activation.
type Before = Option<NodeId>;

/// For an item of the root, the number of marks before it, and the node that its activation
/// executed last before it.
struct Item {
    count: u64,
    before: Before,
}

/// The numbers of marks in the rules of a segment.
pub(crate) struct Tally {
    /// For each symbol, the number of marks in its rule up to and including the symbol. Marks that
    /// the rule's first node has because of earlier executions are excluded.
    counts: Vec<u64>,
    rules: PrimaryMap<RuleId, Part>,
    items: Vec<Item>,
    count: u64,
}

impl Tally {
    /// Counts the marks of a segment. `open` contains the node that each open activation executed
    /// last. The caller passes these nodes for the segment's beginning, and this function replaces
    /// them with the nodes for its end. Time: linear in the grammar.
    ///
    /// A saturated count means that there are too many marks, or that the rule is never queried.
    pub(super) fn new(measured: &Measured, marking: &impl Marking, open: &mut Vec<Before>) -> Self {
        let segment = &measured.segment;
        let mut tally = Self {
            counts: Vec::with_capacity(segment.grammar.symbols.len()),
            rules: PrimaryMap::with_capacity(segment.grammar.rules.len()),
            items: Vec::with_capacity(segment.root.len()),
            count: 0,
        };
        for (id, rule) in segment.grammar.rules.iter() {
            let mut whole = Part::default();
            for &symbol in segment.grammar.symbols_of(id) {
                whole = whole.then(tally.part(marking, symbol), marking);
                tally.counts.push(whole.count);
            }
            match rule.kind {
                Kind::Sequence => {}
                Kind::Repeat(times) => {
                    let others = whole.after(whole.ends.map(|ends| ends.1), marking);
                    let others = others.saturating_mul(times - 1);
                    whole.count = whole.count.saturating_add(others);
                }
                Kind::Call(_) => {
                    whole.count = whole.after(None, marking);
                    whole.ends = None;
                }
            }
            tally.rules.push(whole);
        }
        // The host executes nothing itself.
        let mut host = None;
        for item in &segment.root {
            let innermost = open.last_mut().unwrap_or(&mut host);
            tally.items.push(Item {
                count: tally.count,
                before: *innermost,
            });
            match *item {
                Root::Run(symbol) => {
                    let part = tally.part(marking, symbol);
                    tally.count = tally.count.saturating_add(part.after(*innermost, marking));
                    *innermost = part.ends.map(|ends| ends.1).or(*innermost);
                }
                Root::Enter(_) => open.push(None),
                Root::Leave => {
                    open.pop();
                }
            }
        }
        tally
    }

    /// Returns the number of marks in the segment.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the approximate memory use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.counts[..])
            + self.rules.len() * size_of::<Part>()
            + size_of_val(&self.items[..])
    }

    fn part(&self, marking: &impl Marking, symbol: Symbol) -> Part {
        match (symbol.as_rule(), symbol.as_node()) {
            (Some(rule), _) => self.rules[rule],
            (None, Some(node)) => Part {
                ends: Some((node, node)),
                count: marking.inside(node).len() as u64,
            },
            (None, None) => Part::default(),
        }
    }

    /// Returns the offset, in blocks, of the mark that comes after `others` other marks of the
    /// segment. The mark must exist.
    pub(super) fn select(
        &self,
        measured: &Measured,
        marking: &impl Marking,
        mut others: u64,
    ) -> u64 {
        let at = self.items.partition_point(|item| item.count <= others) - 1;
        let mut before = self.items[at].before;
        let mut offset = measured.root_starts[at];
        others -= self.items[at].count;
        let Root::Run(mut symbol) = measured.segment.root[at] else {
            return offset;
        };
        while let Some(id) = symbol.as_rule() {
            let Rule { kind, start, .. } = measured.segment.grammar.rules[id];
            let symbols = measured.segment.grammar.symbols_of(id);
            let part = |at: usize| self.part(marking, symbols[at]);
            match kind {
                Kind::Repeat(_) => {
                    let once = part(0);
                    let first = once.after(before, marking);
                    if others >= first {
                        before = once.ends.map(|ends| ends.1).or(before);
                        let round = once.after(before, marking);
                        others -= first;
                        offset += (1 + others / round) * measured.layout.end(id, 0);
                        others %= round;
                    }
                    symbol = symbols[0];
                    continue;
                }
                Kind::Call(_) => before = None,
                Kind::Sequence => {}
            }
            // The counts exclude the marks that earlier executions give the first node.
            let entry = (0..symbols.len()).find(|&at| part(at).ends.is_some());
            let joined = entry.map_or(0, |at| part(at).after(before, marking) - part(at).count);
            let up_to = |at: usize| {
                self.counts[start as usize + at]
                    + if Some(at) >= entry && entry.is_some() {
                        joined
                    } else {
                        0
                    }
            };
            let at = partition_point(symbols.len(), |at| up_to(at) <= others);
            if at > 0 {
                others -= up_to(at - 1);
                offset += measured.layout.end(id, at - 1);
                let last = (0..at).rev().find_map(|at| part(at).ends);
                before = last.map(|ends| ends.1).or(before);
            }
            symbol = symbols[at];
        }
        let Some(node) = symbol.as_node() else {
            return offset;
        };
        let inside = others.checked_sub(marking.joining(before, node));
        let inside = inside.and_then(|at| marking.inside(node).get(at as usize));
        offset + inside.copied().unwrap_or(0)
    }
}

impl Part {
    /// Returns the number of marks of the part if it follows this node.
    fn after(self, before: Before, marking: &impl Marking) -> u64 {
        let joined = self
            .ends
            .map_or(0, |(first, _)| marking.joining(before, first));
        self.count.saturating_add(joined)
    }

    /// Combines two consecutive parts.
    fn then(self, next: Self, marking: &impl Marking) -> Self {
        let (ends, count) = match (self.ends, next.ends) {
            (Some((first, before)), Some((_, last))) => {
                (Some((first, last)), next.after(Some(before), marking))
            }
            (ends, other) => (ends.or(other), next.count),
        };
        Self {
            ends,
            count: self.count.saturating_add(count),
        }
    }
}

/// Returns the length of the prefix for which the predicate holds.
fn partition_point(len: usize, predicate: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low.midpoint(high);
        if predicate(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
