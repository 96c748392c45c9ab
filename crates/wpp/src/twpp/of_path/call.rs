//! Finds the path trace of one call.

use afterimage_ids::{FuncId, RuleId};

use super::CollectError;
use super::function::{calls_in, executes};
use super::open::{Open, own_trace_of_call};
use crate::measures::Measured;
use crate::twpp::path_builder::PathBuilder;
use crate::twpp::path_trace::PathTrace;
use crate::{Grammar, Kind, PathError, Root, Segments, WholePath};

/// A call and its path trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPath {
    /// The time of the call's first block, which is the number of blocks executed before it, plus
    /// 1.
    pub entered: u64,
    /// The blocks that the call executed itself.
    pub trace: PathTrace,
    /// Whether the call returned. Otherwise, it was open when the run ended.
    pub returned: bool,
}

/// Returns the k-th call to a function, counted from 1 in the order in which calls begin, or `None`
/// if there is no such call. Time: linear in the segment's grammar and the blocks of the trace. If
/// the call continues in later segments, this opens the segments in which it executes something.
///
/// # Errors
/// Returns an error if a segment cannot be read, or a part of the call was left out of the path.
pub fn call_path<S: Segments>(
    path: &WholePath<S>,
    function: FuncId,
    number: u64,
) -> Result<Option<CallPath>, CollectError<S::Error>> {
    let summaries = path.segments().summaries();
    let Some(mut others) = number.checked_sub(1) else {
        return Ok(None);
    };
    let here = summaries.iter().position(|summary| {
        let calls = calls_in(summary, function);
        let here = others < calls;
        if !here {
            others -= calls;
        }
        here
    });
    let Some(segment) = here else {
        return Ok(None);
    };
    let measured = path.open(segment)?;
    let found = find(&measured, function, others).ok_or(PathError::Summary { segment })?;
    let entered = measured.segment.before + found.offset + 1;
    let mut ended = None;
    let mut trace = PathBuilder::default();
    if let Some(rule) = found.rule {
        own_trace_of_call(&measured.segment.grammar, rule, path.nodes(), &mut trace)?;
        ended = Some(trace);
        trace = PathBuilder::default();
    }
    let mut open = Open::default();
    if ended.is_none() {
        open.push(measured.depths[found.item], std::mem::take(&mut trace));
        open.follow(&measured, found.item + 1, path.nodes(), None, |trace| {
            ended = Some(trace);
            Ok(())
        })?;
    }
    drop(measured);
    for (later, summary) in summaries.iter().enumerate().skip(segment + 1) {
        if open.is_empty() {
            break;
        }
        if executes(summary, path.nodes(), function) {
            let measured = path.open(later)?;
            open.follow(&measured, 0, path.nodes(), None, |trace| {
                ended = Some(trace);
                Ok(())
            })?;
        } else {
            ended = open.pass(summary).last();
        }
    }
    let returned = ended.is_some();
    let mut trace = ended.or_else(|| open.finish().next()).unwrap_or_default();
    Ok(Some(CallPath {
        entered,
        trace: trace.complete().into_trace(),
        returned,
    }))
}

/// The beginning of an activation in a segment.
struct Begin {
    /// The item of the root at which the activation begins.
    item: usize,
    /// The rule that represents the activation, if it ends in the segment.
    rule: Option<RuleId>,
    /// The number of the segment's blocks executed before the activation.
    offset: u64,
}

/// Returns the beginning of an activation of a function in a segment, after `others` earlier
/// activations of the function.
fn find(measured: &Measured, function: FuncId, mut others: u64) -> Option<Begin> {
    let grammar = &measured.segment.grammar;
    let totals = activations_in(grammar, function);
    let total = |rule: RuleId| totals[rule.as_u32() as usize];
    for (item, root) in measured.segment.root.iter().enumerate() {
        let weight = match *root {
            Root::Run(symbol) => symbol.as_rule().map_or(0, total),
            Root::Enter(entered) => u64::from(entered == function),
            Root::Leave => 0,
        };
        if others >= weight {
            others -= weight;
            continue;
        }
        let mut offset = measured.root_starts[item];
        let Root::Run(symbol) = *root else {
            return Some(Begin {
                item,
                rule: None,
                offset,
            });
        };
        let mut id = symbol.as_rule()?;
        loop {
            let rule = grammar.rules[id];
            if rule.kind == Kind::Call(function) {
                if others == 0 {
                    return Some(Begin {
                        item,
                        rule: Some(id),
                        offset,
                    });
                }
                others -= 1;
            }
            let own = rule.start as usize..(rule.start + rule.len) as usize;
            if let Kind::Repeat(_) = rule.kind {
                let child = grammar.symbols[own.start].as_rule()?;
                let round = total(child);
                offset += others / round * measured.layout.end(id, 0);
                others %= round;
                id = child;
                continue;
            }
            let mut before = 0;
            let child = grammar.symbols[own]
                .iter()
                .enumerate()
                .find_map(|(at, symbol)| {
                    let child = symbol.as_rule();
                    let weight = child.map_or(0, total);
                    if others < weight {
                        return child;
                    }
                    others -= weight;
                    before = measured.layout.end(id, at);
                    None
                });
            offset += before;
            id = child?;
        }
    }
    None
}

/// Returns the number of a function's activations that begin in each rule. If the rule itself is
/// one of them, it counts, too. The sums of rules that are reachable from the root fit, because
/// they have been verified. Other sums may saturate.
pub(super) fn activations_in(grammar: &Grammar, function: FuncId) -> Vec<u64> {
    let mut totals: Vec<u64> = Vec::with_capacity(grammar.rules.len());
    for (id, rule) in grammar.rules.iter() {
        let weights = grammar.symbols_of(id).iter().map(|symbol| {
            let child = symbol.as_rule();
            child.map_or(0, |child| totals[child.as_u32() as usize])
        });
        let sum = weights.fold(0, u64::saturating_add);
        totals.push(match rule.kind {
            Kind::Repeat(times) => sum.saturating_mul(times),
            kind => sum.saturating_add(u64::from(kind == Kind::Call(function))),
        });
    }
    totals
}
