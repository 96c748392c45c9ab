//! A slice as a page: the source files, with the slice marked.

use std::io::Write;

use super::{SliceLine, SliceReport, by_file, head, without_lines};
use crate::PresentError;
use crate::number::grouped;
use crate::plain::plain;
use crate::sources::{Cache, Sources};

/// Everything that the page needs is in it.
const STYLE: &str = "
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: #1b1b1b; background: #fff }
h1 { font-size: 1.1em; font-weight: 600 } h2 { font-size: 1em; margin: 2em 0 .5em }
table { border-collapse: collapse; font: 13px/1.45 ui-monospace, monospace; width: 100% }
td { padding: 0 .8em; white-space: pre; vertical-align: top } td.n { text-align: right; color: #777; user-select: none }
tr.out { color: #a5a5a5 } tr.in { background: #fff6d6 } tr.at { background: #ffd9a8; font-weight: 600 }
a { color: inherit }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #ddd } tr.out { color: #666 } tr.in { background: #3a3416 } tr.at { background: #5c3d12 } }
";

/// Writes a page. Files that are not at hand show their lines without text.
///
/// # Errors
/// If `out` fails.
pub(super) fn html(
    out: &mut dyn Write,
    report: &SliceReport,
    sources: &dyn Sources,
) -> Result<(), PresentError> {
    let mut sentence = Vec::new();
    head(&mut sentence, report)?;
    let sentence = escaped(String::from_utf8_lossy(&sentence).trim_end());
    let title = escaped(&report.title);
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head>\n<body><h1>{sentence}</h1>"
    )?;
    let mut cache = Cache::new(sources);
    for (path, lines) in by_file(report) {
        writeln!(
            out,
            "<h2>{}</h2>\n<table><tr><td class=\"n\">times</td><td class=\"n\">of</td><td class=\"n\">line</td><td></td></tr>",
            escaped(path)
        )?;
        let none = Vec::new();
        let text = cache.file(path).unwrap_or(&none);
        let mut lines = lines.iter().peekable();
        for (number, text) in (1..).zip(text) {
            let one = lines.next_if(|one| one.source.line == number);
            row(out, number, one, text)?;
        }
        // Of a file that is not at hand, or was longer.
        for one in lines {
            row(out, one.source.line, Some(one), "")?;
        }
        writeln!(out, "</table>")?;
    }
    let functions = without_lines(report);
    if !functions.is_empty() {
        writeln!(
            out,
            "<h2>Statements of no known line</h2>\n<table><tr><td class=\"n\">statements</td><td class=\"n\">executions</td><td>function</td></tr>"
        )?;
        for one in functions {
            writeln!(
                out,
                "<tr class=\"in\"><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
                grouped(one.statements),
                grouped(one.executions),
                escaped(one.function)
            )?;
        }
        writeln!(out, "</table>")?;
    }
    writeln!(out, "</body></html>")?;
    Ok(())
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A line of a file, and what of it is in the slice.
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
