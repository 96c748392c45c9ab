//! Writes why a place was not executed, in words.

use std::io::Write;

use super::{
    WhyNotBefore, WhyNotCause, WhyNotEnd, WhyNotHow, WhyNotKind, WhyNotNeeds, WhyNotReport,
    WhyNotWent,
};
use crate::number::{grouped, times};
use crate::plain::plain;
use crate::table::wrapped;
use crate::why::why_origin;
use crate::{LeftOut, PresentError, WhyPlace, WhyText};

/// The maximum number of steps in a library to show.
const FEW: u64 = 4;

pub(super) fn report(
    out: &mut dyn Write,
    report: &WhyNotReport,
    file: &str,
    width: Option<usize>,
) -> Result<(), PresentError> {
    let cause = &report.cause;
    let never = not_executed(&report.at, report.after, report.before.as_ref());
    writeln!(out, "{}:", wrapped(&never, width, 2))?;
    let [what, then] = words(cause, &report.at, report.after);
    let is_decided = matches!(
        &cause.kind,
        WhyNotKind::Branch { value: Some(_), .. } | WhyNotKind::Table { value: Some(_), .. }
    );
    let then = match is_decided {
        true => then,
        false => joined(&then, needed(cause, &report.at)),
    };
    writeln!(out, "{}", wrapped(&format!("  {what}"), width, 4))?;
    if let WhyNotKind::Branch { place, .. } | WhyNotKind::Table { place, .. } = &cause.kind
        && let Some(text) = &place.text
    {
        writeln!(out, "      | {}", plain(text.trim()))?;
    }
    if !then.is_empty() {
        writeln!(out, "{}", wrapped(&format!("  {then}"), width, 4))?;
    }
    // Write the steps from the cause to the place.
    for hop in cause.through.iter().rev() {
        let then = match hop.how {
            WhyNotHow::Branch => "",
            WhyNotHow::Call => "; it would have called the function",
        };
        let operator = hop.place.called();
        let at = exactly(&hop.place);
        let line = format!("  so {operator} at {at} was not executed{then}");
        writeln!(out, "{}", wrapped(&line, width, 4))?;
    }
    if let WhyNotKind::Branch { place, value, .. } | WhyNotKind::Table { place, value, .. } =
        &cause.kind
        && let Some(value) = value
    {
        let origin = why_origin(&report.why, report.steps);
        let which = joined(&place.at, needed(cause, &report.at));
        let line = format!("what decided it, {value} ({which}), {origin}");
        writeln!(out, "{}", wrapped(&line, width, 2))?;
        let mut text = WhyText {
            out,
            file: file.to_owned(),
            // The text of the branch's line precedes the chain.
            shown: place.line(),
            width,
        };
        let mut rest = &report.why[..];
        while let Some(entry) = rest.first() {
            let entries = rest
                .iter()
                .take_while(|entry| WhyText::folds(entry))
                .count();
            let mut left_out = LeftOut::default();
            rest[..entries].iter().for_each(|entry| left_out.add(entry));
            if left_out.steps() > FEW {
                text.left_out(&left_out)?;
            } else {
                for entry in &rest[..entries] {
                    text.entry(entry)?;
                }
            }
            if entries == 0 {
                text.entry(entry)?;
            }
            rest = &rest[entries.max(1)..];
        }
    }
    if !report.others.is_empty() {
        writeln!(out, "or")?;
    }
    for other in &report.others {
        let [what, then] = words(other, &report.at, report.after);
        let then = Some(then).filter(|then| !then.is_empty());
        let what = joined(&joined(&what, then), needed(other, &report.at));
        let place = other.kind.place();
        let at = place.map_or(String::new(), |place| format!("  ({})", place.at));
        writeln!(out, "  {what}{at}")?;
    }
    Ok(())
}

/// Returns the clause for a place that was not executed. The reason follows the clause.
pub fn not_executed(at: &str, after: u64, before: Option<&WhyNotBefore>) -> String {
    let at = plain(at);
    if after == 0 {
        return format!("{at} was never executed");
    }
    let before = match before {
        None => "it was never executed before, either".to_owned(),
        Some(before) => format!(
            "it was {} {} before, the last time at t={}",
            if before.arrivals {
                "reached"
            } else {
                "executed"
            },
            times(before.times),
            grouped(before.t)
        ),
    };
    format!(
        "{at} was not executed after t={} ({before})",
        grouped(after)
    )
}

/// Appends a clause to a sentence.
fn joined(sentence: &str, clause: Option<String>) -> String {
    match clause {
        Some(clause) => format!("{sentence}; {clause}"),
        None => sentence.to_owned(),
    }
}

