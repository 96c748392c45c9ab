//! Writes paths for a terminal.

use std::io::Write;
use std::ops::Range;

use afterimage_ids::{BlockId, FuncId};
use afterimage_profile::{Line, Source};
use afterimage_replay::whole_path::{HotPaths, Link, Occurrences, TraceCounts, Traces};

use super::PathNames;
use super::form::{SHOWN, TraceForm, Whole, dots, lines};
use crate::calls::absent;
use crate::number::{counted, grouped, percent};
use crate::own::left_out;
use crate::table::{Align::Left, Align::Right, Paint, Table};
use crate::{PresentError, Style};

/// Writes the number of calls to each function, and the number of unique path traces of these
/// calls.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn trace_counts_text(
    out: &mut dyn Write,
    counts: &TraceCounts,
    names: PathNames<'_>,
    style: Style,
) -> Result<(), PresentError> {
    write!(
        out,
        "{} to {} took {} and executed {}",
        counted(counts.calls, "call"),
        counted(counts.functions, "function"),
        counted(counts.paths, "unique path trace"),
        counted(counts.blocks, "block"),
    )?;
    open(out, counts.unfinished)?;
    writeln!(out, "\n")?;
    let mut table = Table::new(&[
        ("calls", Right),
        ("traces", Right),
        ("blocks", Right),
        ("share", Right),
        ("function", Left),
    ]);
    for row in &counts.rows {
        table.row([
            grouped(row.calls),
            row.paths.map_or("-".to_owned(), grouped),
            grouped(row.blocks),
            percent(row.blocks, counts.blocks),
            names.name(row.function),
        ]);
    }
    let paint = |row: usize| Paint::of_share(counts.rows[row].blocks, counts.blocks);
    table.write(out, style, paint)?;
    let more = counts.functions - counts.left_out - counts.rows.len() as u64;
    left(out, more, "function")?;
    others(out, names, counts.left_out, "function")
}

/// The form of a list of a function's unique path traces.
#[derive(Clone, Debug)]
pub struct TraceListing {
    /// The form of each trace.
    pub form: TraceForm,
    /// The part of each trace to write.
    pub whole: Whole,
    /// The traces to list, by number from 0.
    pub rows: Range<usize>,
}

/// Writes the unique path traces of a function.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn traces_text(
    out: &mut dyn Write,
    traces: &Traces,
    names: PathNames<'_>,
    listing: TraceListing,
    style: Style,
) -> Result<(), PresentError> {
    let TraceListing { form, whole, rows } = listing;
    let name = names.name(traces.compacted.function);
    if traces.is_empty() {
        writeln!(out, "{}", absent(&name, names.left_out))?;
        return Ok(());
    }
    write!(
        out,
        "{name}: {} took {} and executed {}",
        counted(traces.calls, "call"),
        counted(traces.len() as u64, "unique path trace"),
        counted(traces.blocks, "block"),
    )?;
    open(out, traces.unfinished)?;
    writeln!(out)?;
    if form != TraceForm::Blocks {
        let sequences = traces.compacted.traces.len() as u64;
        let of = match traces.compacted.dictionaries.len() {
            1 => "1 dictionary".to_owned(),
            many => format!("{} dictionaries", grouped(many as u64)),
        };
        writeln!(
            out,
            "the traces use {} of dynamic basic blocks and {of}",
            counted(sequences, "sequence"),
        )?;
    }
    let rest = traces.len().saturating_sub(rows.end);
    for number in rows {
        let path = &traces.compacted.paths[number];
        writeln!(out)?;
        let mut head = format!(
            "trace {}: {} ({}), {}",
            number + 1,
            counted(path.calls, "call"),
            percent(path.calls, traces.calls),
            counted(traces.compacted.blocks(number), "block"),
        );
        if path.unfinished > 0 {
            head.push_str(&format!(
                ", {} of them open at the end",
                grouped(path.unfinished)
            ));
        }
        writeln!(out, "{}", style.paint(Paint::Bold, &head))?;
        for line in lines(traces, number, form, whole) {
            writeln!(out, "  {line}")?;
        }
    }
    left(out, rest as u64, "trace")
}

