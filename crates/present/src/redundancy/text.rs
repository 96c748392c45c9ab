//! Writes redundancy reports for a terminal.

use std::io::Write;

use afterimage_analyses::redundancy::{OperatorRedundancy, OperatorSource};

use super::ways::ways;
use super::{RedundancyOf, RedundancyReport, RedundancyScene};
use crate::PresentError;
use crate::addresses::Shown;
use crate::number::{counted, grouped, percent};
use crate::own::left_out;
use crate::steps::StepScene;
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};

/// Writes redundant operators for people: a summary in one sentence, then the operators. Each
/// operator comes with its most frequent source and, on request, the paths.
///
/// # Errors
/// Returns an error if `out` fails or the module does not match the program.
pub fn redundancy_text(
    out: &mut dyn Write,
    scene: &RedundancyScene<'_>,
    report: &RedundancyReport,
) -> Result<(), PresentError> {
    let steps = &scene.steps;
    let of = report.function.as_deref();
    let of = of.map_or(String::new(), |name| format!(" of {}", plain(name)));
    let (noun, of_loads) = match report.of {
        RedundancyOf::Loads => ("load", true),
        RedundancyOf::Expressions => ("expression", false),
    };
    if report.all == 0 {
        let what = if of_loads {
            "load"
        } else {
            "operator that only computes"
        };
        writeln!(out, "no {what}{of} was executed")?;
        return Ok(());
    }
    let subject = format!(
        "{} of {} of {}{of} ({})",
        grouped(report.redundant),
        counted(report.executions, "execution"),
        counted(report.all, noun),
        percent(report.redundant, report.executions),
    );
    match report.of {
        RedundancyOf::Loads => writeln!(
            out,
            "{subject} read what was already available; {} ({}) thanks to an access in the same call",
            grouped(report.within),
            percent(report.within, report.executions),
        )?,
        RedundancyOf::Expressions => writeln!(
            out,
            "{subject} recomputed a result that the same expression had already given in the same call"
        )?,
    }
    writeln!(out)?;
    let mut columns = vec![
        (noun, Left),
        ("", Left),
        ("executed", Right),
        ("redundant", Right),
        ("", Right),
    ];
    if of_loads {
        columns.extend([("same call", Right), ("", Right)]);
    }
    let has_paths = !report.by_path.is_empty();
    if has_paths {
        columns.extend([("by path", Right), ("", Right)]);
    }
    columns.extend([
        ("mostly from", Left),
        ("", Right),
        ("source", Left),
        ("function", Left),
    ]);
    let mut table = Table::new(&columns);
    for operator in &report.operators {
        let shown = Shown::of(steps, operator.site)?;
        let by_path = report.path(operator);
        let (from, share) = match operator.sources.first() {
            Some(source) => (
                from(steps, operator, source)?,
                percent(source.times, operator.redundant),
            ),
            None => ("-".to_owned(), String::new()),
        };
        let mut cells = vec![
            format!("@{}", shown.offset),
            shown.name.clone(),
            grouped(operator.executions),
            grouped(operator.redundant),
            percent(operator.redundant, operator.executions),
        ];
        if of_loads {
            cells.push(grouped(operator.within));
            cells.push(percent(operator.within, operator.executions));
        }
        if has_paths {
            cells.push(by_path.map_or(String::new(), |by_path| grouped(by_path.redundant)));
            cells.push(by_path.map_or(String::new(), |by_path| {
                percent(by_path.redundant, operator.executions)
            }));
        }
        cells.extend([
            from,
            share,
            shown.line(steps),
            plain(steps.names.function(operator.site.function)),
        ]);
        table.row(cells);
    }
    table.write(out, steps.style, |row| {
        Paint::of_share(report.operators[row].redundant, report.executions)
    })?;
    let more = report.all - report.left_out - report.operators.len() as u64;
    if more > 0 {
        writeln!(
            out,
            "… and {}: see them with --limit N",
            counted(more, noun)
        )?;
    }
    if let Some(own) = scene.steps.own {
        left_out(out, own, report.left_out, noun)?;
    }
    ways(out, scene, report)
}

/// Formats the place of a source, or `itself` if the source is the operator itself.
pub(super) fn from(
    scene: &StepScene<'_>,
    operator: &OperatorRedundancy,
    source: &OperatorSource,
) -> Result<String, PresentError> {
    if source.site == operator.site {
        return Ok("itself".to_owned());
    }
    let shown = Shown::of(scene, source.site)?;
    let line = shown.line(scene);
    let place = if line.is_empty() {
        String::new()
    } else {
        format!(" {line}")
    };
    Ok(format!("@{} {}{place}", shown.offset, shown.name))
}
