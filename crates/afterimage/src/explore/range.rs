//! Counts the lines of source files in a stretch of the run.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EntityRef, FuncId};
use afterimage_present::{FilesDocument, SourceBranch, SourceDocument, SourceRange, SourceWay};
use afterimage_profile::lines::{CallLines, line_of};
use afterimage_profile::walk::OperatorCount;
use afterimage_profile::{Line, Profile, Scope};
use afterimage_program::{BlockEnd, Function};
use afterimage_replay::whole_path::{Window, WindowCounts};
use anyhow::{Context, Result};

use crate::Session;
use crate::named::with_names;
use crate::range::{ambiguous, ended_in, in_range};
use crate::trace::Bounds;

/// Replaces a document's counts with the counts in a stretch.
pub(super) fn bound(
    session: &Session,
    profile: &Profile<'_>,
    bounds: &Bounds,
    document: &mut SourceDocument,
) -> Result<()> {
    with_names(session, |program| {
        let positions = program.positions()?;
        let window = bounds.window(&positions)?;
        let counts = session.window_counts(window)?;
        document.range = Some(SourceRange {
            first_t: window.first,
            last_t: window.last,
        });
        let mut lines: HashMap<Line, InRange> = HashMap::new();
        let mut arrivals = HashMap::new();
        let mut branches: HashMap<u32, Vec<SourceBranch>> = HashMap::new();
        let is_here = |line: Line| profile.file(line.file) == document.file;
        each_function(
            session,
            profile,
            (window, &counts),
            |function, operators| {
                let calls = CallLines::of(operators, profile.source());
                let mut is_of_file = false;
                for operator in operators {
                    let own = line_of(operator).into_iter();
                    for line in own.chain(calls.at(operator.op).iter().copied()) {
                        if is_here(line) {
                            is_of_file = true;
                            let here = lines.entry(line).or_default();
                            if here.functions.last() != Some(&function.id) {
                                here.functions.push(function.id);
                            }
                        }
                    }
                    if let Some(here) = line_of(operator).and_then(|line| lines.get_mut(&line)) {
                        here.instructions += operator.count;
                    }
                }
                if !is_of_file {
                    return Ok(());
                }
                arrivals.insert(
                    function.id,
                    positions.arrivals_in(function, window, &counts)?,
                );
                for row in profile.branch_rows(&Scope::Only(vec![function.id]))? {
                    let Some(at) = row.position.filter(|at| is_here(Line::from(*at))) else {
                        continue;
                    };
                    let count = operators[row.op.index()].count;
                    branches.entry(at.line).or_default().push(SourceBranch {
                        offset: row.offset.0,
                        count,
                        ways: ways(function, row.block, count, &counts),
                    });
                }
                Ok(())
            },
        )?;
        let lines = lines.into_iter();
        let mut lines: HashMap<u32, _> = lines
            .map(|(line, here)| (line.number, (line, here)))
            .collect();
        for row in &mut document.lines {
            let executed = row.count > Some(0) || row.instructions > 0;
            let here = lines.remove(&row.line);
            if let Some(count) = &mut row.count {
                *count = match &here {
                    Some((line, here)) => {
                        let of = |function| arrivals[function].at(*line);
                        let sum = here.functions.iter().map(of).sum::<Option<u64>>();
                        sum.with_context(|| ambiguous(profile, *line))?
                    }
                    None => 0,
                };
            }
            row.instructions = here.map_or(0, |(_, here)| here.instructions);
            row.elsewhere = row.count == Some(0) && executed;
            row.branches = branches.remove(&row.line).unwrap_or_default();
        }
        Ok(())
    })
}

/// A line's executions in a stretch.
#[derive(Default)]
struct InRange {
    instructions: u64,
    /// The functions with code of the line, or of calls that were inlined on it.
    functions: Vec<FuncId>,
}

/// Replaces the counts of files with the counts in a stretch.
pub(super) fn files_in(
    session: &Session,
    profile: &Profile<'_>,
    bounds: &Bounds,
    document: &mut FilesDocument,
) -> Result<()> {
    let window = with_names(session, |program| bounds.window(&program.positions()?))?;
    let counts = session.window_counts(window)?;
    let mut executed: HashMap<Line, u64> = HashMap::new();
    each_function(session, profile, (window, &counts), |_, operators| {
        let calls = CallLines::of(operators, profile.source());
        for operator in operators.iter().filter(|operator| operator.count > 0) {
            if let Some(line) = line_of(operator) {
                *executed.entry(line).or_default() += operator.count;
            }
            for &line in calls.at(operator.op) {
                executed.entry(line).or_default();
            }
        }
        Ok(())
    })?;
    let mut by_file: HashMap<&str, (u64, u64)> = HashMap::new();
    for (line, instructions) in &executed {
        let (lines, sum) = by_file.entry(profile.file(line.file)).or_default();
        *lines += 1;
        *sum += instructions;
    }
    for entry in &mut document.files {
        let here = by_file.get(entry.file.as_str()).copied();
        (entry.executed, entry.instructions) = here.unwrap_or_default();
    }
    document.range = Some(SourceRange {
        first_t: window.first,
        last_t: window.last,
    });
    Ok(())
}

/// Passes each function that is executed in a stretch to `act`, with the counts of its operators
/// in the stretch.
fn each_function(
    session: &Session,
    profile: &Profile<'_>,
    (window, counts): (Window, &WindowCounts),
    mut act: impl FnMut(&Function, &[OperatorCount]) -> Result<()>,
) -> Result<()> {
    let ended = ended_in(session, window)?;
    let mut operators = Vec::new();
    for (function, _, whole) in profile.functions() {
        let here = in_range(function, whole, counts, ended);
        if here.blocks.iter().any(|(_, count)| *count > 0) {
            profile.operators(function, &here, &mut operators)?;
            act(function, &operators)?;
        }
    }
    Ok(())
}

/// Returns the ways out of a branch. Directions with the same target are counted together, as in
/// the path. The executions in `count` that no other way accounts for are counted as leaving the
/// function.
fn ways(function: &Function, block: BlockId, count: u64, counts: &WindowCounts) -> Vec<SourceWay> {
    let mut found: Vec<(BlockId, SourceWay)> = Vec::new();
    for &edge in function.cfg.graph.out_edges(block) {
        let edge = &function.cfg.edges[edge];
        let known = found.iter_mut().find(|(to, _)| *to == edge.to);
        if let Some((_, way)) = known {
            way.kind = format!("{}, {}", way.kind, edge.kind);
            continue;
        }
        let way = SourceWay {
            kind: edge.kind.to_string(),
            count: counts.after(function.id, block, edge.to),
        };
        found.push((edge.to, way));
    }
    let is_exit = |to| function.cfg.blocks[to].end == BlockEnd::Exit;
    let inside = found.iter().filter(|(to, _)| !is_exit(*to));
    let inside: u64 = inside.map(|(_, way)| way.count).sum();
    for (to, way) in &mut found {
        if is_exit(*to) {
            way.count = count.saturating_sub(inside);
        }
    }
    found.into_iter().map(|(_, way)| way).collect()
}
