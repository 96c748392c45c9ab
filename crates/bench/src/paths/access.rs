//! Measures how fast a stored path is read at any position, forward, backward, and by occurrence.

use std::time::{Duration, Instant};

use afterimage_replay::whole_path::{PathFileError, RecordedPath};
use afterimage_wpp::{Cursor, PathError, Segments, Visit};
use anyhow::{Result, ensure};
use serde::Serialize;

use super::columns::{Column, table};
use super::random::Random;
use super::subject::Subject;
use super::{Row, name};
use crate::statistics::Sample;

/// The cost of reading.
#[derive(Debug, Serialize)]
pub(crate) struct Access {
    /// Milliseconds to open the file and the path.
    open_ms: f64,
    /// The speed of reading, decoding and checking all segments, in millions of blocks per second.
    open_rate: f64,
    /// Milliseconds to go to a random time in a path that was just opened.
    cold_ms: Sample,
    /// Nanoseconds to go to a random time when the segments are already open.
    pub seek_ns: f64,
    pub forward_ns: f64,
    pub backward_ns: f64,
    /// The mean number of blocks passed in one step over a node.
    blocks_per_step: f64,
    /// Milliseconds for the first question about a node's occurrences, with the segment open.
    first_ms: f64,
    rank_ns: f64,
    select_ns: f64,
}

/// The number of positions looked up in a path that was just opened.
const COLD: usize = 4;
/// The largest number of nodes to walk over.
const STEPS: u64 = 10_000_000;
/// The time for which to repeat a question.
const PATIENCE: Duration = Duration::from_millis(200);
/// The number of nodes whose occurrences are requested.
const ASKED: usize = 5;

type StepResult = Result<Option<Visit>, PathError<PathFileError>>;

pub(crate) fn measure(subject: &Subject) -> Result<Access> {
    let mut random = Random::new();
    let length = subject.path.length();
    let mut cold = Vec::new();
    for _ in 0..COLD {
        let path = subject.reopened()?;
        let start = Instant::now();
        path.cursor().seek(random.up_to(length))?;
        cold.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let path = &subject.path;
    let start = Instant::now();
    subject.open_all()?;
    let open_rate = length as f64 / 1e6 / start.elapsed().as_secs_f64();
    let (forward, visited, blocks) = walk(path, 0, Cursor::next)?;
    let (backward, back, blocks_back) = walk(path, length + 1, Cursor::previous)?;
    ensure!(
        (visited, blocks) == (back, blocks_back) || visited == STEPS,
        "{visited} nodes and {blocks} blocks forward, {back} and {blocks_back} backward"
    );
    let (first_ms, rank_ns, select_ns) = occurrences(path, &mut random)?;
    Ok(Access {
        open_ms: subject.open_seconds * 1e3,
        open_rate,
        cold_ms: Sample::of(cold),
        seek_ns: seeks(path, &mut random)?,
        forward_ns: forward / visited as f64,
        backward_ns: backward / back as f64,
        blocks_per_step: blocks as f64 / visited as f64,
        first_ms,
        rank_ns,
        select_ns,
    })
}

/// Returns the nanoseconds to go to a random position.
fn seeks(path: &RecordedPath, random: &mut Random) -> Result<f64> {
    let mut cursor = path.cursor();
    nanoseconds(|| {
        let time = random.up_to(path.length());
        let visit = cursor.seek(time)?;
        ensure!(
            visit.is_some_and(|visit| visit.start <= time && time <= visit.last()),
            "block {time} is not where the cursor went"
        );
        Ok(())
    })
}

/// Returns the nanoseconds for a question, which is repeated until the time is up.
fn nanoseconds(mut question: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    let (mut count, mut batch) = (0u32, 1);
    while start.elapsed() < PATIENCE {
        for _ in 0..batch {
            question()?;
        }
        count += batch;
        batch = (2 * batch).min(1 << 10);
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(count))
}

/// Walks from `from` by `step` until the path ends, but at most [`STEPS`] steps. Returns
/// nanoseconds, nodes and blocks.
fn walk<'a>(
    path: &'a RecordedPath,
    from: u64,
    step: impl Fn(&mut Cursor<'a, afterimage_replay::whole_path::FileSegments>) -> StepResult,
) -> Result<(f64, u64, u64)> {
    let mut cursor = path.cursor();
    cursor.seek(from)?;
    let (mut nodes, mut blocks) = (0, 0);
    let start = Instant::now();
    while nodes < STEPS {
        let Some(visit) = step(&mut cursor)? else {
            break;
        };
        nodes += 1;
        blocks += visit.length;
    }
    Ok((start.elapsed().as_secs_f64() * 1e9, nodes, blocks))
}

/// Returns the milliseconds of a node's first question and the nanoseconds of later questions, for
/// nodes from the most frequent to rare nodes.
fn occurrences(path: &RecordedPath, random: &mut Random) -> Result<(f64, f64, f64)> {
    let mut counts = std::collections::BTreeMap::new();
    for summary in path.segments().summaries() {
        for &(node, count) in &summary.node_counts {
            *counts.entry(node).or_insert(0) += count;
        }
    }
    let mut nodes: Vec<(u64, _)> = counts.into_iter().map(|(node, n)| (n, node)).collect();
    nodes.sort_unstable();
    nodes.reverse();
    let (mut first, mut rank, mut select) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..ASKED {
        let (count, node) = nodes[i * (nodes.len() - 1) / ASKED.max(1)];
        let all = path.executions([(node, 0)])?;
        ensure!(all.count() == count, "{node} is counted in two ways");
        let start = Instant::now();
        all.select(1)?;
        first.push(start.elapsed().as_secs_f64() * 1e3);
        // Also opens every segment in which the node occurs.
        for summary in path.segments().summaries() {
            all.rank(summary.before + 1)?;
        }
        rank.push(nanoseconds(|| {
            all.rank(random.up_to(path.length()))?;
            Ok(())
        })?);
        select.push(nanoseconds(|| {
            let number = random.up_to(count);
            let found = all.select(number)?.map(|occurrence| occurrence.number);
            ensure!(found == Some(number), "no {number}-th execution of {node}");
            Ok(())
        })?);
    }
    let median = |values| Sample::of(values).median;
    Ok((median(first), median(rank), median(select)))
}

pub(crate) fn report(rows: &[Row]) -> String {
    table(
        "Reading the stored path: opening it; decoding and checking all of it, in millions of blocks a second; a random position in a path just opened (cold) and with all segments open (ns); a step to the next and the previous node; the first question about a node's executions, and rank and select afterwards",
        rows,
        name,
        &[
            Column::cost("open ms", 1, |row: &Row| row.access.open_ms),
            Column::gain("all M/s", 0, |row: &Row| row.access.open_rate),
            Column::cost("cold ms", 1, |row: &Row| row.access.cold_ms),
            Column::cost("seek ns", 0, |row: &Row| row.access.seek_ns),
            Column::cost("next ns", 1, |row: &Row| row.access.forward_ns),
            Column::cost("previous ns", 1, |row: &Row| row.access.backward_ns),
            Column::cost("next ns/block", 2, |row: &Row| {
                row.access.forward_ns / row.access.blocks_per_step
            }),
            Column::cost("previous ns/block", 2, |row: &Row| {
                row.access.backward_ns / row.access.blocks_per_step
            }),
            Column::cost("first ms", 1, |row: &Row| row.access.first_ms),
            Column::cost("rank ns", 0, |row: &Row| row.access.rank_ns),
            Column::cost("select ns", 0, |row: &Row| row.access.select_ns),
        ],
    )
}
