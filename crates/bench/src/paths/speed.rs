//! Measures how fast words are converted to paths, paths to a grammar, and the grammar to bytes.

use std::time::Instant;

use afterimage_record::GrammarSink;
use afterimage_wpp::codec::{self, NodeContext};
use afterimage_wpp::{Limits, Segment};
use anyhow::{Result, ensure};
use serde::Serialize;

use super::columns::{Column, table};
use super::scheme::Prepared;
use super::subject::Subject;
use super::tally::Tally;
use super::{Row, name};
use crate::statistics::Sample;

/// Speeds in millions of executed blocks per second, on one core.
#[derive(Debug, Serialize)]
pub(crate) struct Speed {
    /// The speed of converting words to paths, which are dropped.
    pub regenerate: Sample,
    /// The speed of converting words to a grammar.
    build: f64,
    /// The speed of converting the grammar to bytes.
    encode: f64,
    /// The speed of converting words to bytes.
    pub compact: f64,
    /// The number of executed paths.
    pub paths: u64,
    segments: usize,
    symbols: usize,
}

pub(crate) fn measure(subject: &Subject, scheme: &Prepared, runs: usize) -> Result<Speed> {
    let mut words: Vec<u64> = Vec::new();
    scheme.run(&subject.command, |more| words.extend_from_slice(more))?;
    let mut regenerate = Vec::new();
    let (mut blocks, mut paths) = (0, 0);
    for _ in 0..runs {
        let start = Instant::now();
        let mut regenerator = scheme.regenerator(&subject.program)?;
        let mut tally = Tally::default();
        regenerator.feed(&words, &mut tally)?;
        regenerate.push(start.elapsed().as_secs_f64());
        (blocks, paths) = (regenerator.time(), tally.paths);
    }

    let start = Instant::now();
    let mut regenerator = scheme.regenerator(&subject.program)?;
    let mut segments: Vec<Segment> = Vec::new();
    let mut contexts: Vec<NodeContext> = Vec::new();
    let mut sink = GrammarSink::new(Limits::default(), |segment, all: &[_]| {
        segments.push(segment);
        contexts.clear();
        contexts.extend_from_slice(all);
    });
    regenerator.feed(&words, &mut sink)?;
    sink.finish();
    let build = start.elapsed().as_secs_f64();
    let built: u64 = segments.iter().map(|segment| segment.length).sum();
    ensure!(
        built == blocks,
        "{built} blocks in the segments, {blocks} regenerated"
    );

    let start = Instant::now();
    for segment in &segments {
        codec::encode(segment, &contexts);
    }
    let encode = start.elapsed().as_secs_f64();
    let rate = |seconds: f64| blocks as f64 / 1e6 / seconds;
    Ok(Speed {
        regenerate: Sample::of(regenerate.into_iter().map(rate).collect()),
        build: rate(build),
        encode: rate(encode),
        compact: rate(build + encode),
        paths,
        segments: segments.len(),
        symbols: segments.iter().map(|s| s.grammar.symbols.len()).sum(),
    })
}

pub(crate) fn report(rows: &[Row]) -> String {
    table(
        "Speed in millions of executed blocks per second and core: regeneration alone; regeneration into a grammar; coding that grammar; everything together (compaction)",
        rows,
        name,
        &[
            Column::fact("Mblocks", 0, |row: &Row| row.blocks as f64 / 1e6),
            Column::fact("Mpaths", 1, |row: &Row| row.speed.paths as f64 / 1e6),
            Column::gain("regenerate", 0, |row: &Row| row.speed.regenerate),
            Column::gain("and build", 0, |row: &Row| row.speed.build),
            Column::gain("encode", 0, |row: &Row| row.speed.encode),
            Column::gain("compact", 0, |row: &Row| row.speed.compact),
            Column::fact("segments", 0, |row: &Row| row.speed.segments as u64),
            Column::fact("Msymbols", 2, |row: &Row| row.speed.symbols as f64 / 1e6),
        ],
    )
}
