//! Compares other forms of the beginning of a run with ours. The whole run would take too long.

mod report;

use std::time::Instant;

use afterimage_baselines::{Grammar, Sequitur, ZstdSize};
use afterimage_ids::{FuncId, NodeId};
use afterimage_paths::{ExecutedPath, Sink};
use afterimage_record::{GrammarSink, Nodes};
use afterimage_wpp::twpp::{self, Collector, EventError, Twpp};
use afterimage_wpp::{Directory, InMemory, Limits, Segment, WholePath, codec};
use anyhow::{Context, Result, ensure};
use serde::Serialize;

pub(crate) use self::report::report;
use super::extraction::{sample, stored_traces};
use super::raw::BlockNumbers;
use super::subject::Subject;
use super::tape::Tape;

/// The number of executed paths that Sequitur reads.
pub(crate) const PATHS: usize = 1 << 24;
/// The number of blocks of the raw trace that zstd compresses.
const BLOCKS: u64 = 1 << 23;
/// The compression level of zstd.
const LEVEL: i32 = 19;

/// Sizes in bytes, and times, of the beginning of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Prefix {
    /// Whether Sequitur's beginning is the whole run.
    whole: bool,
    paths: u64,
    blocks: u64,
    pub ours: Ours,
    sequitur_symbols: u64,
    sequitur_words: u64,
    pub sequitur_packed: u64,
    sequitur_seconds: f64,
    pub twpp_file: u64,
    /// Milliseconds to extract one function's trace from Sequitur's grammar, and from the TWPP
    /// file.
    sequitur_read_ms: f64,
    sequitur_process_ms: f64,
    twpp_ms: f64,
    /// The number of blocks that zstd compressed, followed by their sizes under zstd and in our
    /// form.
    raw_blocks: u64,
    raw_zstd: u64,
    raw_ours: Ours,
}

impl Prefix {
    /// Returns the ratio of the times to extract a function's trace from Sequitur's grammar and
    /// from the TWPP file.
    pub(crate) fn sequitur_to_twpp(&self) -> f64 {
        (self.sequitur_read_ms + self.sequitur_process_ms) / self.twpp_ms
    }
}

/// The sizes of our form in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Ours {
    segments: u64,
    directory: u64,
}

impl Ours {
    pub(crate) fn total(self) -> f64 {
        (self.segments + self.directory) as f64
    }
}

pub(crate) fn measure(subject: &Subject, tape: &Tape) -> Result<Prefix> {
    let (blocks, ours, path) = compacted(tape, u64::MAX)?;
    expands(tape, &path)?;
    same_beginning(subject, tape)?;
    drop(path);

    let start = Instant::now();
    let mut sequitur = Sequitur::new();
    for node in tape.executed() {
        sequitur.push(node.as_u32())?;
    }
    let grammar = sequitur.grammar();
    drop(sequitur);
    let sequitur_seconds = start.elapsed().as_secs_f64();
    ensure!(
        grammar.expand().eq(tape.executed().map(NodeId::as_u32)),
        "Sequitur's grammar does not generate the paths"
    );
    let size = grammar.size();

    let twpp = timestamped(tape)?;
    let file = twpp::write(&twpp);
    let functions = sample(&twpp);
    let mut stored = Vec::new();
    grammar.write_to(&mut stored)?;
    drop(grammar);
    let (mut read, mut process, mut theirs) = (0.0, 0.0, 0.0);
    for &function in &functions {
        let start = Instant::now();
        let grammar = Grammar::read_from(&*stored)?;
        read += start.elapsed().as_secs_f64();
        let start = Instant::now();
        let own = grammar.restricted(|node| tape.function(NodeId::from_u32(node)) == function);
        process += start.elapsed().as_secs_f64();
        ensure!(own.size().symbols > 0, "{function} is not in the grammar");
        let start = Instant::now();
        stored_traces(&file, function)?;
        theirs += start.elapsed().as_secs_f64();
    }
    let milliseconds = |seconds: f64| seconds * 1e3 / functions.len() as f64;

    let (raw_blocks, raw_ours, _) = compacted(tape, BLOCKS)?;
    Ok(Prefix {
        whole: tape.is_whole(),
        paths: tape.executed().count() as u64,
        blocks,
        ours,
        sequitur_symbols: size.symbols,
        sequitur_words: size.word_bytes(),
        sequitur_packed: size.packed_bytes(),
        sequitur_seconds,
        twpp_file: file.len() as u64,
        sequitur_read_ms: milliseconds(read),
        sequitur_process_ms: milliseconds(process),
        twpp_ms: milliseconds(theirs),
        raw_blocks,
        raw_zstd: zstd(subject, tape, raw_blocks)?,
        raw_ours,
    })
}

