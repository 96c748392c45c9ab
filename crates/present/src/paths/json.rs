//! Writes paths as JSON.

use std::io::Write;
use std::ops::Range;

use afterimage_ids::{BlockId, FuncId};
use afterimage_replay::whole_path::{
    HotPaths, Link, Occurrences, Outlines, PathOutline, Series, TraceCounts, Traces,
};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::PathNames;
use crate::PresentError;
use crate::document::objects::{Function, Position};
use crate::document::{Document, Lazy, NoRows, begin};

/// The contents of the document.
#[derive(Clone)]
pub enum PathsJson<'a> {
    /// The numbers of calls and traces of functions.
    Counts(&'a TraceCounts),
    /// Traces of a function, by number from 0.
    Traces(&'a Traces, Range<usize>),
    /// Hot paths.
    Hot(&'a HotPaths),
    /// The occurrences of a pattern.
    Found(&'a Occurrences),
}

/// Writes one JSON document.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn paths_json(
    out: &mut dyn Write,
    what: PathsJson<'_>,
    names: PathNames<'_>,
) -> Result<(), PresentError> {
    match what {
        PathsJson::Counts(counts) => begin(out, &of_counts(counts, names)),
        PathsJson::Traces(traces, rows) => begin(out, &of_traces(traces, rows, names)),
        PathsJson::Hot(hot) => begin(out, &of_hot(hot, names)),
        PathsJson::Found(found) => begin(out, &of_found(found, names)),
    }
}

/// Returns the document, with all its rows in memory.
pub fn paths_document(what: PathsJson<'_>, names: PathNames<'_>) -> PathsDocument {
    match what {
        PathsJson::Counts(counts) => of_counts(counts, names).listed(|row| row),
        PathsJson::Traces(traces, rows) => of_traces(traces, rows, names).listed(|row| match row {
            PathsRow::Trace(trace) => PathsRow::Trace(TraceOfPath {
                trace: trace.trace,
                calls: trace.calls,
                open: trace.open,
                length: trace.length,
                steps: trace.steps,
                blocks: trace.blocks.numbers().collect(),
                dictionary: trace.dictionary,
                timestamps: trace.timestamps,
            }),
            PathsRow::Counts(row) => PathsRow::Counts(row),
            PathsRow::Hot(row) => PathsRow::Hot(row),
            PathsRow::Found(row) => PathsRow::Found(row),
        }),
        PathsJson::Hot(hot) => of_hot(hot, names).listed(|row| row),
        PathsJson::Found(found) => of_found(found, names).listed(|row| row),
    }
}

/// Returns the document for the beginnings of a function's path traces, with at most `top` rows.
pub fn outlines_document(
    outlines: &Outlines,
    top: Option<usize>,
    names: PathNames<'_>,
) -> PathsDocument {
    let traces = &outlines.traces;
    let sum = |of: fn(&PathOutline) -> u64| traces.iter().map(of).sum();
    let totals = PathsCounts {
        function: Some(function(names, outlines.function)),
        functions: None,
        calls: sum(|one| one.calls),
        traces: Some(traces.len() as u64),
        blocks: sum(|one| one.calls * one.length),
        open: sum(|one| one.unfinished),
        sequences: None,
        dictionaries: None,
    };
    let shown = top.unwrap_or(usize::MAX).min(traces.len());
    let rows = traces[..shown].iter().enumerate().map(|(number, one)| {
        PathsRow::<Vec<u32>>::Trace(TraceOfPath {
            trace: number + 1,
            calls: one.calls,
            open: one.unfinished,
            length: one.length,
            steps: None,
            blocks: numbers(&one.beginning),
            dictionary: Vec::new(),
            timestamps: Vec::new(),
        })
    });
    let available = (traces.len() as u64, shown);
    let totals = PathsTotals::Counts(totals);
    PathsDocument::new(names, "traces", totals, available, rows).listed(|row| row)
}

/// The paths through functions: path traces, hot paths, and occurrences of a sequence of blocks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PathsDocument<R = Vec<PathsRow>> {
    /// The kind of rows: `functions`, `traces`, `hot` or `occurrences`.
    pub of: &'static str,
    /// A description of the missing parts of the path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub left_out: String,
    /// The sums.
    pub totals: PathsTotals,
    /// The number of rows without `--limit`.
    pub available: u64,
    /// Whether `rows` contains all rows that are available without `--limit`.
    pub complete: bool,
    /// The rows.
    pub rows: R,
}

impl<R: Serialize> Document for PathsDocument<R> {
    const NAME: &'static str = "paths";
    const COMMAND: &'static str = "paths";
    type Row = NoRows;
}

/// The totals. Their kind depends on `of`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PathsTotals {
    /// The sums for `functions` and `traces`.
    Counts(PathsCounts),
    /// The sums for `hot`.
    Hot(HotTotals),
    /// The sums for `occurrences`.
    Found(FoundTotals),
}

