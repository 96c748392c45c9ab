//! Counts code in a range of a run.

use std::collections::{HashMap, HashSet};

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
/// O(grammar of the range's segments + bodies of the functions).
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
        let mut arrivals: HashMap<Line, u64> = HashMap::new();
        let mut operators = Vec::new();
        for (function, _, whole) in profile.functions() {
            let here = in_range(function, whole, &counts, ended);
            let is_executed = here.blocks.iter().any(|(_, count)| *count > 0);
            if is_executed && lines.is_some_and(|scope| scope.contains(function.id)) {
                profile.operators(function, &here, &mut operators)?;
                let calls = CallLines::of(&operators, profile.source());
                let mut executed = HashSet::new();
                for operator in operators.iter().filter(|operator| operator.count > 0) {
                    executed.extend(line_of(operator));
                    executed.extend(calls.at(operator.op));
                }
                let here = positions.arrivals_in(function, window, &counts)?;
                for line in executed {
                    let count = here.at(line);
                    let count = count.with_context(|| ambiguous(profile, line))?;
                    *arrivals.entry(line).or_default() += count;
                }
            }
            functions.push(FunctionRange {
                // Nothing leads to a function's first block.
                entries: counts.block(function.id, function.cfg.graph.root()),
                blocks: here.blocks,
                stop: here.stops.first().copied(),
            });
        }
        Ok(RangeCounts {
            times: (window.first, window.last),
            is_end: window.last == path.length(),
            functions,
            arrivals: lines.map(|_| arrivals),
        })
    })
}

/// Returns the reason why the arrivals at a line cannot be counted in a range.
pub(crate) fn ambiguous(profile: &Profile<'_>, line: Line) -> String {
    format!(
        "the arrivals at {}:{} cannot be counted in a range: a call there may return or throw to \
         the same block; count blocks instead",
        profile.file(line.file),
        line.number
    )
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
