//! Builds a whole execution trace into the recording, and measures how long that takes.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use afterimage_record::measure::{Setting, compile};
use afterimage_replay::whole_path::{FileSegments, RecordedPath};
use afterimage_trace::{Kind, TraceError, TraceFile, TraceWriter};
use afterimage_wet::checkpoint::{CheckpointWriter, INTERVAL, Vertex};
use afterimage_wet::{EpochWriter, Index, LeftOut, Printed, PrintedWriter, Run, Sinks, Watch};
use anyhow::Result;
use serde::Serialize;

use super::{Row, name};
use crate::paths::columns::{Column, table};
use crate::paths::subject::Subject;

/// The cost of building.
#[derive(Debug, Serialize)]
pub(crate) struct Built {
    /// Wall-clock seconds of building. Writing the path's opened grammars counts in proportion to
    /// the traced blocks.
    pub seconds: f64,
    /// Processor time of all threads.
    pub processor_seconds: f64,
    /// The number of bytes added to the file.
    pub growth: u64,
    /// The number of added bytes that are checkpoints.
    pub checkpoints: u64,
    /// The number of added bytes that are the opened grammars of the whole path.
    pub grammars: u64,
    /// The number of added bytes that are program output.
    pub printed: u64,
    /// The progress by epoch.
    pub epochs: Vec<Grown>,
}

/// The progress when an epoch was written.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Grown {
    /// The number of blocks before the epoch.
    pub before: u64,
    /// The number of bytes written until the epoch's end.
    pub bytes: u64,
    /// The number of seconds until the epoch's end.
    pub seconds: f64,
}

/// Opens a run up to a block, with nothing decoded yet.
fn run<'a>(
    subject: &'a Subject,
    path: &'a RecordedPath,
    left_out: &'a LeftOut,
    last: u64,
) -> Run<'a, FileSegments> {
    Run {
        program: &subject.program,
        bytes: &subject.bytes,
        path,
        continuations: &path.segments().directory().continuations,
        window: 1..=last,
        left_out,
        // The programs of the corpus end by themselves.
        stopped: None,
        epoch: Run::<FileSegments>::EPOCH,
    }
}

/// Returns the seconds to follow the run and drop the results, with or without checkpoints.
pub(crate) fn follow_alone(subject: &Subject, last: u64, checkpoints: bool) -> Result<f64> {
    let path = subject.reopened()?;
    let log = subject.file.log()?;
    let nothing = LeftOut::NOTHING;
    let run = run(subject, &path, &nothing, last);
    let start = Instant::now();
    run.follow_alone(log, checkpoints.then_some(INTERVAL))?;
    Ok(start.elapsed().as_secs_f64())
}

pub(crate) fn measure(subject: &Subject, last: u64) -> Result<(Built, Index)> {
    let at = subject.folder.path().join("run.aft");
    let path = subject.reopened()?;
    let nothing = LeftOut::NOTHING;
    let run = run(subject, &path, &nothing, last);
    let before = TraceFile::open(&at)?;
    let out = TraceWriter::append(&at)?;
    let mut writer = EpochWriter::new(&out)?;
    let mut checkpoints = CheckpointWriter::new(&out)?;
    let mut printed = PrintedWriter::new(&out)?;
    let mut epochs: Vec<Grown> = Vec::new();
    let processor = processor_seconds();
    let start = Instant::now();
    let index = run.build_until(
        before.log()?,
        |before, epoch| {
            writer.put(before, &epoch)?;
            let so_far = epochs.last().map_or(0, |grown| grown.bytes);
            epochs.push(Grown {
                before,
                bytes: so_far + epoch.len() as u64,
                seconds: start.elapsed().as_secs_f64(),
            });
            Ok::<_, TraceError>(())
        },
        Sinks {
            interval: INTERVAL,
            vertices: |vertex: &Vertex| checkpoints.put(vertex),
            printed: |call: &Printed<'_>| printed.put(call),
        },
        Watch {
            progress: |_| {},
            stop: &AtomicBool::new(false),
        },
    )?;
    checkpoints.finish(index.nodes, INTERVAL)?;
    printed.finish(index.length)?;
    writer.finish(&out, &index)?;
    let mut seconds = start.elapsed().as_secs_f64();
    let mut processor_seconds = processor_seconds() - processor;
    let start = Instant::now();
    path.segments().write_grammars(&out)?;
    let grammars = start.elapsed().as_secs_f64() * index.length as f64 / subject.built.time as f64;
    seconds += grammars;
    processor_seconds += grammars;
    let start = Instant::now();
    out.commit()?;
    seconds += start.elapsed().as_secs_f64();
    drop(out);
    let after = TraceFile::open(&at)?;
    let built = Built {
        seconds,
        processor_seconds,
        growth: after.length() - before.length(),
        checkpoints: after.last(Kind::CHECKPOINTS).map_or(0, |c| c.stored()),
        grammars: after
            .last(Kind::PATH_GRAMMARS)
            .map_or(0, |grammars| grammars.stored()),
        printed: after
            .last(Kind::PRINTED)
            .map_or(0, |printed| printed.stored()),
        epochs,
    };
    Ok((built, index))
}

impl Row {
    /// Returns the time to build as a ratio to the plain program's time for the same blocks.
    pub(super) fn building_to_plain(&self) -> f64 {
        self.built.seconds / (self.plain_seconds * self.blocks as f64 / self.run_blocks as f64)
    }
}

/// Returns the seconds of the plain program, as the median of three runs.
pub(crate) fn plain_seconds(subject: &Subject) -> Result<f64> {
    let plain = compile(Setting::default(), &subject.bytes)?;
    let mut seconds = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        plain.run(&subject.command)?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[1])
}

/// Returns the processor time that this process has used so far; 0 if the system does not report
/// it.
fn processor_seconds() -> f64 {
    /// Linux reports hundredths of a second to programs.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name is in brackets and may contain anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / TICKS
}

pub(crate) fn report(rows: &[Row]) -> String {
    table(
        "Building: millions of executed statements per second of elapsed time (one thread follows, one determines the writers of values, and as many as there are processors code the result) and per second of the processor time of all; and the elapsed time as a ratio to the plain program's for the same number of blocks",
        rows,
        name,
        &[
            Column::fact("Mblocks", 1, |row: &Row| row.blocks as f64 / 1e6),
            Column::fact("of the run's", 1, |row: &Row| row.run_blocks as f64 / 1e6),
            Column::fact("Mstatements", 1, |row: &Row| row.statements() / 1e6),
            Column::fact("s", 2, |row: &Row| row.built.seconds),
            Column::gain("M/s", 1, |row: &Row| {
                row.statements() / 1e6 / row.built.seconds
            }),
            Column::gain("M/s and core", 1, |row: &Row| {
                row.statements() / 1e6 / row.built.processor_seconds
            }),
            Column::cost("to the plain program", 0, Row::building_to_plain),
            Column::fact("epochs", 0, |row: &Row| row.built.epochs.len() as u64),
        ],
    )
}
