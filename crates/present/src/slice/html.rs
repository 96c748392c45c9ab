//! Writes a slice as an HTML page: the source files, with the slice marked.

use std::io::Write;

use super::{SliceLine, SliceReport, by_file, head, without_lines};
use crate::PresentError;
use crate::number::grouped;
use crate::page::{self, escaped};
use crate::sources::{Cache, Sources};

/// The style of the slice's lines, and of the lines where it begins.
const STYLE: &str = "
tr.out { color: var(--soft) } tr.in { background: var(--some-page) } tr.at { background: var(--at-page); font-weight: 600 }
";

/// Writes a page. For a missing file, shows the lines without text.
///
/// # Errors
/// Returns an error if `out` fails.
pub(super) fn html(
    out: &mut dyn Write,
    report: &SliceReport,
    sources: &dyn Sources,
) -> Result<(), PresentError> {
    let mut sentence = Vec::new();
    head(&mut sentence, report)?;
    let sentence = String::from_utf8_lossy(&sentence);
    let sentence = escaped(&sentence.trim_end().replace('\n', " "));
    page::begin(out, &report.title, STYLE)?;
    writeln!(out, "<h1 class=\"sentence\">{sentence}</h1>")?;
    let mut cache = Cache::new(sources);
    for (path, lines) in by_file(report) {
        writeln!(out, "<h2>{}</h2>", escaped(path))?;
        page::begin_source(out, &["times", "of", "line"])?;
        let none = Vec::new();
        let text = cache.file(path).unwrap_or(&none);
        let mut lines = lines.iter().peekable();
        for (number, text) in (1..).zip(text) {
            let one = lines.next_if(|one| one.source.line == number);
            row(out, number, one, text)?;
        }
        // The file is missing or has become shorter, so write these lines without text.
        for one in lines {
            row(out, one.source.line, Some(one), "")?;
        }
        page::end_source(out)?;
    }
    let functions = without_lines(report);
    if !functions.is_empty() {
        writeln!(out, "<h2>Statements without a known line</h2>")?;
        page::begin_source(out, &["statements", "executions"])?;
        for one in functions {
            writeln!(
                out,
                "<tr class=\"in\"><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
                grouped(one.statements),
                grouped(one.executions),
                escaped(one.function)
            )?;
        }
        page::end_source(out)?;
    }
    page::end(out)
}

/// Writes a line of a file, with its part of the slice.
fn row(
    out: &mut dyn Write,
    number: u32,
    one: Option<&SliceLine>,
    text: &str,
) -> Result<(), PresentError> {
    let class = match one {
        None => "out",
        Some(one) if one.criterion => "at",
        Some(_) => "in",
    };
    let count = |n: Option<u64>| n.map_or(String::new(), grouped);
    writeln!(
        out,
        "<tr class=\"{class}\"><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{number}</td><td>{}</td></tr>",
        count(one.map(|one| one.sliced)),
        count(one.map(|one| one.executed)),
        escaped(text)
    )?;
    Ok(())
}
