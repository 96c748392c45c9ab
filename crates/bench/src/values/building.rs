//! Measures only the time to build whole execution traces, and how much of it could be saved.

use anyhow::{Context, Result};
use serde::Serialize;

use super::build::{follow_alone, measure, plain_seconds};
use crate::corpus::{Entry, entries};
use crate::machine::Machine;
use crate::paths::columns::{Column, table};
use crate::paths::subject::Subject;
use crate::publish::publish;
use crate::statistics::Sample;

/// The measurements of one program.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// The number of traced blocks, from the first.
    blocks: u64,
    /// The number of executed statements in the traced blocks.
    statements: u64,
    /// Seconds of the plain program for the same number of blocks.
    plain: f64,
    /// Wall-clock seconds to build the trace.
    seconds: Sample,
    /// Processor time of all threads.
    processor: Sample,
    /// Seconds to follow the run without building.
    follow: Sample,
    /// Seconds to follow the run and record checkpoints, without building.
    follow_and_check: Sample,
}

impl Row {
    fn ratio(&self, sample: Sample) -> Sample {
        let of = |seconds| seconds / self.plain;
        Sample {
            median: of(sample.median),
            min: of(sample.min),
            max: of(sample.max),
            runs: sample.runs,
        }
    }
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    rows: Vec<Row>,
}

pub(crate) fn run(arguments: &super::Options) -> Result<()> {
    let mut rows = Vec::new();
    for entry in entries(&arguments.common)? {
        eprintln!("{} …", entry.name);
        rows.push(of(&entry, arguments).with_context(|| entry.name.clone())?);
    }
    let results = Results {
        machine: Machine::this(),
        rows,
    };
    let text = report(&results);
    let date = &results.machine.date;
    publish(
        arguments.common.out.as_deref(),
        date,
        "building",
        &text,
        &results,
    )
}

fn of(entry: &Entry, arguments: &super::Options) -> Result<Row> {
    let subject = Subject::new(entry, &arguments.common)?;
    let last = arguments.last();
    let whole = plain_seconds(&subject)?;
    let (mut seconds, mut processor) = (Vec::new(), Vec::new());
    let (mut follow, mut follow_and_check) = (Vec::new(), Vec::new());
    let (mut blocks, mut statements) = (0, 0);
    for _ in 0..arguments.common.runs.max(1) {
        let (built, index) = measure(&subject, last)?;
        (blocks, statements) = (index.length, index.statements);
        seconds.push(built.seconds);
        processor.push(built.processor_seconds);
        follow.push(follow_alone(&subject, last, false)?);
        follow_and_check.push(follow_alone(&subject, last, true)?);
    }
    Ok(Row {
        name: entry.name.clone(),
        blocks,
        statements,
        plain: whole * blocks as f64 / subject.built.time as f64,
        seconds: Sample::of(seconds),
        processor: Sample::of(processor),
        follow: Sample::of(follow),
        follow_and_check: Sample::of(follow_and_check),
    })
}

fn report(results: &Results) -> String {
    let machine = &results.machine;
    let text = table(
        "Building whole execution traces: elapsed seconds, and processor time in nanoseconds per statement. As ratios to the plain program's time for the same number of blocks: the elapsed time; half of the processor time, which is what two processors would take if they never waited; and the time of the following thread alone, with its results dropped, with and without checkpoints",
        &results.rows,
        |row| &row.name,
        &[
            Column::fact("Mblocks", 1, |row: &Row| row.blocks as f64 / 1e6),
            Column::fact("s", 2, |row: &Row| row.seconds),
            Column::cost("ns a statement", 1, |row: &Row| {
                1e9 * row.processor.median / row.statements as f64
            }),
            Column::cost("time", 0, |row: &Row| row.ratio(row.seconds)),
            Column::cost("half the processor time", 0, |row: &Row| {
                row.ratio(row.processor).median / 2.0
            }),
            Column::cost("following with checkpoints", 0, |row: &Row| {
                row.ratio(row.follow_and_check)
            }),
            Column::cost("following", 0, |row: &Row| row.ratio(row.follow)),
        ],
    );
    format!(
        "{}, {} cores, {} GiB, {}, {}; medians, smallest and largest.\n{text}",
        machine.processor, machine.cores, machine.memory_gib, machine.engine, machine.date,
    )
}
