//! Computes the facts about a segment's grammar that several questions need.

use afterimage_ids::{PrimaryMap, RuleId};
use afterimage_wpp::{Grammar, Kind, Root, Segment, Symbol};

/// Returns the number of executions of each rule. Takes linear time. The segment must be sound.
pub(super) fn multiplicities(segment: &Segment) -> PrimaryMap<RuleId, u64> {
    let run = segment.root.iter().filter_map(|item| match *item {
        Root::Run(symbol) => Some((symbol, 1)),
        Root::Enter(_) | Root::Leave => None,
    });
    executions(&segment.grammar, run)
}

/// Returns the number of executions of each rule, from the numbers of executions of some symbols.
/// Takes linear time.
pub(super) fn executions(
    grammar: &Grammar,
    executed: impl IntoIterator<Item = (Symbol, u64)>,
) -> PrimaryMap<RuleId, u64> {
    let mut times: PrimaryMap<RuleId, u64> = grammar.rules.keys().map(|_| 0).collect();
    // The total number of executions fits in 64 bits, except for rules that are never executed.
    let add = |times: &mut PrimaryMap<RuleId, u64>, symbol: Symbol, more: u64| {
        if let Some(rule) = symbol.as_rule() {
            times[rule] = times[rule].saturating_add(more);
        }
    };
    for (symbol, more) in executed {
        add(&mut times, symbol, more);
    }
    for (id, rule) in grammar.rules.iter().rev() {
        let each = match rule.kind {
            Kind::Repeat(rounds) => times[id].saturating_mul(rounds),
            Kind::Sequence | Kind::Call(_) => times[id],
        };
        for &symbol in grammar.symbols_of(id) {
            add(&mut times, symbol, each);
        }
    }
    times
}
