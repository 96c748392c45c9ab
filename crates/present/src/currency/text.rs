//! Writes currency reports for people.

use std::io::Write;

use super::{Assigned, Cause, CurrencyCause, CurrencyReport, CurrencyRow, Unreported, Verdict};
use crate::PresentError;
use crate::name::short_type;
use crate::number::{counted, grouped};
use crate::table::{plain, shortened};
use crate::value::value_text;

/// The maximum number of characters in a value.
const LONGEST: usize = 60;

/// Writes the results for people: a summary in one sentence, the number of stops with each verdict,
/// and why the variable is not current at the first such stop. With `all`, lists each stop after
/// the summary.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn currency_text(
    out: &mut dyn Write,
    report: &CurrencyReport,
    all: bool,
) -> Result<(), PresentError> {
    match (report.which, &report.rows[..]) {
        (Some(_), [row]) => one(out, report, row)?,
        _ => {
            sentence(out, report)?;
            if all {
                rows(out, report)?;
            }
            groups(out, report)?;
        }
    }
    if let Some((number, cause)) = &report.explained {
        if report.which.is_none() {
            let row = report.rows.iter().find(|row| row.number == *number);
            let at = format!("{}#{number}", plain(&report.at));
            writeln!(out, "\nat {at}, the first stop where it is not current:")?;
            if let Some(row) = row {
                values(out, row)?;
            }
        }
        explained(out, report, cause)?;
    }
    Ok(())
}

fn named(report: &CurrencyReport) -> String {
    plain(&report.variable)
}

/// Formats the number and the time of a stop: `#4 (t=1,234)`.
fn when(row: &CurrencyRow) -> String {
    format!("#{} (t={})", grouped(row.number), grouped(row.time))
}

fn value(of: &Result<String, String>) -> String {
    match of {
        Ok(value) => shortened(&plain(value), LONGEST, 0),
        Err(why) => format!("<{}>", plain(why)),
    }
}

fn one(
    out: &mut dyn Write,
    report: &CurrencyReport,
    row: &CurrencyRow,
) -> Result<(), PresentError> {
    let name = named(report);
    let at = format!("{}#{}", plain(&report.at), grouped(row.number));
    let shown = value(&row.shown);
    let expected = row.expected.as_ref().map(value).unwrap_or_default();
    match &row.verdict {
        Verdict::Current => writeln!(out, "{name} is current at {at}: it is {shown}")?,
        Verdict::NotCurrent { part } if part.is_empty() => writeln!(
            out,
            "{name} is not current at {at}: it shows {shown}, but should be {expected}"
        )?,
        Verdict::NotCurrent { part } => writeln!(
            out,
            "{name} is not current at {at}: {} is not what it should be",
            plain(part)
        )?,
        Verdict::NotAvailable { why } => {
            writeln!(out, "{name} is not available at {at}: {}", plain(why))?
        }
        Verdict::NotSet => writeln!(
            out,
            "{name} is not set yet at {at}: the source has not assigned it in this call, so it may hold anything"
        )?,
        Verdict::NotComparable { why } => writeln!(
            out,
            "whether {name} is current at {at} cannot be decided: {}",
            plain(why)
        )?,
        Verdict::NotTold { why } => {
            let gave = match why {
                Some(Unreported::Differs {
                    optimised,
                    unoptimised,
                    ..
                }) => format!(
                    ": {}, not {}",
                    value_text(optimised.ty, optimised.bits),
                    value_text(unoptimised.ty, unoptimised.bits)
                ),
                _ => String::new(),
            };
            writeln!(
                out,
                "whether {name} is current at {at} cannot be decided: {}{gave}",
                unreported(report, *why)
            )?
        }
    }
    values(out, row)
}

