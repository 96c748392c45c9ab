//! Counts code in a range of a run.

use std::collections::HashMap;

use afterimage_ids::{BlockId, FuncId};
use afterimage_profile::lines::{CallLines, line_of};
use afterimage_profile::{FunctionProfile, FunctionRange, Line, Profile, RangeCounts, Scope};
use afterimage_program::Function;
use afterimage_replay::whole_path::{Window, WindowCounts};
use anyhow::{Context, Result};

use crate::Session;
use crate::named::with_names;
use crate::trace::Bounds;

/// Counts the code that is executed in a range. `profile` has the counts of the whole run. Counts
/// lines only in the functions of `lines`. The path must exist.
///
/// O(grammar of the range's segments + bodies of the functions), and O(body) for each line.
pub(crate) fn range_counts(
    session: &Session,
    profile: &Profile<'_>,
    bounds: &Bounds,
    lines: Option<&Scope>,
) -> Result<RangeCounts> {
    with_names(session, |program| {
        let positions = program.positions()?;
        let path = session.path()?;
        let window = bounds.window(&positions)?;
        let counts = session.window_counts(window)?;
        let ended = ended_in(session, window)?;
        let mut functions = Vec::new();
        let mut executed: HashMap<Line, Vec<FuncId>> = HashMap::new();
        let mut operators = Vec::new();
        for (function, _, whole) in profile.functions() {
            let here = in_range(function, whole, &counts, ended);
            let is_executed = here.blocks.iter().any(|(_, count)| *count > 0);
            let mut entries = 0;
            if is_executed {
                let calls = path.activations(function.id)?;
                let before = calls.rank(window.first.saturating_sub(1))?;
                entries = calls.rank(window.last)? - before;
            }
            if is_executed && lines.is_some_and(|scope| scope.contains(function.id)) {
                profile.operators(function, &here, &mut operators)?;
                let calls = CallLines::of(&operators, profile.source());
                for operator in operators.iter().filter(|operator| operator.count > 0) {
                    let own = line_of(operator).into_iter();
                    for line in own.chain(calls.at(operator.op).iter().copied()) {
                        let functions = executed.entry(line).or_default();
                        if functions.last() != Some(&function.id) {
                            functions.push(function.id);
                        }
                    }
                }
            }
            functions.push(FunctionRange {
                entries,
                blocks: here.blocks,
                stop: here.stops.first().copied(),
            });
        }
        let count = |(line, functions): (Line, Vec<FuncId>)| {
            let count = positions.arrivals_in(line, functions.into_iter(), window, &counts)?;
            Ok((line, count))
        };
        let arrivals = lines.map(|_| executed.into_iter().map(count).collect::<Result<_>>());
        Ok(RangeCounts {
            times: (window.first, window.last),
            is_end: window.last == path.length(),
            functions,
            arrivals: arrivals.transpose()?,
        })
    })
}

/// Returns a function's counts in a range. `ended` is the block in which the run ended, if it ended
/// in the range. The counts of the function's instructions are those of the whole run.
pub(crate) fn in_range(
    function: &Function,
    whole: &FunctionProfile,
    counts: &WindowCounts,
    ended: Option<(FuncId, BlockId)>,
) -> FunctionProfile {
    let blocks = whole.blocks.iter();
    let blocks = blocks.map(|(block, _)| (block, counts.block(function.id, block)));
    let stops = whole.stops.iter().copied();
    let stopped = stops.filter(|&(block, _)| ended == Some((function.id, block)));
    FunctionProfile {
        blocks: blocks.collect(),
        stops: Vec::from_iter(stopped.take(1)),
        ..whole.clone()
    }
}

/// Returns the block in which the run ended, if it is in the range. The block may not have been
/// executed to its end.
pub(crate) fn ended_in(session: &Session, window: Window) -> Result<Option<(FuncId, BlockId)>> {
    let path = session.path()?;
    if window.last < path.length() {
        return Ok(None);
    }
    let visit = path.cursor().seek(path.length())?;
    let visit = visit.context("no block is executed at the end")?;
    let node = &path.nodes()[visit.node];
    let block = node.blocks.get((path.length() - visit.start) as usize);
    Ok(block.map(|&block| (node.function, block)))
}