/// A row. Its kind depends on `of`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PathsRow<B = Vec<u32>> {
    /// A row for `functions`.
    Counts(PathsCounts),
    /// A row for `traces`.
    Trace(TraceOfPath<B>),
    /// A row for `hot`.
    Hot(HotRow),
    /// A row for `occurrences`.
    Found(FoundRow),
}

impl<I: Iterator + Clone> PathsDocument<Lazy<I>> {
    fn new(
        names: PathNames<'_>,
        of: &'static str,
        totals: PathsTotals,
        (available, shown): (u64, usize),
        rows: I,
    ) -> Self {
        Self {
            of,
            left_out: names.left_out.to_owned(),
            totals,
            available,
            complete: shown as u64 == available,
            rows: Lazy(rows),
        }
    }

    fn listed(self, row: impl FnMut(I::Item) -> PathsRow) -> PathsDocument {
        PathsDocument {
            of: self.of,
            left_out: self.left_out,
            totals: self.totals,
            available: self.available,
            complete: self.complete,
            rows: self.rows.0.map(row).collect(),
        }
    }
}

fn function(names: PathNames<'_>, function: FuncId) -> Function {
    Function::new(names.names, function)
}

fn numbers(blocks: &[BlockId]) -> Vec<u32> {
    blocks.iter().map(|block| block.as_u32()).collect()
}

/// The numbers of calls and path traces, of a function or in total.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PathsCounts {
    /// The function. Present in a row, or with `--function`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<Function>,
    /// The number of functions that were called. Present only in the sums of `functions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functions: Option<u64>,
    /// The number of calls.
    pub calls: u64,
    /// The number of unique path traces of the calls; `null` if blocks of the function were left
    /// out when the path was built.
    pub traces: Option<u64>,
    /// The number of blocks that the calls executed themselves.
    pub blocks: u64,
    /// The number of calls that had not returned at the end.
    pub open: u64,
    /// The number of distinct compacted sequences. Present only in the sums of `traces`, if whole
    /// traces were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequences: Option<usize>,
    /// The number of distinct dictionaries. Present only in the sums of `traces`, if whole traces
    /// were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dictionaries: Option<usize>,
}

fn of_counts<'a>(
    counts: &'a TraceCounts,
    names: PathNames<'a>,
) -> PathsDocument<Lazy<impl Iterator<Item = PathsRow> + Clone + use<'a>>> {
    let totals = PathsCounts {
        function: None,
        functions: Some(counts.functions),
        calls: counts.calls,
        traces: Some(counts.paths),
        blocks: counts.blocks,
        open: counts.unfinished,
        sequences: None,
        dictionaries: None,
    };
    let rows = counts.rows.iter().map(move |row| PathsCounts {
        function: Some(function(names, row.function)),
        functions: None,
        calls: row.calls,
        traces: row.paths,
        blocks: row.blocks,
        open: row.unfinished,
        sequences: None,
        dictionaries: None,
    });
    let available = (counts.functions, counts.rows.len());
    let rows = rows.map(PathsRow::<Vec<u32>>::Counts);
    PathsDocument::new(
        names,
        "functions",
        PathsTotals::Counts(totals),
        available,
        rows,
    )
}

/// A unique path trace. The traces that the most calls took come first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TraceOfPath<B = Vec<u32>> {
    /// Its number, from 1.
    pub trace: usize,
    /// The number of calls that took it.
    pub calls: u64,
    /// The number of calls that took the path trace and had not returned at the end of the run.
    pub open: u64,
    /// The number of its blocks.
    pub length: u64,
    /// The number of dynamic basic blocks in the compacted sequence. Absent if only the beginning
    /// was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// The blocks, or the first of them if only the beginning was requested.
    pub blocks: B,
    /// The chains of its dynamic basic blocks. In the sequence, the first block of a chain
    /// represents the whole chain. A block outside all chains represents itself.
    pub dictionary: Vec<Vec<u32>>,
    /// The timestamps of each of its dynamic basic blocks.
    pub timestamps: Vec<Stamped>,
}

/// The blocks of a trace, which are decoded while they are written.
struct BlockList<'a>(&'a Traces, usize);

impl Serialize for BlockList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.numbers())
    }
}

impl BlockList<'_> {
    fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.blocks(self.1).map(|block| block.as_u32())
    }
}

/// The timestamps of a dynamic basic block.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Stamped {
    /// Its first block.
    pub block: u32,
    /// The steps, as series: `[l]` is one step, `[l, h]` all steps from `l` to `h`, and `[l, h, s]`
    /// every `s`-th step from `l` to `h`.
    pub at: Vec<Vec<u64>>,
}

/// Returns the entries of a series: `[l]`, `[l, h]` or `[l, h, s]`.
pub(crate) fn entries(series: &Series) -> Vec<Vec<u64>> {
    let entries = series.entries().iter();
    entries
        .map(|entry| [entry.first, entry.last, entry.step][..entry.width() as usize].to_vec())
        .collect()
}

