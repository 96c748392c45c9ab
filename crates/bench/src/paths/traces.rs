//! Measures the run as a timestamped whole program path. These are the analogues of Tables 1, 2, 3
//! and 6 and of Figure 8 of Zhang and Gupta 2001.

use std::time::Instant;

use afterimage_program::BlockKind;
use afterimage_wpp::twpp::{FileSizes, Reader, Stages, Twpp, collect, write};
use anyhow::{Result, ensure};
use serde::Serialize;

use super::columns::{Column, table};
use super::subject::Subject;
use super::{Row, name};

/// Counts and sizes. Sizes are in bytes, with words of four bytes as in the paper, except for the
/// size of the file.
#[derive(Debug, Serialize)]
pub(crate) struct Traces {
    /// Seconds to collect all path traces and the call graph from the recording, and to compact
    /// them.
    collect_seconds: f64,
    compact_seconds: f64,
    calls: u64,
    functions: u64,
    paths: u64,
    /// The sizes of the dynamic call graph and of the path traces, before and after each
    /// transformation.
    call_graph: u64,
    pub original: u64,
    pub unique: u64,
    pub compacted: u64,
    pub timestamped: u64,
    dictionaries: u64,
    call_graph_compressed: u64,
    /// The size of the compacted form as a file, with numbers as short as possible.
    pub file: u64,
    file_call_graph: u64,
    /// Vertices and edges of all functions' control-flow graphs, and of all dynamic graphs.
    static_nodes: u64,
    static_edges: u64,
    dynamic_nodes: u64,
    dynamic_edges: u64,
    /// The mean number of timestamps of a node in a dynamic graph, and of the integers that they
    /// take.
    timestamps: f64,
    pub integers: f64,
    /// For each of [`LIMITS`], the share of calls to functions with at most that many path traces.
    redundancy: Vec<f64>,
}

impl Traces {
    /// Returns the size of the call graph and the path traces in their original form.
    pub(crate) fn original_total(&self) -> u64 {
        self.call_graph + self.original
    }

    fn compacted_total(&self) -> u64 {
        self.call_graph_compressed + self.timestamped + self.dictionaries
    }

    /// Returns the factor by which the compacted form is smaller than the original form, in words
    /// of four bytes.
    pub(crate) fn factor(&self) -> f64 {
        self.original_total() as f64 / self.compacted_total() as f64
    }
}

/// The numbers of path traces at which Figure 8 is read.
const LIMITS: [u64; 8] = [1, 2, 5, 10, 25, 50, 100, 1000];

/// Measures all path traces of the run. Returns the figures for the tables, the traces, and their
/// file.
pub(crate) fn measure(subject: &Subject) -> Result<(Traces, Twpp, Vec<u8>)> {
    subject.open_all()?;
    let start = Instant::now();
    let wpp = collect(&subject.path, &|_| {})?;
    let collect_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let twpp = Twpp::compact(wpp);
    let file = write(&twpp);
    let compact_seconds = start.elapsed().as_secs_f64();
    let stages = twpp.stages();
    ensure!(
        stages.blocks == subject.built.time,
        "the path traces have {} blocks, the run {}",
        stages.blocks,
        subject.built.time
    );
    let entries: u64 = subject.counts.functions.iter().map(|f| f.entries).sum();
    ensure!(
        stages.calls == entries,
        "the path traces cover {} calls, the profile {entries}",
        stages.calls
    );
    let sizes = Reader::open(&file)?.sizes()?;
    let traces = Traces {
        collect_seconds,
        compact_seconds,
        ..of(subject, &twpp, &stages, &sizes)?
    };
    Ok((traces, twpp, file))
}

fn of(subject: &Subject, twpp: &Twpp, stages: &Stages, sizes: &FileSizes) -> Result<Traces> {
    let graphs = twpp.graph_totals()?;
    let points = twpp.redundancy();
    let share = |limit: &u64| {
        let point = points.iter().rev().find(|point| point.paths <= *limit);
        point.map_or(0.0, |point| point.calls as f64 / stages.calls as f64)
    };
    let functions = &subject.program.functions;
    let nodes = functions.iter().map(|function| {
        let blocks = function.cfg.blocks.values();
        blocks.filter(|block| block.kind == BlockKind::Code).count() as u64
    });
    let edges = functions.iter().map(|f| f.cfg.edges.len() as u64);
    Ok(Traces {
        collect_seconds: f64::NAN,
        compact_seconds: f64::NAN,
        calls: stages.calls,
        functions: stages.functions,
        paths: stages.paths,
        call_graph: stages.call_graph,
        original: stages.original,
        unique: stages.unique,
        compacted: stages.compacted,
        timestamped: stages.timestamped,
        dictionaries: stages.dictionary,
        call_graph_compressed: stages.call_graph_compressed,
        file: sizes.total(),
        file_call_graph: sizes.calls,
        static_nodes: nodes.sum(),
        static_edges: edges.sum(),
        dynamic_nodes: graphs.nodes,
        dynamic_edges: graphs.edges,
        timestamps: graphs.timestamps as f64 / graphs.nodes as f64,
        integers: graphs.integers as f64 / graphs.nodes as f64,
        redundancy: LIMITS.iter().map(share).collect(),
    })
}

