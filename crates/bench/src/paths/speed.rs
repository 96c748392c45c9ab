//! How fast words become paths, paths a grammar, and the grammar bytes; and back.

use std::time::Instant;

use afterimage_ids::{FuncId, NodeId};
use afterimage_paths::{ExecutedPath, Sink};
use afterimage_record::GrammarSink;
use afterimage_wpp::codec::{self, NodeContext};
use afterimage_wpp::{Limits, Segment};
use anyhow::{Result, ensure};
use serde::Serialize;

use super::columns::{Column, table};
use super::scheme::Prepared;
use super::subject::Subject;
use super::{Row, name};
use crate::statistics::Sample;

/// Millions of executed blocks a second, on one core.
#[derive(Debug, Serialize)]
pub(crate) struct Speed {
    /// From words to paths, which nobody hears of.
    regenerate: Sample,
    /// From words to a grammar.
    build: Sample,
    /// From the grammar to bytes.
    encode: Sample,
    /// From words to bytes.
    compact: Sample,
    /// From bytes to the grammar.
    decode: Sample,
    /// Executed paths.
    pub paths: u64,
    segments: usize,
    symbols: usize,
}

/// Most runs: they take long, and vary little.
const RUNS: usize = 2;

/// Hears of paths and does nothing but number them.
#[derive(Default)]
pub(crate) struct Unheard {
    nodes: u32,
    paths: u64,
}

impl Sink for Unheard {
    fn define(&mut self, _: ExecutedPath<'_>) -> NodeId {
        self.nodes += 1;
        NodeId::from_u32(self.nodes - 1)
    }

    fn path(&mut self, _: NodeId) {
        self.paths += 1;
    }

    fn enter(&mut self, _: FuncId) {}

    fn leave(&mut self) {}
}

pub(crate) fn measure(subject: &Subject, scheme: &Prepared, runs: usize) -> Result<Speed> {
    let mut words: Vec<u64> = Vec::new();
    scheme.run(&subject.command, |more| words.extend_from_slice(more))?;
    let mut seconds: [Vec<f64>; 4] = Default::default();
    let mut blocks = 0;
    let mut sizes = (0, 0, 0);
    for _ in 0..runs.min(RUNS) {
        let start = Instant::now();
        let mut regenerator = scheme.regenerator(&subject.program);
        let mut unheard = Unheard::default();
        regenerator.feed(&words, &mut unheard)?;
        seconds[0].push(start.elapsed().as_secs_f64());
        blocks = regenerator.time();

        let start = Instant::now();
        let mut regenerator = scheme.regenerator(&subject.program);
        let mut segments: Vec<Segment> = Vec::new();
        let mut contexts: Vec<NodeContext> = Vec::new();
        let mut sink = GrammarSink::new(Limits::default(), |segment, all: &[_]| {
            segments.push(segment);
            contexts.clear();
            contexts.extend_from_slice(all);
        });
        regenerator.feed(&words, &mut sink)?;
        let nodes = sink.finish().nodes.len() as u32;
        seconds[1].push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let encode = |segment: &Segment| codec::encode(segment, &contexts);
        let encoded: Vec<Vec<u8>> = segments.iter().map(encode).collect();
        seconds[2].push(start.elapsed().as_secs_f64());

        let limits = codec::Limits {
            symbols: 1 << 26,
            nodes,
            functions: u32::MAX,
            open: 1 << 26,
        };
        let start = Instant::now();
        let mut decoded = 0;
        for bytes in &encoded {
            decoded += codec::decode(bytes, &contexts, &limits)?.length;
        }
        seconds[3].push(start.elapsed().as_secs_f64());
        ensure!(
            decoded == blocks,
            "{decoded} blocks in the segments, {blocks} regenerated"
        );
        let symbols = segments.iter().map(|s| s.grammar.symbols.len()).sum();
        sizes = (unheard.paths, segments.len(), symbols);
    }
    let rate = |seconds: &f64| blocks as f64 / 1e6 / seconds;
    let rates = |seconds: &[f64]| Sample::of(seconds.iter().map(rate).collect());
    let both = seconds[1].iter().zip(&seconds[2]).map(|(b, e)| b + e);
    Ok(Speed {
        regenerate: rates(&seconds[0]),
        build: rates(&seconds[1]),
        encode: rates(&seconds[2]),
        compact: rates(&both.collect::<Vec<_>>()),
        decode: rates(&seconds[3]),
        paths: sizes.0,
        segments: sizes.1,
        symbols: sizes.2,
    })
}

pub(crate) fn report(rows: &[Row]) -> String {
    table(
        "Speed in millions of executed blocks a second and core: regeneration alone; with a grammar; that grammar coded; all of it (compaction); decoding",
        rows,
        name,
        &[
            Column::fact("Mblocks", 0, |row: &Row| row.blocks as f64 / 1e6),
            Column::fact("Mpaths", 1, |row: &Row| row.speed.paths as f64 / 1e6),
            Column::gain("regenerate", 0, |row: &Row| row.speed.regenerate),
            Column::gain("and build", 0, |row: &Row| row.speed.build),
            Column::gain("encode", 0, |row: &Row| row.speed.encode),
            Column::gain("compact", 0, |row: &Row| row.speed.compact),
            Column::gain("decode", 0, |row: &Row| row.speed.decode),
            Column::fact("segments", 0, |row: &Row| row.speed.segments as u64),
            Column::fact("Msymbols", 2, |row: &Row| row.speed.symbols as f64 / 1e6),
        ],
    )
}
