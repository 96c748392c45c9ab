//! Reports slices by source line, by statement, and beside the source text.

mod command;
mod dot;
mod html;
mod json;

use std::collections::BTreeSet;
use std::io::Write;

use afterimage_analyses::slices::Edge;
use afterimage_ids::OrigOffset;
use afterimage_profile::CodeFilter;

pub use command::slice_command;
pub use json::{SliceLine, SliceReport, SliceStatement};

use crate::PresentError;
use crate::document::begin;
use crate::number::{counted, grouped};
use crate::render::Render;
use crate::sources::{Cache, Sources};
use crate::table::{Align, Paint, Style, Table, plain, width};

/// Writes the summary sentence.
fn head(out: &mut dyn Write, report: &SliceReport) -> Result<(), PresentError> {
    let lines = report.lines.len() as u64;
    let statements = counted(report.statements.len() as u64, "statement");
    let executions = counted(report.executions, "execution");
    if report.statements.is_empty() {
        writeln!(out, "{}: no executed statements", plain(&report.title))?;
        return initial(out, report);
    }
    let place = match lines {
        0 => String::new(),
        _ => format!(
            "{} of the {} executed, ",
            counted(lines, "line"),
            grouped(report.executed_lines as u64)
        ),
    };
    writeln!(
        out,
        "{}: {place}{statements}, {executions}",
        plain(&report.title)
    )?;
    initial(out, report)
}

fn initial(out: &mut dyn Write, report: &SliceReport) -> Result<(), PresentError> {
    if report.initial_bytes > 0 {
        let bytes = counted(report.initial_bytes, "byte");
        writeln!(out, "and {bytes} of initial memory")?;
    }
    Ok(())
}

/// A file, with some of its lines.
type FileLines<'r> = (&'r str, &'r [SliceLine]);

/// Groups lines by file.
fn by_file(report: &SliceReport) -> Vec<FileLines<'_>> {
    let files = report.lines.chunk_by(|a, b| a.source.file == b.source.file);
    let mut files = Vec::from_iter(files.map(|lines| (lines[0].source.file.as_str(), lines)));
    files.sort_by_key(|(path, _)| *path);
    files
}

/// Writes the lines of a slice, file by file, with their text if available. Each line has the
/// number of its executions in the slice, and the total number of its executions. Lines where the
/// slice begins are marked `>`.
///
/// # Errors
/// Returns an error if `out` fails.
fn slice_lines(
    out: &mut dyn Write,
    view: &SliceView<'_>,
    style: Style,
) -> Result<(), PresentError> {
    let report = view.report;
    head(out, report)?;
    let mut cache = Cache::new(view.sources);
    let mut left = view.limit;
    let (files, library) = view.by_code();
    let shown = files.iter().map(|(_, lines)| lines.len()).sum();
    let (at_hand, others): (Vec<_>, Vec<_>) = files
        .into_iter()
        .partition(|(path, _)| cache.file(path).is_some());
    for (path, lines) in at_hand {
        if left == 0 {
            break;
        }
        writeln!(out, "\n{}", style.paint(Paint::Bold, &plain(path)))?;
        let mut table = Table::new(&[
            ("times", Align::Right),
            ("of", Align::Right),
            ("line", Align::Right),
            ("text", Align::Left),
        ]);
        for one in lines.iter().take(left) {
            let mark = if one.criterion { '>' } else { ' ' };
            let text = cache.line(path, one.source.line);
            table.row([
                grouped(one.sliced),
                grouped(one.executed),
                format!("{mark}{}", one.source.line),
                text.map_or(String::new(), plain),
            ]);
        }
        left -= lines.len().min(left);
        table.write(out, style, |_| Paint::Plain)?;
    }
    if !others.is_empty() && left > 0 {
        let title = "Lines of files that were not found";
        writeln!(out, "\n{}", style.paint(Paint::Bold, title))?;
        for (path, lines) in others {
            if left == 0 {
                break;
            }
            let shown = lines.iter().take(left);
            let numbers = numbers(shown.map(|one| one.source.line));
            left -= lines.len().min(left);
            writeln!(out, "{}: {numbers}", plain(path))?;
        }
    }
    rest(out, shown, view.limit, "line")?;
    left_out(out, &library)?;
    elsewhere(out, report, view.limit, style)
}

