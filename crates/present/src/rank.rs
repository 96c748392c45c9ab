//! Lines that tell failing executions from passing ones.

use std::io::Write;

use afterimage_query::Source;
use afterimage_query::diff::RankedLine;
use serde_json::json;

use crate::number::{counted, grouped};
use crate::sources::Cache;
use crate::table::{Align::Left, Align::Right, Paint, Style, Table, plain};
use crate::text::short;
use crate::{PresentError, Sources};

/// Ranked lines.
#[derive(Clone, Copy)]
pub struct RankReport<'r> {
    /// How many executions passed.
    pub passing: usize,
    /// How many failed.
    pub failing: usize,
    /// The lines, the most suspicious first.
    pub rows: &'r [RankedLine],
    /// How many there are without a limit.
    pub available: usize,
    /// The source files.
    pub source: &'r dyn Source,
}

impl RankReport<'_> {
    fn file(&self, row: &RankedLine) -> &str {
        let files = self.source.files();
        let path = files.get(row.line.file.0 as usize);
        path.map_or("", String::as_str)
    }
}

/// Writes ranked lines for a person.
///
/// # Errors
/// If `out` fails.
pub fn rank_text(
    out: &mut dyn Write,
    report: &RankReport<'_>,
    sources: &dyn Sources,
    style: Style,
) -> Result<(), PresentError> {
    let only = report.rows.iter();
    let telling = only.filter(|row| row.failing == report.failing && row.passing == 0);
    let head = format!(
        "{} ran in all {} and in none of {}",
        counted(telling.count() as u64, "line"),
        counted(report.failing as u64, "failing execution"),
        counted(report.passing as u64, "passing one"),
    );
    writeln!(out, "{}", style.paint(Paint::Bold, &head))?;
    let mut table = Table::new(&[
        ("score", Right),
        ("failing", Right),
        ("passing", Right),
        ("line", Left),
        ("text", Left),
    ]);
    let mut cache = Cache::new(sources);
    for row in report.rows {
        let file = report.file(row);
        let text = cache.line(file, row.line.number).map(str::trim);
        table.row([
            format!("{:.3}", row.score),
            format!("{}/{}", row.failing, report.failing),
            format!("{}/{}", row.passing, report.passing),
            plain(&format!("{}:{}", short(file), row.line.number)),
            text.map(plain).unwrap_or_default(),
        ]);
    }
    table.write(out, style, |_| Paint::Plain)?;
    let left = report.available - report.rows.len();
    if left > 0 {
        writeln!(out, "… and {} more", grouped(left as u64))?;
    }
    Ok(())
}

/// Writes ranked lines as one object.
///
/// # Errors
/// If `out` fails.
pub fn rank_json(out: &mut dyn Write, report: &RankReport<'_>) -> Result<(), PresentError> {
    let rows = report.rows.iter().map(|row| {
        json!({
            "file": report.file(row),
            "line": row.line.number,
            "failing": row.failing,
            "passing": row.passing,
            "score": row.score,
            "failing_arrivals": row.arrivals[0],
            "passing_arrivals": row.arrivals[1],
        })
    });
    let whole = json!({
        "schema": "afterimage/rank/1",
        "failing": report.failing,
        "passing": report.passing,
        "available": report.available,
        "lines": rows.collect::<Vec<_>>(),
    });
    writeln!(out, "{whole}")?;
    Ok(())
}

/// Writes ranked lines as CSV (RFC 4180).
///
/// # Errors
/// If `out` fails.
pub fn rank_csv(out: &mut dyn Write, report: &RankReport<'_>) -> Result<(), PresentError> {
    write!(
        out,
        "file,line,failing,passing,score,failing_arrivals,passing_arrivals\r\n"
    )?;
    for row in report.rows {
        let file = crate::csv::quoted(report.file(row)).into_owned();
        let [of_failing, of_passing] = row.arrivals;
        write!(
            out,
            "{file},{},{},{},{},{of_failing},{of_passing}\r\n",
            row.line.number, row.failing, row.passing, row.score
        )?;
    }
    Ok(())
}