/// Returns a column of megabytes.
fn megabytes<'a>(title: &str, of: impl Fn(&Traces) -> u64 + 'a) -> Column<'a, Row> {
    Column::fact(title, 2, move |row: &Row| of(&row.traces) as f64 / 1e6)
}

/// Returns a column of reduction factors.
fn factor<'a>(
    title: &str,
    before: impl Fn(&Traces) -> u64 + 'a,
    after: impl Fn(&Traces) -> u64 + 'a,
) -> Column<'a, Row> {
    Column::gain(title, 2, move |row: &Row| {
        before(&row.traces) as f64 / after(&row.traces) as f64
    })
}

pub(crate) fn report(rows: &[Row]) -> String {
    let mut out = table(
        "2001, Table 1: original sizes in megabytes, and the time to collect all path traces from the recording, with its segments open, and to compact them and make the file",
        rows,
        name,
        &[
            megabytes("call graph", |t| t.call_graph),
            megabytes("path traces", |t| t.original),
            megabytes("total", Traces::original_total),
            Column::fact("Mcalls", 2, |row: &Row| row.traces.calls as f64 / 1e6),
            Column::fact("functions", 0, |row: &Row| row.traces.functions),
            Column::fact("unique traces", 0, |row: &Row| row.traces.paths),
            Column::cost("collect s", 2, |row: &Row| row.traces.collect_seconds),
            Column::cost("compact s", 2, |row: &Row| row.traces.compact_seconds),
        ],
    );
    out += &table(
        "2001, Table 2: path traces after each transformation, in megabytes, and the factor by which each makes them smaller",
        rows,
        name,
        &[
            megabytes("unique", |t| t.unique),
            factor("×", |t| t.original, |t| t.unique),
            megabytes("dictionaries made", |t| t.compacted),
            factor("×", |t| t.unique, |t| t.compacted),
            megabytes("timestamped", |t| t.timestamped),
            factor("×", |t| t.compacted, |t| t.timestamped),
            factor("original/timestamped", |t| t.original, |t| t.timestamped),
        ],
    );
    out += &table(
        "2001, Table 3: the compacted form in megabytes, as in the paper in words of four bytes, and as a file",
        rows,
        name,
        &[
            megabytes("call graph", |t| t.call_graph_compressed),
            megabytes("traces", |t| t.timestamped),
            megabytes("dictionaries", |t| t.dictionaries),
            megabytes("total", Traces::compacted_total),
            factor("factor", Traces::original_total, Traces::compacted_total),
            megabytes("file", |t| t.file),
            factor("factor of the file", Traces::original_total, |t| t.file),
            Column::cost("file bits/block", 3, |row: &Row| {
                row.traces.file as f64 * 8.0 / row.blocks as f64
            }),
        ],
    );
    out += &table(
        "2001, Table 6: control-flow graphs of all functions, dynamic graphs of all unique path traces, and the mean number of a node's timestamps before and after compaction",
        rows,
        name,
        &[
            Column::fact("static nodes", 0, |row: &Row| row.traces.static_nodes),
            Column::fact("static edges", 0, |row: &Row| row.traces.static_edges),
            Column::fact("dynamic nodes", 0, |row: &Row| row.traces.dynamic_nodes),
            Column::fact("dynamic edges", 0, |row: &Row| row.traces.dynamic_edges),
            Column::cost("integers", 1, |row: &Row| row.traces.integers),
            Column::cost("timestamps", 1, |row: &Row| row.traces.timestamps),
        ],
    );
    let curve: Vec<_> = LIMITS
        .iter()
        .enumerate()
        .map(|(i, limit)| {
            Column::gain(format!("≤ {limit}"), 1, move |row: &Row| {
                100.0 * row.traces.redundancy[i]
            })
        })
        .collect();
    out += &table(
        "2001, Figure 8: percentage of calls to functions with at most N unique path traces",
        rows,
        name,
        &curve,
    );
    out
}
