//! As lines of JSON, after a head.

use std::io::Write;

use afterimage_analyses::simulate::{MissesPlace, SiteKind, Spec, Summary, Tally};
use serde_json::{Value as Json, json};

use super::MissReport;
use crate::PresentError;
use crate::steps::StepScene;

/// Writes a simulation as lines of JSON: a head, then the rows.
///
/// # Errors
/// If `out` fails.
pub fn misses_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &MissReport<'_>,
) -> Result<(), PresentError> {
    writeln!(out, "{}", head(report.summary))?;
    for row in report.shown() {
        let mut entry = match &row.place {
            MissesPlace::Line(None) => json!({ "source": null }),
            MissesPlace::Line(Some(line)) => {
                let files = scene.source.files();
                let file = files.get(line.file.0 as usize);
                json!({ "source": { "file": file, "line": line.number } })
            }
            MissesPlace::Function(function) => json!({
                "function": function.as_u32(),
                "name": scene.names.function(*function),
            }),
            MissesPlace::Instruction {
                kind,
                function,
                place,
                ..
            } => json!({
                "function": function.as_u32(),
                "name": scene.names.function(*function),
                "kind": kind_name(*kind),
                "operator": &*place.name,
                "offset": place.offset.0,
                "source": place.position.map(|position| {
                    json!({ "file": scene.file(position), "line": position.line })
                }),
            }),
        };
        add(&mut entry, report.summary, row.tally);
        writeln!(out, "{entry}")?;
    }
    Ok(())
}

/// What is known of a simulation at once.
fn head(summary: &Summary) -> Json {
    let mut head = json!({
        "schema": "afterimage/simulate/1",
        "simulation": summary.spec.to_string(),
        "blocks": summary.blocks,
        "instructions": summary.instructions,
    });
    add(&mut head, summary, summary.sum(|_| true));
    if let Spec::Caches(_) = summary.spec {
        let traffic = summary.traffic;
        let mut lines = json!({
            "touched": traffic.touched,
            "first_read": traffic.first,
            "first_written_back": traffic.first_back,
        });
        if summary.spec.is_two() {
            lines["second_read"] = json!(traffic.second);
            lines["second_written_back"] = json!(traffic.second_back);
        }
        head["lines"] = lines;
    }
    head
}

/// Adds executions and misses.
fn add(entry: &mut Json, summary: &Summary, tally: Tally) {
    entry["executions"] = json!(tally.executions);
    entry["missed"] = json!(tally.missed);
    if summary.spec.is_two() {
        entry["missed_second"] = json!(tally.last);
    }
}

/// A kind in one word.
pub(super) fn kind_name(kind: SiteKind) -> &'static str {
    match kind {
        SiteKind::Conditional => "branch",
        SiteKind::Table => "table",
        SiteKind::Call => "call",
        SiteKind::Load => "load",
        SiteKind::Store => "store",
        SiteKind::Bulk => "bulk",
    }
}
