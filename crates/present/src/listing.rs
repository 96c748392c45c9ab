//! Writes functions as WebAssembly text, with counts beside the operators.

use std::io::Write;

use afterimage_profile::{FunctionRow, OperatorCount, Profile};

use crate::PresentError;
use crate::number::{counted, grouped, percent};
use crate::table::{Paint, Style, plain};

/// Writes functions with the number of executions of each operator. Markers of the block structure
/// and unreachable code have no count (`-`).
///
/// # Errors
/// Returns an error if `out` fails, the profile cannot be evaluated, or the module cannot be
/// written as text.
pub(crate) fn listing(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    rows: &[FunctionRow],
    style: Style,
) -> Result<(), PresentError> {
    let mut bodies = Vec::new();
    for row in rows {
        if let Some((function, _, counts)) = profile.function(row.function) {
            let mut operators = Vec::new();
            profile.operators(function, counts, &mut operators)?;
            bodies.push((row, operators));
        }
    }
    let all = bodies.iter().flat_map(|(_, operators)| operators.iter());
    let mut offsets: Vec<_> = all.map(|operator| operator.offset).collect();
    offsets.sort_unstable();
    let texts = if offsets.is_empty() {
        Vec::new()
    } else {
        profile.texts(&offsets)?
    };
    let text_of = |operator: &OperatorCount| {
        let text = offsets
            .binary_search(&operator.offset)
            .ok()
            .map(|at| texts[at].as_str());
        text.filter(|text| !text.is_empty()).unwrap_or("  end")
    };
    for (row, operators) in &bodies {
        write_function(out, profile, row, operators, text_of, style)?;
    }
    Ok(())
}

fn write_function<'t>(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    row: &FunctionRow,
    operators: &[OperatorCount],
    text_of: impl Fn(&OperatorCount) -> &'t str,
    style: Style,
) -> Result<(), PresentError> {
    let total = profile.totals().instructions;
    let title = format!(
        "{}: {} ({} of all instructions)",
        profile.names().function(row.function),
        counted(row.entries, "call"),
        percent(row.instructions, total)
    );
    writeln!(out, "\n{}", style.paint(Paint::Bold, &plain(&title)))?;
    let widths = operators
        .iter()
        .map(|operator| grouped(operator.count).len());
    let count_width = widths.max().unwrap_or(0).max("#####".len());
    for operator in operators {
        let (count, paint) = match operator {
            OperatorCount {
                instruction: false, ..
            }
            | OperatorCount { block: None, .. } => ("-".to_owned(), Paint::Plain),
            OperatorCount { count: 0, .. } => ("#####".to_owned(), Paint::Dead),
            OperatorCount { count, .. } => (grouped(*count), Paint::of_share(*count, total)),
        };
        let offset = operator.offset.to_string();
        let line = format!(
            "{count:>count_width$} {offset:>8}  {}",
            plain(text_of(operator))
        );
        writeln!(out, "{}", style.paint(paint, &line))?;
    }
    Ok(())
}
