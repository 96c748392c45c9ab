//! Measures how long it takes to find the last writer of an address before a time, and compares the
//! answers with following the run.

use std::time::Instant;

use afterimage_ids::NodeId;
use afterimage_machine::{NodeCode, Observer, Range};
use afterimage_replay::steps::{LastWrites, Run, recorded_checkpoints};
use anyhow::{Context, Result, ensure};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::follow::machine;
use super::questions::{Opened, Times};
use super::{Row, name};
use crate::paths::columns::{Column, table};
use crate::paths::random::Random;
use crate::paths::subject::Subject;

/// The number of questions.
const QUESTIONS: u64 = 300;

/// Times of questions, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LastWriters {
    /// The times with the whole execution trace, which shows where executions wrote.
    with: Times,
    /// The times without the trace, by following the run from a checkpoint.
    pub without: Times,
    /// The times for questions after the last checkpoint, which only following can answer. A run
    /// that is traced whole has no such questions.
    behind: Times,
    /// The percentage of questions after the last checkpoint.
    share: f64,
}

/// A written byte, a later time, and the beginning of the node that last wrote the byte before that
/// time.
struct Question {
    memory: u32,
    address: u64,
    time: u64,
    node: u64,
}

/// An observer that records the times at which the requested bytes were written.
#[derive(Default)]
struct Noted {
    /// The time at which the current node began.
    now: u64,
    /// The number of writes between questions.
    every: u64,
    writes: u64,
    chosen: Vec<(u32, u64, u64)>,
    /// The times at which each byte was written, by memory and address.
    asked: FxHashMap<(u32, u64), Vec<u64>>,
}

impl Noted {
    fn written(&mut self, range: Range) {
        self.writes += 1;
        if self.every > 0 && self.writes.is_multiple_of(self.every) {
            self.chosen.push((range.memory, range.address, self.now));
        }
        if self.asked.is_empty() {
            return;
        }
        // Bulk operations write more bytes than there are questions.
        if range.length > self.asked.len() as u64 {
            for (&(memory, address), times) in &mut self.asked {
                let inside = range.address..range.address + range.length;
                if memory == range.memory && inside.contains(&address) {
                    times.push(self.now);
                }
            }
            return;
        }
        for address in range.address..range.address + range.length {
            if let Some(times) = self.asked.get_mut(&(range.memory, address)) {
                times.push(self.now);
            }
        }
    }
}

impl Observer for Noted {
    const REGISTERS: bool = false;

    fn node(&mut self, _: NodeId, _: &NodeCode) {}

    fn write(&mut self, _: usize, range: Range) {
        self.written(range);
    }

    fn copy(&mut self, _: usize, _: Range, to: Range) {
        self.written(to);
    }

    fn host_write(&mut self, range: Range) {
        self.written(range);
    }
}

fn follow(subject: &Subject, blocks: u64, noted: &mut Noted) -> Result<()> {
    let mut machine = machine(subject)?;
    let mut cursor = subject.path.cursor();
    while let Some(visit) = cursor.next()? {
        if visit.start > blocks {
            break;
        }
        noted.now = visit.start;
        machine.step(visit.node, visit.length, noted)?;
    }
    Ok(())
}

/// Chooses every n-th write, and a random later time for each.
fn questions(subject: &Subject, blocks: u64) -> Result<Vec<Question>> {
    let mut counted = Noted::default();
    follow(subject, blocks, &mut counted)?;
    let mut noted = Noted {
        every: (counted.writes / QUESTIONS).max(1),
        ..Noted::default()
    };
    follow(subject, blocks, &mut noted)?;
    let chosen = std::mem::take(&mut noted.chosen);
    let mut truth = Noted::default();
    for &(memory, address, _) in &chosen {
        truth.asked.insert((memory, address), Vec::new());
    }
    follow(subject, blocks, &mut truth)?;
    let mut random = Random::new();
    let mut cursor = subject.path.cursor();
    let mut questions = Vec::new();
    for (memory, address, written) in chosen {
        let time = written + random.up_to(blocks - written + 1) - 1;
        let visit = cursor.seek(time)?.context("a time is outside of the run")?;
        // Asks at the beginning of a node, so that the writes of earlier nodes come before the
        // question.
        if visit.start <= written {
            continue;
        }
        let times = &truth.asked[&(memory, address)];
        let before = times.partition_point(|&at| at < visit.start);
        questions.push(Question {
            memory,
            address,
            time: visit.start,
            node: times[before - 1],
        });
    }
    Ok(questions)
}

pub(crate) fn measure(subject: &Subject, opened: &Opened<'_>, blocks: u64) -> Result<LastWriters> {
    let questions = questions(subject, blocks)?;
    let epochs = opened.epochs()?;
    let values = opened.values(&epochs)?;
    let checkpoints = recorded_checkpoints(&opened.file, &opened.path)?;
    let checkpoints = checkpoints.context("the recording has no checkpoints")?;
    let run = Run {
        program: opened.program,
        module: opened.bytes,
        continuations: opened.continuations(),
        path: &opened.path,
        // The programs of the corpus end by themselves.
        stopped: None,
        checkpoints: Some(&checkpoints),
        snapshots: None,
        progress: &|_| {},
    };
    let (behind, indexed): (Vec<_>, Vec<_>) = questions
        .into_iter()
        .partition(|question| question.time > checkpoints.end());
    let share = 100.0 * behind.len() as f64 / (behind.len() + indexed.len()).max(1) as f64;
    let ask = |questions: &[Question], values| -> Result<Times> {
        let mut writes = LastWrites::new(run, opened.file.log()?, &checkpoints, values)?;
        let mut seconds = Vec::new();
        let mut cursor = opened.path.cursor();
        for question in questions {
            let start = Instant::now();
            let found = writes.before(question.memory, question.address, question.time)?;
            seconds.push(start.elapsed().as_secs_f64());
            let found = found.context("a write was not found")?;
            let visit = cursor.seek(found.time)?;
            ensure!(
                visit.is_some_and(|visit| visit.start == question.node),
                "the last write of {:#x} before t={} is said to be at t={}, but the node at t={} writes it",
                question.address,
                question.time,
                found.time,
                question.node
            );
        }
        Ok(Times::of(seconds))
    };
    Ok(LastWriters {
        with: ask(&indexed, Some(&values))?,
        without: ask(&indexed, None)?,
        behind: ask(&behind, Some(&values))?,
        share,
    })
}

pub(crate) fn report(rows: &[Row]) -> String {
    table(
        "The last writer of an address before a time, in microseconds, median and 99th percentile, for random writes and random later times. The answer comes from the whole execution trace, or from following the run from a checkpoint. A window ends after its last checkpoint; questions about later times can be answered only by following the run, so they have columns of their own, with their share. Every answer was compared with the run followed from its beginning",
        rows,
        name,
        &[
            Column::cost("with values", 1, |row: &Row| row.last_writes.with.median),
            Column::cost("99 %", 0, |row: &Row| row.last_writes.with.most),
            Column::cost("by following", 1, |row: &Row| {
                row.last_writes.without.median
            }),
            Column::cost("99 %", 0, |row: &Row| row.last_writes.without.most),
            Column::cost("behind", 1, |row: &Row| row.last_writes.behind.median),
            Column::cost("of them, %", 0, |row: &Row| row.last_writes.share),
        ],
    )
}