/// Describes the value with which a branch would have led to the place.
fn needed(cause: &WhyNotCause, at: &str) -> Option<String> {
    let WhyNotKind::Branch { needs, .. } = &cause.kind else {
        return None;
    };
    let needs = match needs {
        WhyNotNeeds::Nonzero => "only a value other than 0",
        WhyNotNeeds::Zero => "only 0",
        WhyNotNeeds::Exception => "only an exception",
        WhyNotNeeds::Index => "another value",
    };
    Some(format!("{needs} leads towards {}", plain(at)))
}

/// Describes a cause: what was executed, and the execution that is explained.
fn words(cause: &WhyNotCause, at: &str, after: u64) -> [String; 2] {
    let at = plain(at);
    let which = if after == 0 {
        "the last time,"
    } else {
        "the first time after that,"
    };
    match &cause.kind {
        WhyNotKind::Branch {
            place,
            times: count,
            executions,
            value,
            variables,
            needs,
            went,
        } => {
            let variables = variables.iter();
            let variables = variables.map(|one| format!("{} = {}", plain(&one.name), one.value));
            let variables = Vec::from_iter(variables).join(", ");
            let with = match (&*variables, value, needs) {
                ("", Some(_), _) | (_, _, WhyNotNeeds::Exception) => String::new(),
                ("", None, _) => "on a value that was not stored, ".to_owned(),
                (variables, ..) => format!("with {variables}, "),
            };
            let went = match went {
                WhyNotWent::To { place } => format!("it went to {}", place.line_or_at()),
                WhyNotWent::Left => "it left the function".to_owned(),
                WhyNotWent::Ended => "the run ended".to_owned(),
            };
            let what = format!(
                "{} at {} was executed {}{} and never led towards {at}",
                place.called(),
                place.described(),
                times(*count),
                in_all(*count, *executions)
            );
            [what, format!("{which} {with}{went}")]
        }
        WhyNotKind::Table {
            place,
            times: count,
            executions,
            value,
            function,
            called,
        } => {
            let by = value.as_ref();
            let by = by.map_or(String::new(), |value| format!(", through index {value}"));
            let called = match called {
                Some(called) => plain(&called.name),
                None => "a function of the host".to_owned(),
            };
            let what = format!(
                "{} at {} was executed {}{} and never called {}",
                place.operator,
                place.described(),
                times(*count),
                in_all(*count, *executions),
                plain(&function.name)
            );
            [what, format!("{which} it called {called}{by}")]
        }
        WhyNotKind::Ended {
            place,
            entered,
            times: count,
            stood,
        } => {
            let function = plain(&place.function.name);
            let then = match stood {
                Some(stood) => ended(stood),
                None => format!("{function} was left by an exception"),
            };
            let from = if *entered {
                format!("{function}, which was entered")
            } else {
                format!(
                    "{} at {}, which was executed",
                    place.operator,
                    place.described()
                )
            };
            let what = format!(
                "{then}; to get there, it would have had to continue from {from} {}, the last time at t={}",
                times(*count),
                grouped(place.t)
            );
            [what, String::new()]
        }
        WhyNotKind::Stopped { stood, .. } => [
            format!("{}, before reaching it", ended(stood)),
            String::new(),
        ],
        WhyNotKind::Host { function } | WhyNotKind::Uncalled { function } => {
            let what = match cause.kind {
                WhyNotKind::Host { .. } => "only the host could have called",
                _ => "nothing in the program calls",
            };
            let again = if after > 0 { " after that" } else { "" };
            let what = format!("{what} {}{again}", plain(&function.name));
            [what, String::new()]
        }
    }
}

/// Describes the number of executions in the whole run, if it exceeds the number in the part in
/// question.
fn in_all(count: u64, executions: u64) -> String {
    if executions == count {
        String::new()
    } else {
        format!(" ({} in the whole run)", times(executions))
    }
}

/// Describes how the run ended, and the place of the activation at that time.
fn ended(end: &WhyNotEnd) -> String {
    let WhyNotEnd {
        ending,
        place,
        call,
    } = end;
    let t = grouped(place.t);
    let what = format!("the run {ending} at {}, at t={t}", place.described());
    match call {
        None => what,
        Some(call) => format!(
            "{what}, when {} was in its call at {}, at t={}",
            plain(&call.function.name),
            call.line_or_at(),
            grouped(call.t)
        ),
    }
}

/// Formats a place as `file.c:42 in main (@0x1f3)`. The offset identifies the branch because a line
/// may have several.
fn exactly(place: &WhyPlace) -> String {
    if place.source.is_none() {
        place.described()
    } else {
        format!("{} ({})", place.described(), place.at)
    }
}
