//! Finds the rules of a segment that represent the activations of a function.

use afterimage_ids::{FuncId, RuleId};

use super::Measured;
use crate::{Kind, Root, Symbol};

/// The rules that represent activations and occur in a segment, by function.
pub(crate) struct CallRules {
    /// The rules, ascending by function and rule.
    rules: Box<[(FuncId, CallRule)]>,
}

/// A rule that represents activations.
#[derive(Clone, Copy)]
pub(crate) struct CallRule {
    pub(crate) rule: RuleId,
    /// The number of activations that it represents, at least one.
    pub(crate) times: u64,
}

impl CallRules {
    /// The size of a rule in bytes.
    pub(crate) const RULE: usize = size_of::<(FuncId, CallRule)>();

    /// Finds the rules of a segment. Time: linear in the grammar, except for sorting.
    pub(super) fn new(measured: &Measured) -> Self {
        let times = occurrences(measured);
        let rules = measured.segment.grammar.rules.iter().zip(times);
        let mut rules: Box<[_]> = rules
            .filter_map(|((rule, &of), times)| match of.kind {
                Kind::Call(function) if times > 0 => Some((function, CallRule { rule, times })),
                _ => None,
            })
            .collect();
        rules.sort_unstable_by_key(|&(function, CallRule { rule, .. })| (function, rule));
        Self { rules }
    }

    /// Returns the rules that represent activations of a function, ascending. Time: O(log rules).
    pub(crate) fn of(&self, function: FuncId) -> impl Iterator<Item = CallRule> {
        let begin = self.rules.partition_point(|&(other, _)| other < function);
        let rules = self.rules[begin..].iter();
        rules
            .take_while(move |&&(other, _)| other == function)
            .map(|&(_, rule)| rule)
    }
}

/// Counts the occurrences of each rule in a segment. Occurrences inside rules without calls are not
/// counted. Time: linear in the grammar.
///
/// The counts of calls fit in 64 bits, because the segment's counts have been verified. Other
/// counts may saturate, but are never used.
pub(crate) fn occurrences(measured: &Measured) -> Vec<u64> {
    let items = measured.segment.root.iter();
    let executed = items.filter_map(|item| match *item {
        Root::Run(symbol) => Some((symbol, 1)),
        Root::Enter(_) | Root::Leave => None,
    });
    occurrences_in(measured, executed)
}

/// Does the same as [`occurrences`], for some symbols of a segment, each with its number of
/// executions.
pub(crate) fn occurrences_in(
    measured: &Measured,
    executed: impl Iterator<Item = (Symbol, u64)>,
) -> Vec<u64> {
    let grammar = &measured.segment.grammar;
    let mut counts = vec![0u64; grammar.rules.len()];
    let add = |counts: &mut Vec<u64>, symbol: Symbol, times: u64| {
        if let Some(rule) = symbol.as_rule() {
            let count = &mut counts[rule.as_u32() as usize];
            *count = count.saturating_add(times);
        }
    };
    for (symbol, times) in executed {
        add(&mut counts, symbol, times);
    }
    for (id, rule) in grammar.rules.iter().rev() {
        let mut times = counts[id.as_u32() as usize];
        if times == 0 || !measured.calls[id] {
            continue;
        }
        if let Kind::Repeat(rounds) = rule.kind {
            times = times.saturating_mul(rounds);
        }
        for &symbol in grammar.symbols_of(id) {
            add(&mut counts, symbol, times);
        }
    }
    counts
}