fn of_traces<'a>(
    traces: &'a Traces,
    rows: Range<usize>,
    names: PathNames<'a>,
) -> PathsDocument<Lazy<impl Iterator<Item = PathsRow<BlockList<'a>>> + Clone + use<'a>>> {
    let compacted = &traces.compacted;
    let totals = PathsCounts {
        function: Some(function(names, compacted.function)),
        functions: None,
        calls: traces.calls,
        traces: Some(traces.len() as u64),
        blocks: traces.blocks,
        open: traces.unfinished,
        sequences: Some(compacted.traces.len()),
        dictionaries: Some(compacted.dictionaries.len()),
    };
    let shown = rows.len();
    let rows = rows.map(move |number| {
        let path = compacted.paths[number];
        let (steps, dictionary) = compacted.parts(number);
        let stamped = steps.blocks().map(|(block, series)| Stamped {
            block: block.as_u32(),
            at: entries(&series),
        });
        PathsRow::Trace(TraceOfPath {
            trace: number + 1,
            calls: path.calls,
            open: path.unfinished,
            length: compacted.blocks(number),
            steps: Some(steps.len()),
            blocks: BlockList(traces, number),
            dictionary: dictionary.chains().map(numbers).collect(),
            timestamps: stamped.collect(),
        })
    });
    let available = (traces.len() as u64, shown);
    PathsDocument::new(
        names,
        "traces",
        PathsTotals::Counts(totals),
        available,
        rows,
    )
}

/// The totals of all paths.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HotTotals {
    /// The number of paths.
    pub paths: u64,
    /// The number of executions.
    pub executions: u64,
    /// The number of blocks executed in all paths.
    pub blocks: u64,
    /// The number of instructions executed in all paths.
    pub instructions: u64,
}

/// A path.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HotRow {
    /// Its number.
    pub node: u32,
    /// Its function.
    pub function: Function,
    /// Its blocks.
    pub blocks: Vec<u32>,
    /// Whether it ends with a call.
    pub calls: bool,
    /// The block with which its activation continues; `null` if the activation ends.
    pub next: Option<u32>,
    /// The number of executions.
    pub count: u64,
    /// The number of blocks executed in it.
    pub executed_blocks: u64,
    /// The number of instructions executed in it.
    pub instructions: u64,
    /// Its source lines.
    pub lines: Vec<Position>,
}

fn of_hot<'a>(
    hot: &'a HotPaths,
    names: PathNames<'a>,
) -> PathsDocument<Lazy<impl Iterator<Item = PathsRow> + Clone + use<'a>>> {
    let totals = HotTotals {
        paths: hot.paths,
        executions: hot.executions,
        blocks: hot.blocks,
        instructions: hot.instructions,
    };
    let rows = hot.rows.iter().map(move |row| {
        let lines = row.lines.iter().filter_map(|line| {
            let file = names.source.files().get(line.file.0 as usize)?;
            Some(Position::line(file, line.number))
        });
        PathsRow::<Vec<u32>>::Hot(HotRow {
            node: row.node.as_u32(),
            function: function(names, row.function),
            blocks: numbers(&row.blocks),
            calls: row.then.calls,
            next: row.then.next.map(|next| next.as_u32()),
            count: row.count,
            executed_blocks: row.executed,
            instructions: row.instructions,
            lines: lines.collect(),
        })
    });
    let available = (hot.paths, hot.rows.len());
    PathsDocument::new(names, "hot", PathsTotals::Hot(totals), available, rows)
}

/// The pattern, and the number of its occurrences.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FoundTotals {
    /// The parts of the pattern.
    pub pattern: Vec<FoundPart>,
    /// The number of occurrences.
    pub count: u64,
    /// The number of calls to the first function.
    pub calls: u64,
}

/// Consecutive blocks of one function.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FoundPart {
    /// The function.
    pub function: Function,
    /// The blocks.
    pub blocks: Vec<u32>,
    /// `true` if it follows a return instead of a call; otherwise absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub returned: bool,
}

/// An occurrence.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FoundRow {
    /// The time of its first block.
    pub t: u64,
    /// The time of its last block.
    pub end_t: u64,
    /// The number of the call to the first function that contains the occurrence, from 1.
    pub call: u64,
    /// The time of the first block of the call that contains the occurrence.
    pub entered_t: u64,
}

fn of_found<'a>(
    found: &'a Occurrences,
    names: PathNames<'a>,
) -> PathsDocument<Lazy<impl Iterator<Item = PathsRow> + Clone + use<'a>>> {
    let parts = found.pattern.parts().iter();
    let totals = FoundTotals {
        pattern: parts
            .map(|part| FoundPart {
                function: function(names, part.function),
                blocks: numbers(&part.blocks),
                returned: part.link == Link::Return,
            })
            .collect(),
        count: found.count,
        calls: found.calls,
    };
    let rows = found.first.iter().map(|occurrence| {
        PathsRow::<Vec<u32>>::Found(FoundRow {
            t: occurrence.at.first,
            end_t: occurrence.at.last,
            call: occurrence.call,
            entered_t: occurrence.at.entered,
        })
    });
    let available = (found.count, found.first.len());
    PathsDocument::new(
        names,
        "occurrences",
        PathsTotals::Found(totals),
        available,
        rows,
    )
}
