//! Currency for programs.

use std::io::Write;

use serde_json::{Value as Json, json};

use super::{Assigned, Cause, CurrencyCause, CurrencyReport, CurrencyRow, Untold, Verdict};
use crate::PresentError;
use crate::steps::value_json;

/// Writes what was found as one object, as `docs/JSON.md` describes it.
///
/// # Errors
/// If `out` fails.
pub fn currency_json(out: &mut dyn Write, report: &CurrencyReport) -> Result<(), PresentError> {
    let count = |word| report.count(word);
    let explained = report.explained.as_ref();
    let document = json!({
        "schema": "afterimage/currency/1",
        "variable": report.variable,
        "type": report.type_name,
        "at": report.at,
        "arrivals": { "unoptimised": report.arrivals[0], "optimised": report.arrivals[1] },
        "looked_at": report.rows.len(),
        "current": count("current"),
        "not_current": count("not current"),
        "not_available": count("not available"),
        "not_set": count("not set"),
        "not_comparable": count("not comparable"),
        "not_told": count("not told"),
        "stops": Vec::from_iter(report.rows.iter().map(row)),
        "explained": explained.map(|(number, why)| {
            let mut explained = cause(why);
            explained["number"] = json!(number);
            explained
        }),
    });
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}

fn row(row: &CurrencyRow) -> Json {
    let value = |of: &Result<String, String>| match of {
        Ok(value) => json!({ "value": value }),
        Err(why) => json!({ "unavailable": why }),
    };
    let mut json = json!({
        "number": row.number,
        "time": row.time,
        "verdict": row.verdict.word(),
        "shown": value(&row.shown),
        "expected": row.expected.as_ref().map(value),
        "unoptimised": row.counterpart.map(|(number, time)| json!({ "number": number, "time": time })),
    });
    match &row.verdict {
        Verdict::NotCurrent { part } => json["part"] = json!(part),
        Verdict::NotAvailable { why } | Verdict::NotComparable { why } => json["why"] = json!(why),
        Verdict::NotTold {
            why:
                Some(Untold::Differs {
                    column,
                    optimised,
                    unoptimised,
                }),
        } => {
            json["differs"] = json!({
                "column": column,
                "optimised": value_json(optimised),
                "unoptimised": value_json(unoptimised),
            });
        }
        Verdict::NotTold {
            why: Some(Untold::Alike { column }),
        } => json["alike"] = json!({ "column": column }),
        Verdict::Current | Verdict::NotSet | Verdict::NotTold { why: None } => {}
    }
    json
}

fn cause(cause: &CurrencyCause) -> Json {
    let assigned = |by: &Option<Assigned>| match by {
        Some(Assigned::By(place)) => json!({
            "function": place.function,
            "line": place.line,
            "operator": place.operator,
            "at": place.at,
            "time": place.time,
        }),
        Some(Assigned::Beginning) => json!("beginning"),
        None => Json::Null,
    };
    let (time, why) = match &cause.cause {
        Cause::Early { time, .. } | Cause::Late { time } | Cause::Dropped { time } => {
            (Some(time), None)
        }
        Cause::Unknown { why } => (None, Some(why)),
        Cause::Removed | Cause::NotExecuted => (None, None),
    };
    json!({
        "part": cause.part,
        "cause": cause.cause.word(),
        "time": time,
        "why": why,
        "expected": assigned(&cause.expected),
        "shown": assigned(&cause.shown),
        "place": cause.place,
    })
}