fn unreported(report: &CurrencyReport, why: Option<Unreported>) -> String {
    let in_column = |column: Option<u32>| match column {
        Some(column) if column > 0 => format!(" in column {column}"),
        _ => String::new(),
    };
    match why {
        Some(Unreported::Differs { column, .. }) => {
            return format!(
                "the corresponding moment of the unoptimised run is unknown, because the line's \
                 code{} gives a different value than at the arrival with the same number",
                in_column(column)
            );
        }
        Some(Unreported::Alike { column }) => {
            return format!(
                "the corresponding moment of the unoptimised run is unknown, because a block \
                 executes the line's code{} several times, maybe in a different order, and its \
                 values do not show which is which",
                in_column(column)
            );
        }
        None => {}
    }
    let [a, b] = report.arrivals;
    format!(
        "the corresponding moment of the unoptimised run is unknown, because the counts of the \
         line's parts do not determine it (arrivals: {} unoptimised, {} optimised)",
        grouped(a),
        grouped(b)
    )
}

/// Writes the values of both runs at a stop.
fn values(out: &mut dyn Write, row: &CurrencyRow) -> Result<(), PresentError> {
    writeln!(out, "  optimised    {}: {}", when(row), value(&row.shown))?;
    if let (Some((number, time)), Some(expected)) = (row.counterpart, &row.expected) {
        writeln!(
            out,
            "  unoptimised  #{} (t={}): {}",
            grouped(number),
            grouped(time),
            value(expected)
        )?;
    }
    Ok(())
}

fn sentence(out: &mut dyn Write, report: &CurrencyReport) -> Result<(), PresentError> {
    let (all, known) = (report.arrivals[1], report.rows.len() as u64);
    let (current, stale) = (report.count("current"), report.count("not current"));
    let kind = report.type_name.as_deref();
    let kind = kind.map_or(String::new(), |kind| {
        format!(" ({})", plain(&short_type(kind)))
    });
    let of = if known < all {
        format!(
            "the first {} of {} in the optimised run",
            counted(known, "arrival"),
            grouped(all)
        )
    } else {
        format!("{} of the optimised run", counted(all, "arrival"))
    };
    let found = match (current, stale) {
        (0, 0) if report.count("not available") == known => "cannot be read".to_owned(),
        (0, 0) => "is never known to have the value that the programmer expects".to_owned(),
        (_, 0) if current == known => "is always current".to_owned(),
        (_, 0) => format!(
            "is current at {}, and never shows anything wrong",
            grouped(current)
        ),
        (0, _) if stale == known => "is never current".to_owned(),
        (0, _) => format!(
            "is not current at {}, and is never known to be",
            grouped(stale)
        ),
        _ => format!(
            "is current at {} and not current at {}",
            grouped(current),
            grouped(stale)
        ),
    };
    writeln!(
        out,
        "{}{kind} at {}: in {of}, it {found}",
        named(report),
        plain(&report.at)
    )?;
    Ok(())
}

