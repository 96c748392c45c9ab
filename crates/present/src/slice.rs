//! Slices: by source line, by statement, beside the source.

mod dot;
mod html;
mod json;

use std::collections::BTreeSet;
use std::io::Write;

use afterimage_analyses::slices::{Edge, SliceReport, SlicedLine, SlicedOperator};
use afterimage_ids::FuncId;
use afterimage_profile::{Line, Source};
use afterimage_program::Names;
use afterimage_replay::state::Written;

pub use dot::slice_dot;
pub use html::slice_html;
pub use json::{SliceDocument, slice_csv, slice_json};

use crate::PresentError;
use crate::number::{counted, grouped};
use crate::render::Render;
use crate::sources::{Cache, Sources};
use crate::table::{Align, Paint, Style, Table, plain, width};

/// What a slice is shown with.
pub struct SliceScene<'s> {
    /// What is in it, in words: "what main.c:7#1 depends on".
    pub title: &'s str,
    /// Of a variable whose place may hold something else: why.
    pub written: Option<Written>,
    /// What it begins with: these lines are marked.
    pub criterion: &'s [Line],
    /// Lines of files.
    pub source: &'s dyn Source,
    /// Names of functions.
    pub names: &'s Names,
    /// Source text.
    pub sources: &'s dyn Sources,
    /// At most so many rows of a table.
    pub limit: usize,
    /// The text of each operator of the slice, if statements are shown.
    pub texts: &'s [String],
}

impl SliceScene<'_> {
    fn file(&self, line: Line) -> &str {
        let path = self.source.files().get(line.file.0 as usize);
        path.map_or("", String::as_str)
    }

    fn name(&self, function: FuncId) -> String {
        plain(self.names.function(function))
    }

    fn begins(&self, line: Line) -> bool {
        self.criterion.contains(&line)
    }
}

/// One sentence that says what was found.
fn head(
    out: &mut dyn Write,
    report: &SliceReport,
    scene: &SliceScene<'_>,
) -> Result<(), PresentError> {
    let lines = report.lines.len() as u64;
    let statements = counted(report.operators.len() as u64, "statement");
    let executions = counted(report.executions, "execution");
    if report.operators.is_empty() {
        writeln!(out, "{}: nothing that was executed", plain(scene.title))?;
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
        "{}: {place}{statements}, {executions} of them",
        plain(scene.title)
    )?;
    initial(out, report)
}

fn initial(out: &mut dyn Write, report: &SliceReport) -> Result<(), PresentError> {
    if report.initial > 0 {
        let bytes = counted(report.initial, "byte");
        writeln!(out, "and {bytes} of memory as they were before the run")?;
    }
    Ok(())
}

/// Lines of one file.
fn by_file<'r>(
    report: &'r SliceReport,
    scene: &'r SliceScene<'_>,
) -> Vec<(&'r str, &'r [SlicedLine])> {
    let files = report.lines.chunk_by(|a, b| a.line.file == b.line.file);
    let mut files = Vec::from_iter(files.map(|lines| (scene.file(lines[0].line), lines)));
    files.sort_by_key(|(path, _)| *path);
    files
}

/// Writes the lines of a slice, file by file, with their text where it is at hand: how many of a line's executions are in the slice, of how
/// many. A line that the slice begins with is marked `>`.
///
/// # Errors
/// If `out` fails.
pub fn slice_lines(
    out: &mut dyn Write,
    report: &SliceReport,
    scene: &SliceScene<'_>,
    style: Style,
) -> Result<(), PresentError> {
    head(out, report, scene)?;
    let mut cache = Cache::new(scene.sources);
    let mut left = scene.limit;
    let files = by_file(report, scene);
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
            let mark = if scene.begins(one.line) { '>' } else { ' ' };
            let text = cache.line(path, one.line.number);
            table.row([
                grouped(one.sliced),
                grouped(one.executed),
                format!("{mark}{}", one.line.number),
                text.map_or(String::new(), plain),
            ]);
        }
        left -= lines.len().min(left);
        table.write(out, style, |_| Paint::Plain)?;
    }
    if !others.is_empty() && left > 0 {
        let title = "Lines of files that are not at hand";
        writeln!(out, "\n{}", style.paint(Paint::Bold, title))?;
        for (path, lines) in others {
            if left == 0 {
                break;
            }
            let shown = lines.iter().take(left);
            let numbers = numbers(shown.map(|one| one.line.number));
            left -= lines.len().min(left);
            writeln!(out, "{}: {numbers}", plain(path))?;
        }
    }
    rest(out, report.lines.len(), scene.limit, "line")?;
    elsewhere(out, report, scene, style)
}

/// `27, 28, 33-36`.
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

/// Says what a limit kept from being shown.
fn rest(out: &mut dyn Write, all: usize, limit: usize, noun: &str) -> Result<(), PresentError> {
    if all > limit {
        let more = counted((all - limit) as u64, &format!("more {noun}"));
        writeln!(out, "… {more}: --limit shows others")?;
    }
    Ok(())
}