/// Writes the number of lines that are omitted because they are not the user's own code.
fn left_out(out: &mut dyn Write, files: &[FileLines<'_>]) -> Result<(), PresentError> {
    if files.is_empty() {
        return Ok(());
    }
    let lines = files.iter().map(|(_, lines)| lines.len() as u64).sum();
    let (lines, files) = (counted(lines, "line"), counted(files.len() as u64, "file"));
    writeln!(
        out,
        "\nlibrary code: {lines} in {files}; --code all lists them"
    )?;
    Ok(())
}

/// Formats ascending numbers, with ranges: `27, 28, 33-36`.
fn numbers(numbers: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let texts = runs.iter().map(|&(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    });
    Vec::from_iter(texts).join(", ")
}

/// Writes the number of items that a limit omitted.
fn rest(out: &mut dyn Write, all: usize, limit: usize, noun: &str) -> Result<(), PresentError> {
    if all > limit {
        let more = counted((all - limit) as u64, &format!("more {noun}"));
        writeln!(out, "… {more}: --limit N shows more")?;
    }
    Ok(())
}

/// Writes the functions that have statements without a known line.
fn elsewhere(
    out: &mut dyn Write,
    report: &SliceReport,
    limit: usize,
    style: Style,
) -> Result<(), PresentError> {
    let functions = without_lines(report);
    if functions.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{}",
        style.paint(
            Paint::Bold,
            "Statements without a known line (--by statement lists them)"
        )
    )?;
    let mut table = Table::new(&[
        ("statements", Align::Right),
        ("executions", Align::Right),
        ("function", Align::Left),
    ]);
    for one in functions.iter().take(limit) {
        table.row([
            grouped(one.statements),
            grouped(one.executions),
            plain(one.function),
        ]);
    }
    table.write(out, style, |_| Paint::Plain)?;
    rest(out, functions.len(), limit, "function")
}

/// A function's statements in a slice that have no known line.
struct WithoutLines<'r> {
    function: &'r str,
    /// The number of statements.
    statements: u64,
    /// The number of executions of statements in the slice.
    executions: u64,
    /// For the statement with the most executions in the slice, the number of these executions and
    /// of all its executions.
    most: (u64, u64),
}

/// Returns the functions that have statements without a known line.
fn without_lines<'r>(report: &'r SliceReport) -> Vec<WithoutLines<'r>> {
    let without = report.statements.iter().filter(|one| one.source.is_none());
    let without = Vec::from_iter(without);
    let groups = without.chunk_by(|a, b| a.function == b.function);
    let of_group = |group: &[&'r SliceStatement]| {
        let counts = group.iter().map(|one| (one.sliced, one.executed));
        WithoutLines {
            function: &group[0].function.name,
            statements: group.len() as u64,
            executions: group.iter().map(|one| one.sliced).sum(),
            most: counts.max().unwrap_or_default(),
        }
    };
    groups.map(of_group).collect()
}

/// Writes the statements of a slice, function by function.
///
/// # Errors
/// Returns an error if `out` fails.
fn slice_statements(
    out: &mut dyn Write,
    view: &SliceView<'_>,
    style: Style,
) -> Result<(), PresentError> {
    let report = view.report;
    head(out, report)?;
    let mut texts = view.texts.iter();
    let mut left = view.limit;
    for group in report.statements.chunk_by(|a, b| a.function == b.function) {
        if left == 0 {
            break;
        }
        let name = plain(&group[0].function.name);
        writeln!(out, "\n{}", style.paint(Paint::Bold, &name))?;
        let mut table = Table::new(&[
            ("times", Align::Right),
            ("of", Align::Right),
            ("offset", Align::Left),
            ("line", Align::Left),
            ("text", Align::Left),
        ]);
        for one in group.iter().take(left) {
            let text = texts
                .next()
                .map_or(String::new(), |text| plain(text.trim()));
            table.row([
                grouped(one.sliced),
                grouped(one.executed),
                format!("@{}", OrigOffset(one.offset)),
                one.source
                    .as_ref()
                    .map_or(String::new(), |line| plain(&line.to_string())),
                text,
            ]);
        }
        left -= group.len().min(left);
        table.write(out, style, |_| Paint::Plain)?;
    }
    rest(out, report.statements.len(), view.limit, "statement")
}

