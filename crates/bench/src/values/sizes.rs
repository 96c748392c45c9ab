//! Computes the bytes per statement, in our form and in the original form of the papers.

use afterimage_trace::{Event, Kind};
use afterimage_wet::Index;
use anyhow::{Context, Result};
use serde::Serialize;

use super::build::Built;
use super::observed::Observed;
use super::{Row, name};
use crate::paths::columns::{Column, table};
use crate::paths::subject::Subject;

/// The original size of a statement in the paper's programs, in bytes: 9588.99 MiB for 646.9
/// million statements (Table I).
const ORIGINAL: f64 = 9588.99 * MIB / 646.9e6;
/// The part of [`ORIGINAL`] that dependences take. They take 5390.12 MiB (Table III), which is 1.09
/// dependences of 8 bytes per statement.
const ORIGINAL_LABELS: f64 = 5390.12 * MIB / 646.9e6;
const MIB: f64 = (1 << 20) as f64;

/// The bytes needed to answer questions without the engine.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sizes {
    labels: u64,
    far: u64,
    values: u64,
    copies: u64,
    directory: u64,
    /// The index and the file's overhead for every chunk.
    frame: u64,
    /// The checkpoints, which contain memory at a time and its last writers.
    checkpoints: u64,
    /// The stored output of the program.
    printed: u64,
    /// The path's segments and directory, in proportion to the traced blocks.
    path: f64,
    /// The path's opened grammars, in proportion to the traced blocks.
    grammars: f64,
    /// The part of the log that was read.
    log: f64,
}

impl Sizes {
    pub(crate) fn total(&self) -> f64 {
        let path = self.path + self.grammars;
        let beside = self.checkpoints + self.printed;
        path + self.of_values() + self.of_labels() + beside as f64
    }

    /// Returns the size of values, both stored and from the host.
    pub(crate) fn of_values(&self) -> f64 {
        self.values as f64 + self.log
    }

    /// Returns the size of dependences, which is everything except the path and its opened
    /// grammars, the values, the checkpoints and the printed output.
    pub(crate) fn of_labels(&self) -> f64 {
        (self.labels + self.far + self.copies + self.directory + self.frame) as f64
    }

    /// Returns the size of the timestamps.
    pub(crate) fn of_times(&self) -> f64 {
        self.path
    }
}

pub(crate) fn measure(
    subject: &Subject,
    built: &Built,
    index: &Index,
    observed: &Observed,
) -> Result<Sizes> {
    let sizes = &index.sizes;
    let (labels, far) = (sizes.labels.0, sizes.far.0);
    let (values, copies) = (sizes.values.0, sizes.copies.0);
    let directory = sizes.directory;
    let told = labels + far + values + copies + directory;
    let log = subject
        .file
        .last(Kind::LOG)
        .context("the recording has no log")?;
    let share = index.length as f64 / subject.built.time as f64;
    Ok(Sizes {
        labels,
        far,
        values,
        copies,
        directory,
        frame: built
            .growth
            .saturating_sub(told + built.checkpoints + built.grammars + built.printed),
        checkpoints: built.checkpoints,
        printed: built.printed,
        path: subject.growth as f64 * share,
        grammars: built.grammars as f64 * share,
        log: log.stored() as f64 * read_share(subject, observed.host_calls)?,
    })
}

/// Returns the share of the log that covers the first `calls` host calls, by the contents of events
/// before compression.
fn read_share(subject: &Subject, calls: u64) -> Result<f64> {
    /// The approximate size of an event without its written bytes.
    const EVENT: u64 = 16;
    let (mut seen, mut read, mut all) = (0, 0u64, 0u64);
    for event in subject.file.log()? {
        let mut weight = EVENT;
        if let Event::HostCall { writes, .. } = &event? {
            seen += 1;
            weight += writes.iter().map(|w| w.bytes.len() as u64).sum::<u64>();
        }
        all += weight;
        read += if seen <= calls { weight } else { 0 };
    }
    Ok(read as f64 / all.max(1) as f64)
}

impl Row {
    fn original_times(&self) -> f64 {
        4.0 * self.statements()
    }

    fn original_values(&self) -> f64 {
        4.0 * self.facts.values as f64
    }

    fn original_labels(&self, by_block: bool) -> f64 {
        let d = &self.dependences;
        8.0 * (d.data() + d.control(by_block)) as f64
    }

    /// Returns the papers' original size, with one control dependence per statement or per block.
    fn original(&self, by_block: bool) -> f64 {
        self.original_times() + self.original_values() + self.original_labels(by_block)
    }

