//! As JSON. docs/JSON.md describes every field.

use std::io::Write;

use afterimage_ids::{BlockId, FuncId};
use afterimage_replay::paths::{HotPaths, Link, Occurrences, Series, TraceCounts, Traces};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::PathNames;
use crate::PresentError;

/// What is written.
#[derive(Clone, Copy)]
pub enum PathsJson<'a> {
    /// How many calls and traces the functions have.
    Counts(&'a TraceCounts),
    /// The first so many traces of a function.
    Traces(&'a Traces, Option<usize>),
    /// Hot paths.
    Hot(&'a HotPaths),
    /// Where a pattern occurs.
    Found(&'a Occurrences),
}

/// Writes one JSON document.
///
/// # Errors
/// If `out` fails.
pub fn paths_json(
    out: &mut dyn Write,
    what: PathsJson<'_>,
    names: PathNames<'_>,
) -> Result<(), PresentError> {
    match what {
        PathsJson::Counts(counts) => counts_json(out, counts, names)?,
        PathsJson::Traces(traces, top) => traces_json(out, traces, top, names)?,
        PathsJson::Hot(hot) => hot_json(out, hot, names)?,
        PathsJson::Found(found) => found_json(out, found, names)?,
    }
    writeln!(out)?;
    Ok(())
}

#[derive(Serialize)]
struct Document<'a, T: Serialize, R: Serialize> {
    schema: &'static str,
    of: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    left_out: &'a str,
    totals: T,
    available: u64,
    complete: bool,
    rows: R,
}

fn document<T: Serialize, R: Serialize>(
    out: &mut dyn Write,
    names: PathNames<'_>,
    of: &'static str,
    totals: T,
    (available, shown): (u64, usize),
    rows: R,
) -> serde_json::Result<()> {
    let document = Document {
        schema: "afterimage/paths/1",
        of,
        left_out: names.left_out,
        totals,
        available,
        complete: shown as u64 == available,
        rows,
    };
    serde_json::to_writer(out, &document)
}

/// Rows that are made when they are written.
struct Rows<I>(I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Rows<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        self.0
            .clone()
            .try_for_each(|row| list.serialize_element(&row))?;
        list.end()
    }
}

#[derive(Serialize)]
struct FunctionObject<'a> {
    index: u32,
    name: &'a str,
}

fn function<'a>(names: PathNames<'a>, function: FuncId) -> FunctionObject<'a> {
    FunctionObject {
        index: function.as_u32(),
        name: names.names.function(function),
    }
}

fn numbers(blocks: &[BlockId]) -> Vec<u32> {
    blocks.iter().map(|block| block.as_u32()).collect()
}

#[derive(Serialize)]
struct Counts<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<FunctionObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    functions: Option<u64>,
    calls: u64,
    /// `None`: something of the function was left out.
    traces: Option<u64>,
    blocks: u64,
    open: u64,
    /// Of one function only.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequences: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dictionaries: Option<usize>,
}

fn counts_json(
    out: &mut dyn Write,
    counts: &TraceCounts,
    names: PathNames<'_>,
) -> serde_json::Result<()> {
    let totals = Counts {
        function: None,
        functions: Some(counts.functions),
        calls: counts.calls,
        traces: Some(counts.paths),
        blocks: counts.blocks,
        open: counts.unfinished,
        sequences: None,
        dictionaries: None,
    };
    let rows = counts.rows.iter().map(|row| Counts {
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
    document(out, names, "functions", totals, available, Rows(rows))
}

#[derive(Serialize)]
struct TraceRow<'a> {
    trace: usize,
    calls: u64,
    open: u64,
    length: u64,
    steps: u64,
    blocks: BlockList<'a>,
    dictionary: Vec<Vec<u32>>,
    timestamps: Vec<Stamped>,
}

struct BlockList<'a>(&'a Traces, usize);

impl Serialize for BlockList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let blocks = self.0.blocks(self.1);
        serializer.collect_seq(blocks.map(|block| block.as_u32()))
    }
}

#[derive(Serialize)]
struct Stamped {
    block: u32,
    at: Vec<Vec<u64>>,
}

/// The entries of a series: `[l]`, `[l, h]` or `[l, h, s]`.
pub(crate) fn entries(series: &Series) -> Vec<Vec<u64>> {
    let entries = series.entries().iter();
    entries
        .map(|entry| [entry.first, entry.last, entry.step][..entry.width() as usize].to_vec())
        .collect()
}