/// Compacts the beginning of a path. Returns the number of blocks, the number of bytes, and the
/// path.
fn compacted(tape: &Tape, blocks: u64) -> Result<(u64, Ours, WholePath<InMemory>)> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut encoded = 0;
    let mut sink = GrammarSink::new(Limits::default(), |segment, contexts: &[_]| {
        encoded += codec::encode(&segment, contexts).len() as u64;
        segments.push(segment);
    });
    let blocks = tape.play(blocks, &mut sink);
    let Nodes {
        nodes,
        continuations,
    } = sink.finish();
    let directory = Directory {
        nodes,
        continuations,
        summaries: segments.iter().map(Segment::summary).collect(),
        ..Directory::default()
    };
    let ours = Ours {
        segments: encoded,
        directory: directory.encode().len() as u64,
    };
    let path = WholePath::new(segments.into_iter().collect(), directory.nodes.into())?;
    Ok((blocks, ours, path))
}

/// Checks that the grammar expands to the original sequence.
fn expands(tape: &Tape, path: &WholePath<InMemory>) -> Result<()> {
    let mut cursor = path.cursor();
    for (i, node) in tape.executed().enumerate() {
        let visit = cursor.next()?.context("the grammar ends early")?;
        ensure!(
            visit.node == node,
            "path {i} is {node}, and {} in the grammar",
            visit.node
        );
    }
    ensure!(cursor.next()?.is_none(), "the grammar does not end");
    Ok(())
}

/// Checks, block by block, that the path in the file begins with the original sequence.
fn same_beginning(subject: &Subject, tape: &Tape) -> Result<()> {
    let mut cursor = subject.path.cursor();
    for (i, node) in tape.executed().enumerate() {
        let visit = cursor.next()?.context("the file's path ends early")?;
        let stored = &subject.path.nodes()[visit.node];
        ensure!(
            stored.function == tape.function(node) && &stored.blocks[..] == tape.blocks(node),
            "path {i} is another one in the file"
        );
    }
    Ok(())
}

/// A sink that collects path traces.
#[derive(Default)]
struct Traces {
    collector: Collector,
    nodes: Vec<Box<[afterimage_ids::BlockId]>>,
    failed: Option<EventError>,
}

impl Sink for Traces {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        self.nodes.push(path.blocks.into());
        NodeId::from_u32(self.nodes.len() as u32 - 1)
    }

    fn path(&mut self, node: NodeId) {
        let blocks = &self.nodes[node.as_u32() as usize];
        let result = self.collector.blocks(blocks);
        self.failed = self.failed.or(result.err());
    }

    fn enter(&mut self, function: FuncId) {
        self.collector.enter(function);
    }

    fn leave(&mut self) {
        let result = self.collector.leave();
        self.failed = self.failed.or(result.err());
    }
}

fn timestamped(tape: &Tape) -> Result<Twpp> {
    let mut traces = Traces::default();
    tape.play(u64::MAX, &mut traces);
    match traces.failed {
        Some(error) => Err(error.into()),
        None => Ok(Twpp::compact(traces.collector.finish()?)),
    }
}

/// Returns the compressed size in bytes of the raw trace of the first `blocks` blocks.
fn zstd(subject: &Subject, tape: &Tape, blocks: u64) -> Result<u64> {
    let numbers = BlockNumbers::new(&subject.program);
    let compressed = std::io::BufWriter::with_capacity(1 << 16, ZstdSize::new(LEVEL)?);
    let mut trace = afterimage_baselines::BlockTrace::new(compressed);
    for node in tape.executed() {
        if trace.bytes() >= 4 * blocks {
            break;
        }
        let function = tape.function(node);
        for &block in tape.blocks(node) {
            trace.push(numbers.of(function, block))?;
        }
    }
    let compressed = trace.into_sink().into_inner();
    Ok(compressed.map_err(|error| error.into_error())?.finish()?)
}
