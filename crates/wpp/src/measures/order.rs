//! Determines the order in which rules are laid out.

use afterimage_ids::{PrimaryMap, RuleId};

use crate::{Kind, Root, Segment};

/// Orders the rules. Each rule comes before the rules that it is the first to name. Of these rules,
/// the rule that executes the most blocks comes directly after it.
///
/// A descent to a random position then mostly reads nearby bytes. The processor has often fetched
/// these bytes already, or they are on the same page. Time: linear.
pub(super) fn order(segment: &Segment, lengths: &PrimaryMap<RuleId, u64>) -> Vec<RuleId> {
    let grammar = &segment.grammar;
    let times = times(segment);
    let weight = |rule: RuleId| times[rule].saturating_mul(lengths[rule]);
    let mut order = Vec::with_capacity(grammar.rules.len());
    let mut is_placed: PrimaryMap<RuleId, bool> =
        std::iter::repeat_n(false, grammar.rules.len()).collect();
    // The list is in reverse order, so the next rule is last.
    let mut pending: Vec<RuleId> = roots(segment).collect();
    pending.reverse();
    // Unreachable rules follow at the end.
    for rest in grammar.rules.keys().rev() {
        while let Some(rule) = pending.pop() {
            if std::mem::replace(&mut is_placed[rule], true) {
                continue;
            }
            order.push(rule);
            let first = pending.len();
            let children = grammar.symbols_of(rule).iter().rev();
            pending.extend(
                children
                    .filter_map(|symbol| symbol.as_rule())
                    .filter(|&child| !is_placed[child]),
            );
            let children = pending[first..].iter().enumerate();
            if let Some((heaviest, _)) = children.max_by_key(|&(_, &child)| weight(child)) {
                let last = pending.len() - 1;
                pending.swap(first + heaviest, last);
            }
        }
        pending.push(rest);
    }
    order.extend(pending.into_iter().filter(|&rule| !is_placed[rule]));
    order
}

/// Returns the number of executions of each rule, saturating at 2^64 - 1.
fn times(segment: &Segment) -> PrimaryMap<RuleId, u64> {
    let grammar = &segment.grammar;
    let mut times: PrimaryMap<RuleId, u64> = std::iter::repeat_n(0, grammar.rules.len()).collect();
    for rule in roots(segment) {
        times[rule] = times[rule].saturating_add(1);
    }
    for (id, rule) in grammar.rules.iter().rev() {
        let inside = match rule.kind {
            Kind::Repeat(rounds) => times[id].saturating_mul(rounds),
            _ => times[id],
        };
        for child in grammar
            .symbols_of(id)
            .iter()
            .filter_map(|symbol| symbol.as_rule())
        {
            times[child] = times[child].saturating_add(inside);
        }
    }
    times
}

/// Returns the rules that the root names.
fn roots(segment: &Segment) -> impl Iterator<Item = RuleId> {
    segment.root.iter().filter_map(|item| match *item {
        Root::Run(symbol) => symbol.as_rule(),
        Root::Enter(_) | Root::Leave => None,
    })
}
