//! Compares the size of the stored path of a whole run with the simplest ways to store it.

use anyhow::Result;
use serde::Serialize;

use super::branches::Branches;
use super::columns::{Column, table};
use super::subject::Subject;
use super::{Row, name};

/// Sizes in bits for the whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Sizes {
    /// The data that the run writes.
    pub recorded: u64,
    segments: u64,
    directory: u64,
    /// The growth of the file caused by the path, including overhead.
    pub file: u64,
    /// The sizes of all branch outcomes, packed and at the entropy of each branch.
    branches: u64,
    branch_entropy: f64,
    /// Seconds to build the path from the recording.
    build_seconds: f64,
}

pub(crate) fn measure(subject: &Subject) -> Result<Sizes> {
    let branches = Branches::of(&subject.program, &subject.counts);
    let directory = subject.path.segments().directory().encode();
    Ok(Sizes {
        recorded: subject.built.bits,
        segments: 8 * subject.built.stored,
        directory: 8 * directory.len() as u64,
        file: 8 * subject.growth,
        branches: branches.packed,
        branch_entropy: branches.entropy,
        build_seconds: subject.build_seconds,
    })
}

pub(crate) fn report(rows: &[Row]) -> String {
    let per_block = |title: &str, of: fn(&Sizes) -> f64| {
        Column::cost(title, 4, move |row: &Row| {
            of(&row.sizes) / row.blocks as f64
        })
    };
    table(
        "Stored size of the whole run, in bits per executed block: the segments, the segments with their directory, and the growth of the file; for comparison, a bit for each branch, and the entropy of each branch's outcomes. The raw trace has 32",
        rows,
        name,
        &[
            Column::fact("Mblocks", 0, |row: &Row| row.blocks as f64 / 1e6),
            per_block("recorded", |s| s.recorded as f64),
            per_block("segments", |s| s.segments as f64),
            per_block("with directory", |s| (s.segments + s.directory) as f64),
            per_block("in the file", |s| s.file as f64),
            per_block("branch bits", |s| s.branches as f64),
            per_block("branch entropy", |s| s.branch_entropy),
            Column::cost("of entropy", 3, |row: &Row| {
                row.sizes.file as f64 / row.sizes.branch_entropy
            }),
            Column::gain("raw/ours", 0, |row: &Row| {
                32.0 * row.blocks as f64 / row.sizes.file as f64
            }),
            Column::fact("build s", 1, |row: &Row| row.sizes.build_seconds),
        ],
    )
}