fn traces_json(
    out: &mut dyn Write,
    traces: &Traces,
    top: Option<usize>,
    names: PathNames<'_>,
) -> serde_json::Result<()> {
    let compacted = &traces.compacted;
    let totals = Counts {
        function: Some(function(names, compacted.function)),
        functions: None,
        calls: traces.calls,
        traces: Some(traces.len() as u64),
        blocks: traces.blocks,
        open: traces.unfinished,
        sequences: Some(compacted.traces.len()),
        dictionaries: Some(compacted.dictionaries.len()),
    };
    let shown = top.unwrap_or(usize::MAX).min(traces.len());
    let rows = (0..shown).map(|number| {
        let path = compacted.paths[number];
        let (steps, dictionary) = compacted.parts(number);
        TraceRow {
            trace: number + 1,
            calls: path.calls,
            open: path.unfinished,
            length: compacted.blocks(number),
            steps: steps.len(),
            blocks: BlockList(traces, number),
            dictionary: dictionary.chains().map(numbers).collect(),
            timestamps: steps
                .blocks()
                .map(|(block, series)| Stamped {
                    block: block.as_u32(),
                    at: entries(&series),
                })
                .collect(),
        }
    });
    let available = (traces.len() as u64, shown);
    document(out, names, "traces", totals, available, Rows(rows))
}

#[derive(Serialize)]
struct HotTotals {
    paths: u64,
    executions: u64,
    blocks: u64,
    instructions: u64,
}

#[derive(Serialize)]
struct HotRow<'a> {
    node: u32,
    function: FunctionObject<'a>,
    blocks: Vec<u32>,
    calls: bool,
    next: Option<u32>,
    count: u64,
    executed_blocks: u64,
    instructions: u64,
    lines: Vec<LineObject<'a>>,
}

#[derive(Serialize)]
struct LineObject<'a> {
    file: &'a str,
    line: u32,
}

fn hot_json(out: &mut dyn Write, hot: &HotPaths, names: PathNames<'_>) -> serde_json::Result<()> {
    let totals = HotTotals {
        paths: hot.paths,
        executions: hot.executions,
        blocks: hot.blocks,
        instructions: hot.instructions,
    };
    let rows = hot.rows.iter().map(|row| HotRow {
        node: row.node.as_u32(),
        function: function(names, row.function),
        blocks: numbers(&row.blocks),
        calls: row.then.calls,
        next: row.then.next.map(|next| next.as_u32()),
        count: row.count,
        executed_blocks: row.executed,
        instructions: row.instructions,
        lines: row
            .lines
            .iter()
            .filter_map(|line| {
                let file = names.source.files().get(line.file.0 as usize)?;
                Some(LineObject {
                    file,
                    line: line.number,
                })
            })
            .collect(),
    });
    document(
        out,
        names,
        "hot",
        totals,
        (hot.paths, hot.rows.len()),
        Rows(rows),
    )
}

#[derive(Serialize)]
struct FoundTotals<'a> {
    pattern: Vec<PartObject<'a>>,
    count: u64,
    calls: u64,
}

#[derive(Serialize)]
struct PartObject<'a> {
    function: FunctionObject<'a>,
    blocks: Vec<u32>,
    /// It follows a return, not a call; absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    returned: bool,
}

#[derive(Serialize)]
struct FoundRow {
    from: u64,
    to: u64,
    call: u64,
    entered: u64,
}

fn found_json(
    out: &mut dyn Write,
    found: &Occurrences,
    names: PathNames<'_>,
) -> serde_json::Result<()> {
    let parts = found.pattern.parts().iter();
    let totals = FoundTotals {
        pattern: parts
            .map(|part| PartObject {
                function: function(names, part.function),
                blocks: numbers(&part.blocks),
                returned: part.link == Link::Return,
            })
            .collect(),
        count: found.count,
        calls: found.calls,
    };
    let rows = found.first.iter().map(|occurrence| FoundRow {
        from: occurrence.at.first,
        to: occurrence.at.last,
        call: occurrence.call,
        entered: occurrence.at.entered,
    });
    document(
        out,
        names,
        "occurrences",
        totals,
        (found.count, found.first.len()),
        Rows(rows),
    )
}