/// Functions with statements of which no line is known.
fn elsewhere(
    out: &mut dyn Write,
    report: &SliceReport,
    scene: &SliceScene<'_>,
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
            "Statements of no known line (--by statement lists them)"
        )
    )?;
    let mut table = Table::new(&[
        ("statements", Align::Right),
        ("executions", Align::Right),
        ("function", Align::Left),
    ]);
    for one in functions.iter().take(scene.limit) {
        table.row([
            grouped(one.statements),
            grouped(one.executions),
            scene.name(one.function),
        ]);
    }
    table.write(out, style, |_| Paint::Plain)?;
    rest(out, functions.len(), scene.limit, "function")
}

/// A function's statements in a slice of which no line is known.
struct WithoutLines {
    function: FuncId,
    /// How many there are.
    statements: u64,
    /// How many executions of them.
    executions: u64,
    /// Most executions of one of them in the slice, and how often that was executed.
    most: (u64, u64),
}

/// The functions with statements of which no line is known.
fn without_lines(report: &SliceReport) -> Vec<WithoutLines> {
    let without = report.operators.iter().filter(|one| one.line.is_none());
    let without = Vec::from_iter(without);
    let groups = without.chunk_by(|a, b| a.function == b.function);
    let of = |group: &[&SlicedOperator]| {
        let counts = group.iter().map(|one| (one.sliced, one.executed));
        WithoutLines {
            function: group[0].function,
            statements: group.len() as u64,
            executions: group.iter().map(|one| one.sliced).sum(),
            most: counts.max().unwrap_or_default(),
        }
    };
    groups.map(of).collect()
}

/// Writes the statements of a slice, function by function.
///
/// # Errors
/// If `out` fails.
pub fn slice_statements(
    out: &mut dyn Write,
    report: &SliceReport,
    scene: &SliceScene<'_>,
    style: Style,
) -> Result<(), PresentError> {
    head(out, report, scene)?;
    let mut texts = scene.texts.iter();
    let mut left = scene.limit;
    for group in report.operators.chunk_by(|a, b| a.function == b.function) {
        if left == 0 {
            break;
        }
        let name = scene.name(group[0].function);
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
                format!("@{}", one.offset),
                one.line.map_or(String::new(), |line| short(scene, line)),
                text,
            ]);
        }
        left -= group.len().min(left);
        table.write(out, style, |_| Paint::Plain)?;
    }
    rest(out, report.operators.len(), scene.limit, "statement")
}

/// `main.c:7`.
fn short(scene: &SliceScene<'_>, line: Line) -> String {
    let file = scene.source.short_path(line.file);
    plain(&format!("{file}:{}", line.number))
}

/// Writes whole source files with the lines of a slice marked: `*`, or `>` where the slice begins, and how many of a line's executions are in
/// it. Files that are not at hand are listed line by line.
///
/// # Errors
/// If `out` fails.
pub fn slice_annotated(
    out: &mut dyn Write,
    report: &SliceReport,
    scene: &SliceScene<'_>,
    style: Style,
) -> Result<(), PresentError> {
    head(out, report, scene)?;
    let mut cache = Cache::new(scene.sources);
    for (path, lines) in by_file(report, scene) {
        writeln!(out, "\n{}", style.paint(Paint::Bold, &plain(path)))?;
        let Some(text) = cache.file(path) else {
            let numbers = numbers(lines.iter().map(|one| one.line.number));
            writeln!(out, "not at hand; lines {numbers}")?;
            continue;
        };
        let counts = lines.iter().map(|one| width(&grouped(one.sliced)));
        let count_width = counts.max().unwrap_or(0);
        let number_width = text.len().to_string().len();
        let mut lines = lines.iter().peekable();
        for (number, text) in (1..).zip(text) {
            let one = lines.next_if(|one| one.line.number == number);
            let (mark, count) = match one {
                None => (' ', String::new()),
                Some(one) if scene.begins(one.line) => ('>', grouped(one.sliced)),
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
            let numbers = numbers(lines.map(|one| one.line.number));
            writeln!(out, "the file at hand ends here; lines {numbers}")?;
        }
    }
    elsewhere(out, report, scene, style)
}

/// A slice, and how it is shown.
pub struct SliceView<'s> {
    /// The slice.
    pub report: &'s SliceReport,
    /// What it is shown with.
    pub scene: SliceScene<'s>,
    /// What has a row.
    pub rows: SliceRows,
    /// Which of its operators depended on which, for a graph.
    pub edges: BTreeSet<Edge>,
}

/// What has a row of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceRows {
    /// A line.
    Lines,
    /// A statement.
    Statements,
    /// A line, and all others of its file.
    Annotated,
}

impl Render for SliceView<'_> {
    const NAME: &'static str = "a slice";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        let (report, scene) = (self.report, &self.scene);
        match self.rows {
            SliceRows::Lines => slice_lines(out, report, scene, style),
            SliceRows::Statements => slice_statements(out, report, scene, style),
            SliceRows::Annotated => slice_annotated(out, report, scene, style),
        }
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        slice_json(out, self.report, &self.scene)
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        slice_csv(
            out,
            self.report,
            &self.scene,
            self.rows != SliceRows::Statements,
        )
    }

    fn dot(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        let by_line = self.rows != SliceRows::Statements;
        slice_dot(out, self.report, &self.scene, &self.edges, by_line)
    }

    fn html(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        slice_html(out, self.report, &self.scene)
    }
}
