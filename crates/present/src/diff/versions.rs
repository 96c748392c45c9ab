//! Two versions of a program that ran on the same input.

use std::io::Write;

use afterimage_query::diff::OutputDifference;
use serde_json::json;

use super::command;
use super::text::put_out;
use crate::PresentError;
use crate::matching::{MatchReport, divergences_json, diverging, unlike};
use crate::table::{Paint, Style, plain};

/// Writes how two versions differ, for a person.
///
/// # Errors
/// If `out` fails or a module cannot be read.
pub fn versions_text(
    out: &mut dyn Write,
    report: &MatchReport<'_>,
    outputs: &[OutputDifference],
    style: Style,
) -> Result<(), PresentError> {
    let [a, b] = [report.a.name, report.b.name].map(plain);
    let same = match outputs {
        [] => "they put out the same",
        _ => "they put out something else",
    };
    let found = &report.matching.of_b;
    let head = format!(
        "{a} and {b} are recordings of different programs; {same}; {} of {} statements correspond",
        found.iter().flatten().count(),
        found.len()
    );
    writeln!(out, "{}", style.paint(Paint::Bold, &head))?;
    unlike(out, report)?;
    let width = a.chars().count().max(b.chars().count());
    let sides = [format!("{a:width$}"), format!("{b:width$}")];
    for output in outputs {
        writeln!(out)?;
        put_out(out, style, output, &sides)?;
    }
    diverging(out, report, style)?;
    let questions = questions(report)?;
    if !questions.is_empty() {
        writeln!(out, "\n{}", style.paint(Paint::Bold, "what led there"))?;
        for question in questions {
            writeln!(out, "  {question}")?;
        }
    }
    Ok(())
}

/// Where to go on asking: at what stops doing the same first.
fn questions(report: &MatchReport<'_>) -> Result<Vec<String>, PresentError> {
    let Some(first) = report.divergences.first() else {
        return Ok(Vec::new());
    };
    let mut questions = Vec::new();
    for verb in ["why", "slice"] {
        let sides = [(report.a, first.a), (report.b, first.b)];
        for ((side, statement), number) in sides.into_iter().zip(first.numbers) {
            let place = format!("@{}", side.tell(statement)?.offset);
            questions.push(command(verb, side.name, &place, number));
        }
    }
    Ok(questions)
}

/// Writes how two versions differ, as one object.
///
/// # Errors
/// If `out` fails or a module cannot be read.
pub fn versions_json(
    out: &mut dyn Write,
    report: &MatchReport<'_>,
    outputs: &[OutputDifference],
) -> Result<(), PresentError> {
    let outputs = outputs.iter().map(|output| {
        let bytes = |written: &Option<afterimage_query::diff::Written>| {
            let written = written.as_ref();
            written.map(|written| json!({ "bytes": written.bytes, "t": written.time }))
        };
        json!({
            "descriptor": output.descriptor,
            "offset": output.offset,
            "line": output.line,
            "before": output.before,
            "a": bytes(&output.a),
            "b": bytes(&output.b),
        })
    });
    let outputs: Vec<_> = outputs.collect();
    let divergences = divergences_json(report)?;
    let found = &report.matching.of_b;
    let whole = json!({
        "schema": "afterimage/versions/1",
        "a": report.a.name,
        "b": report.b.name,
        "statements": found.len(),
        "matched": found.iter().flatten().count(),
        "outputs": outputs,
        "divergences": divergences,
        "questions": questions(report)?,
    });
    writeln!(out, "{whole}")?;
    Ok(())
}