/// Writes the hot paths.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn hot_text(
    out: &mut dyn Write,
    hot: &HotPaths,
    names: PathNames<'_>,
    style: Style,
) -> Result<(), PresentError> {
    writeln!(
        out,
        "{} {} executed, {} in all: {}, {}\n",
        counted(hot.paths, "different path"),
        if hot.paths == 1 { "was" } else { "were" },
        counted(hot.executions, "time"),
        counted(hot.blocks, "block"),
        counted(hot.instructions, "instruction"),
    )?;
    let mut table = Table::new(&[
        ("instr.", Right),
        ("blocks", Right),
        ("count", Right),
        ("path", Left),
        ("then", Left),
        ("source", Left),
        ("function", Left),
    ]);
    for row in &hot.rows {
        let blocks = path_blocks(&row.blocks);
        table.row([
            percent(row.instructions, hot.instructions),
            percent(row.executed, hot.blocks),
            grouped(row.count),
            blocks,
            match (row.then.calls, row.then.next) {
                (true, Some(next)) => format!("call, {}", next.as_u32()),
                (true, None) => "call, end".to_owned(),
                (false, Some(next)) => next.as_u32().to_string(),
                (false, None) => "end".to_owned(),
            },
            path_lines(&row.lines, names.source),
            names.name(row.function),
        ]);
    }
    let paint = |row: usize| Paint::of_share(hot.rows[row].instructions, hot.instructions);
    table.write(out, style, paint)?;
    let more = hot.paths - hot.left_out - hot.rows.len() as u64;
    left(out, more, "path")?;
    others(out, names, hot.left_out, "path")
}

/// The maximum number of a path's blocks in a table.
const LONGEST: usize = 10;

/// Formats the blocks of a path, shortened if there are many.
pub(crate) fn path_blocks(all: &[BlockId]) -> String {
    let mut blocks = dots(&all[..all.len().min(LONGEST)]);
    if all.len() > LONGEST {
        blocks.push_str(&format!("… +{}", all.len() - LONGEST));
    }
    blocks
}

/// Formats lines in the form `lib.c:3-7,9`. Includes only the lines of the file with the most
/// lines.
pub(crate) fn path_lines(lines: &[Line], source: &dyn Source) -> String {
    let mut best: &[Line] = &[];
    for of_file in lines.chunk_by(|a, b| a.file == b.file) {
        if of_file.len() > best.len() {
            best = of_file;
        }
    }
    let Some(first) = best.first() else {
        return "-".to_owned();
    };
    let mut text = crate::table::plain(source.short_path(first.file));
    text.push(':');
    // Join neighbouring lines, because a path rarely touches every line of a range.
    let runs: Vec<_> = best.chunk_by(|a, b| b.number - a.number <= NEAR).collect();
    for (k, run) in runs.iter().take(RUNS).enumerate() {
        if k > 0 {
            text.push(',');
        }
        let (first, last) = (run[0].number, run[run.len() - 1].number);
        text.push_str(&first.to_string());
        if last > first {
            text.push_str(&format!("-{last}"));
        }
    }
    if runs.len() > RUNS || best.len() < lines.len() {
        text.push('…');
    }
    text
}

/// The maximum distance between neighbouring lines of a range.
const NEAR: u32 = 3;
/// The maximum number of ranges to write.
const RUNS: usize = 3;

/// Writes the occurrences of a pattern.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn found_text(
    out: &mut dyn Write,
    found: &Occurrences,
    names: PathNames<'_>,
    style: Style,
) -> Result<(), PresentError> {
    let parts = found.pattern.parts();
    let text = |part: &afterimage_replay::whole_path::Part| {
        format!(
            "{}:{}",
            names.name(part.function),
            dots(&part.blocks[..part.blocks.len().min(SHOWN)])
        )
    };
    let mut pattern = String::new();
    for (number, part) in parts.iter().enumerate() {
        pattern.push_str(match (number, part.link) {
            (0, _) => "",
            (_, Link::Call) => ">",
            (_, Link::Return) => "<",
        });
        pattern.push_str(&text(part));
    }
    writeln!(
        out,
        "{pattern} occurs {} in {} to {}",
        counted(found.count, "time"),
        counted(found.calls, "call"),
        names.name(first_of(found)),
    )?;
    if found.first.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(&[
        ("from t", Right),
        ("to t", Right),
        ("in call", Right),
        ("begun at t", Right),
    ]);
    for occurrence in &found.first {
        table.row([
            grouped(occurrence.at.first),
            grouped(occurrence.at.last),
            grouped(occurrence.call),
            grouped(occurrence.at.entered),
        ]);
    }
    table.write(out, style, |_| Paint::Plain)?;
    left(out, found.count - found.first.len() as u64, "occurrence")
}

fn first_of(found: &Occurrences) -> FuncId {
    found.pattern.parts()[0].function
}

fn open(out: &mut dyn Write, calls: u64) -> std::io::Result<()> {
    if calls > 0 {
        write!(out, "; {} had not returned at the end", grouped(calls))?;
    }
    Ok(())
}

/// Writes the number of rows that were left out because they belong to other code.
fn others(
    out: &mut dyn Write,
    names: PathNames<'_>,
    count: u64,
    noun: &str,
) -> Result<(), PresentError> {
    if let Some(own) = names.own {
        left_out(out, own, count, noun)?;
    }
    Ok(())
}

fn left(out: &mut dyn Write, left: u64, noun: &str) -> Result<(), PresentError> {
    if left > 0 {
        let more = counted(left, noun).replacen(' ', " more ", 1);
        writeln!(out, "… and {more}")?;
    }
    Ok(())
}