/// Writes whole source files. Lines of the slice are marked with `*`, or with `>` where the slice
/// begins, and have the number of their executions in the slice. For a missing file, only the
/// numbers of its lines are listed.
///
/// # Errors
/// Returns an error if `out` fails.
fn slice_annotated(
    out: &mut dyn Write,
    view: &SliceView<'_>,
    style: Style,
) -> Result<(), PresentError> {
    let report = view.report;
    head(out, report)?;
    let mut cache = Cache::new(view.sources);
    let (files, library) = view.by_code();
    for (path, lines) in files {
        writeln!(out, "\n{}", style.paint(Paint::Bold, &plain(path)))?;
        let Some(text) = cache.file(path) else {
            let numbers = numbers(lines.iter().map(|one| one.source.line));
            writeln!(out, "not found; lines {numbers}")?;
            continue;
        };
        let counts = lines.iter().map(|one| width(&grouped(one.sliced)));
        let count_width = counts.max().unwrap_or(0);
        let number_width = text.len().to_string().len();
        let mut lines = lines.iter().peekable();
        for (number, text) in (1..).zip(text) {
            let one = lines.next_if(|one| one.source.line == number);
            let (mark, count) = match one {
                None => (' ', String::new()),
                Some(one) if one.criterion => ('>', grouped(one.sliced)),
                Some(one) => ('*', grouped(one.sliced)),
            };
            let row = format!(
                "{mark} {count:>count_width$} {number:>number_width$}  {}",
                plain(text)
            );
            let paint = match one {
                None => Paint::Dead,
                Some(_) if mark == '>' => Paint::Bold,
                Some(_) => Paint::Plain,
            };
            writeln!(out, "{}", style.paint(paint, row.trim_end()))?;
        }
        if lines.peek().is_some() {
            let numbers = numbers(lines.map(|one| one.source.line));
            writeln!(out, "the file found here is shorter; lines {numbers}")?;
        }
    }
    left_out(out, &library)?;
    elsewhere(out, report, view.limit, style)
}

/// A slice, with the options for showing it.
pub struct SliceView<'s> {
    /// The slice.
    pub report: &'s SliceReport,
    /// The kind of rows.
    pub rows: SliceRows,
    /// The maximum number of rows of a table. In JSON, the limit applies to lines and to statements
    /// separately.
    pub limit: usize,
    /// The text of each statement to show.
    pub texts: &'s [String],
    /// The code whose lines the text form lists. Other lines are only counted. If no line belongs
    /// to this code, all lines are listed.
    pub code: &'s CodeFilter,
    /// Source text.
    pub sources: &'s dyn Sources,
    /// The dependences between operators of the slice, for a graph.
    pub edges: BTreeSet<Edge>,
}

impl<'s> SliceView<'s> {
    /// Returns the files whose lines are listed, and the other files.
    fn by_code(&self) -> (Vec<FileLines<'s>>, Vec<FileLines<'s>>) {
        let files = by_file(self.report).into_iter();
        let (own, library): (Vec<_>, Vec<_>) = files.partition(|(path, _)| self.code.shows(path));
        if own.is_empty() {
            (library, own)
        } else {
            (own, library)
        }
    }
}

/// The kind of rows of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceRows {
    /// A line.
    Lines,
    /// A statement.
    Statements,
    /// A line, together with all other lines of its file.
    Annotated,
}

impl Render for SliceView<'_> {
    const NAME: &'static str = "a slice";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        match self.rows {
            SliceRows::Lines => slice_lines(out, self, style),
            SliceRows::Statements => slice_statements(out, self, style),
            SliceRows::Annotated => slice_annotated(out, self, style),
        }
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, &*self.report.limited(self.limit))
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        let by_line = self.rows != SliceRows::Statements;
        json::csv(out, self.report, by_line, self.limit)
    }

    fn dot(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        let by_line = self.rows != SliceRows::Statements;
        dot::dot(out, self.report, &self.edges, by_line)
    }

    fn html(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        html::html(out, self.report, self.sources)
    }
}