/// Writes the number of stops with each verdict, and the first of them.
fn groups(out: &mut dyn Write, report: &CurrencyReport) -> Result<(), PresentError> {
    let mut groups: Vec<(&'static str, String, u64, &CurrencyRow)> = Vec::new();
    for row in &report.rows {
        let why = match &row.verdict {
            Verdict::NotAvailable { why } | Verdict::NotComparable { why } => plain(why),
            Verdict::NotTold { why } => unreported(report, *why),
            Verdict::NotSet => "the source has not assigned it in this call".to_owned(),
            Verdict::Current | Verdict::NotCurrent { .. } => String::new(),
        };
        let word = row.verdict.word();
        let known = groups.iter_mut();
        match known
            .into_iter()
            .find(|group| group.0 == word && group.1 == why)
        {
            Some(group) => group.2 += 1,
            None => groups.push((word, why, 1, row)),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.2));
    let width = groups.iter().map(|group| grouped(group.2).len()).max();
    for (word, why, times, first) in groups {
        let times = format!("{:>1$}", grouped(times), width.unwrap_or(0));
        let why = if why.is_empty() {
            why
        } else {
            format!(": {why}")
        };
        writeln!(out, "  {times}  {word}{why}; first at {}", when(first))?;
    }
    Ok(())
}

fn rows(out: &mut dyn Write, report: &CurrencyReport) -> Result<(), PresentError> {
    let same = |a: &CurrencyRow, b: &CurrencyRow| {
        let nothing = !matches!(a.verdict, Verdict::Current | Verdict::NotCurrent { .. });
        nothing && (&a.verdict, &a.shown, &a.expected) == (&b.verdict, &b.shown, &b.expected)
    };
    for rows in report.rows.chunk_by(same) {
        let row = &rows[0];
        let number = match rows {
            [.., last] if rows.len() > 1 => {
                format!("#{}..{}", grouped(row.number), grouped(last.number))
            }
            _ => format!("#{}", grouped(row.number)),
        };
        let shown = value(&row.shown);
        let instead = match (&row.verdict, &row.expected) {
            (Verdict::NotCurrent { .. } | Verdict::NotComparable { .. }, Some(expected)) => {
                format!("  instead of {}", value(expected))
            }
            (Verdict::NotAvailable { .. }, Some(Ok(expected))) => {
                format!("  should be {}", shortened(&plain(expected), LONGEST, 0))
            }
            _ => String::new(),
        };
        let time = grouped(row.time);
        let word = row.verdict.word();
        writeln!(
            out,
            "{number:>14}  t={time:<12}  {word:<14}  {shown}{instead}"
        )?;
    }
    Ok(())
}

/// Explains why the variable is not current.
fn explained(
    out: &mut dyn Write,
    report: &CurrencyReport,
    cause: &CurrencyCause,
) -> Result<(), PresentError> {
    let what = format!("{}{}", named(report), plain(&cause.part));
    let by = |assigned: &Option<Assigned>| match assigned {
        Some(Assigned::By(place)) => {
            let line = place.source.as_ref().map(|line| plain(&line.to_string()));
            let line = line.unwrap_or_else(|| place.operator.clone());
            let text = place.text.as_ref();
            let text = text.map_or(String::new(), |text| format!("  {}", plain(text)));
            let (at, time) = (&place.at, grouped(place.t));
            Some(format!("by {line} ({at}, t={time}){text}"))
        }
        Some(Assigned::Beginning) => Some("before the run: nothing assigned it".to_owned()),
        None => None,
    };
    if let Some(by) = by(&cause.expected) {
        writeln!(out, "  should be    assigned {by}")?;
    }
    if let Some(by) = by(&cause.shown) {
        let place = cause.place.as_deref();
        let place = place.map_or(String::new(), |place| format!("in {place}, "));
        writeln!(out, "  shown        {place}made {by}")?;
    }
    let line = match &cause.expected {
        Some(Assigned::By(place)) => place.source.as_ref(),
        _ => None,
    };
    let line = line.map_or("the assignment".to_owned(), |line| plain(&line.to_string()));
    let why = match &cause.cause {
        Cause::Early { time, in_local } => {
            let unless = if *in_local {
                ", unless it was computed for another variable that uses the same place"
            } else {
                ""
            };
            format!(
                "hoisted: the optimised run assigns the shown value too early; the unoptimised run \
                 assigns it only at t={}{unless}",
                grouped(*time)
            )
        }
        Cause::Late { time } => format!(
            "delayed: the optimised run executes {line} later, at t={}",
            grouped(*time)
        ),
        Cause::Dropped { time } => format!(
            "dropped: the optimised run executed {line} before, at t={}, but does not keep the \
             value where the debug information places {what}",
            grouped(*time)
        ),
        Cause::Removed => format!("removed: the optimised program has no code for {line}"),
        Cause::NotExecuted => {
            format!("moved away: the optimised run does not execute {line} in this call")
        }
        Cause::Unknown { why } => format!("unknown: {why}"),
    };
    writeln!(out, "  why          {why}")?;
    Ok(())
}
