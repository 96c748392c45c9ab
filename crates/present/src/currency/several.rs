//! All variables at a line.

use std::io::Write;

use serde_json::{Map, Value as Json, json};

use super::{CurrencyReport, WORDS};
use crate::PresentError;
use crate::number::{counted, grouped};
use crate::table::{Align::Left, Align::Right, Paint, Style, Table, plain};

/// Writes for each variable how often what was found, for a person. All reports are about the same stops.
///
/// # Errors
/// If `out` fails.
pub fn currencies_text(
    out: &mut dyn Write,
    reports: &[CurrencyReport],
    style: Style,
) -> Result<(), PresentError> {
    let Some(first) = reports.first() else {
        return Ok(());
    };
    let (looked_at, all) = (first.rows.len() as u64, first.arrivals[1]);
    let of = match (first.which, looked_at < all) {
        (Some(number), _) => format!("arrival {} of {}", grouped(number), grouped(all)),
        (None, true) => format!(
            "the first {} of {} arrivals",
            grouped(looked_at),
            grouped(all)
        ),
        (None, false) => counted(all, "arrival"),
    };
    let stale = reports
        .iter()
        .filter(|report| report.count("not current") > 0);
    let unread = |report: &CurrencyReport| report.count("not available") == looked_at;
    writeln!(
        out,
        "{} in scope at {}, at {of} of the optimised run; {}",
        counted(reports.len() as u64, "variable"),
        plain(&first.at),
        match stale.count() {
            0 if reports.iter().all(unread) => "none can be read there".to_owned(),
            0 => "none was found that is not current".to_owned(),
            1 => "1 is not always current".to_owned(),
            many => format!("{} are not always current", grouped(many as u64)),
        }
    )?;
    let mut columns = WORDS.map(|word| (word, Right)).to_vec();
    columns.push(("variable", Left));
    let mut table = Table::new(&columns);
    for report in reports {
        let kind = report.type_name.as_deref();
        let kind = kind.map_or(String::new(), |kind| format!(" ({})", plain(kind)));
        let counts = WORDS.map(|word| match report.count(word) {
            0 => String::new(),
            count => grouped(count),
        });
        let because = report.explained.as_ref().map(|(number, cause)| {
            let number = grouped(*number);
            format!(": {}, first at #{number}", cause.cause.word())
        });
        let name = format!(
            "{}{kind}{}",
            plain(&report.variable),
            because.unwrap_or_default()
        );
        table.row(counts.into_iter().chain([name]));
    }
    table.write(out, style, |_| Paint::Plain)?;
    Ok(())
}

/// Writes the same for programs, as `docs/JSON.md` describes it.
///
/// # Errors
/// If `out` fails.
pub fn currencies_json(
    out: &mut dyn Write,
    reports: &[CurrencyReport],
) -> Result<(), PresentError> {
    let Some(first) = reports.first() else {
        return Ok(());
    };
    let rows = reports.iter().map(|report| {
        let mut row = Map::new();
        row.insert("variable".to_owned(), json!(report.variable));
        row.insert("type".to_owned(), json!(report.type_name));
        for word in WORDS {
            row.insert(word.replace(' ', "_"), json!(report.count(word)));
        }
        let explained = report.explained.as_ref();
        let cause = explained
            .map(|(number, cause)| json!({ "number": number, "cause": cause.cause.word() }));
        row.insert("explained".to_owned(), json!(cause));
        Json::Object(row)
    });
    let document = json!({
        "schema": "afterimage/currencies/1",
        "at": first.at,
        "arrivals": { "unoptimised": first.arrivals[0], "optimised": first.arrivals[1] },
        "looked_at": first.rows.len(),
        "variables": Vec::from_iter(rows),
    });
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}