    pub(super) fn bytes_per_statement(&self) -> f64 {
        self.sizes.total() / self.statements()
    }

    pub(super) fn factor(&self, by_block: bool) -> f64 {
        self.original(by_block) / self.sizes.total()
    }

    /// Returns the factor if a statement in the original form took as many bytes as in the paper's
    /// Table I.
    pub(super) fn factor_by_table(&self) -> f64 {
        ORIGINAL * self.statements() / self.sizes.total()
    }

    /// Returns the factor for dependences if a statement's dependences in the original form took as
    /// many bytes as in the paper's Table III.
    pub(super) fn factor_labels_by_table(&self) -> f64 {
        ORIGINAL_LABELS * self.statements() / self.sizes.of_labels()
    }

    /// Returns the factor with values in their true widths.
    pub(super) fn factor_true_width(&self) -> f64 {
        let wider = self.facts.width as f64 - self.original_values();
        (self.original(false) + wider) / self.sizes.total()
    }

    pub(super) fn factor_values(&self) -> f64 {
        self.original_values() / self.sizes.of_values()
    }

    pub(super) fn factor_values_true_width(&self) -> f64 {
        self.facts.width as f64 / self.sizes.of_values()
    }

    pub(super) fn factor_labels(&self, by_block: bool) -> f64 {
        self.original_labels(by_block) / self.sizes.of_labels()
    }

    pub(super) fn factor_times(&self) -> f64 {
        self.original_times() / self.sizes.of_times()
    }
}

pub(crate) fn report(rows: &[Row]) -> String {
    let per = |title: &str, of: fn(&Sizes) -> f64| {
        Column::cost(title, 4, move |row: &Row| of(&row.sizes) / row.statements())
    };
    let mut out = table(
        "Bytes per executed statement: everything from which questions are answered; labels of reads and of far variables, kept values, copies, directories, the index and the file's own bytes; checkpoints; the path, its opened grammars, the printed output, the log. Wider: calls, returns and jumps count as statements, too",
        rows,
        name,
        &[
            per("all", Sizes::total),
            Column::cost("wider", 4, |row: &Row| {
                row.sizes.total() / row.facts.all_statements() as f64
            }),
            per("labels", |s| s.labels as f64),
            per("far", |s| s.far as f64),
            per("values", |s| s.values as f64),
            per("copies", |s| s.copies as f64),
            per("directory", |s| s.directory as f64),
            per("file", |s| s.frame as f64),
            per("checkpoints", |s| s.checkpoints as f64),
            per("path", |s| s.path),
            per("opened", |s| s.grammars),
            per("printed", |s| s.printed as f64),
            per("log", |s| s.log),
        ],
    );
    out += &table(
        "The factor by which the trace is smaller than the papers' original form: 4 bytes of time per statement, 4 bytes per value (true: the value's own width), 8 bytes per dependence. There is one control dependence per statement, or one per block. By Tables I and III: as if a statement had the 15.5 bytes, and the 1.09 dependences of 8 bytes, that it has in the paper. The last columns are shares of the stored bytes (Figure 14)",
        rows,
        name,
        &[
            Column::fact("original B", 2, |row: &Row| {
                row.original(false) / row.statements()
            }),
            Column::fact("by block B", 2, |row: &Row| {
                row.original(true) / row.statements()
            }),
            Column::gain("factor", 1, |row: &Row| row.factor(false)),
            Column::gain("by block", 1, |row: &Row| row.factor(true)),
            Column::gain("by Table I", 1, Row::factor_by_table),
            Column::gain("true width", 1, Row::factor_true_width),
            Column::gain("values", 1, Row::factor_values),
            Column::gain("values, true", 1, Row::factor_values_true_width),
            Column::gain("labels", 1, |row: &Row| row.factor_labels(false)),
            Column::gain("labels, by block", 1, |row: &Row| row.factor_labels(true)),
            Column::gain("by Table III", 1, Row::factor_labels_by_table),
            Column::gain("times", 0, Row::factor_times),
            Column::fact("times %", 1, |row: &Row| {
                100.0 * row.sizes.of_times() / row.sizes.total()
            }),
            Column::fact("values %", 1, |row: &Row| {
                100.0 * row.sizes.of_values() / row.sizes.total()
            }),
            Column::fact("labels %", 1, |row: &Row| {
                100.0 * row.sizes.of_labels() / row.sizes.total()
            }),
        ],
    );
    out
}
