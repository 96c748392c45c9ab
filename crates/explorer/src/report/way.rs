//! Writes the chain from a value back to its origin as a list.

use std::io::Write;

use afterimage::present::page::escaped;
use afterimage::present::{counted, grouped};
use anyhow::Result;
use serde_json::Value;

/// The maximum number of steps of a chain that a page shows.
const SHOWN: usize = 60;

/// Writes an answer of `why` with a heading.
pub(super) fn written(
    out: &mut dyn Write,
    about: &str,
    (answered, command): &(Vec<Value>, String),
) -> Result<()> {
    writeln!(out, "<h2>Why {}</h2>", escaped(about))?;
    write(out, answered)?;
    super::repeated_by(out, command)
}

/// Writes an answer of `why`.
pub(super) fn write(out: &mut dyn Write, answered: &[Value]) -> Result<()> {
    let Some((head, entries)) = answered.split_first() else {
        return Ok(());
    };
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    if let Some(message) = head["death"]["message"].as_str() {
        writeln!(out, "<p>{}</p>", escaped(message))?;
    }
    writeln!(
        out,
        "<p class=\"soft\">{}</p>\n<ul class=\"way\">",
        text(&head["about"])
    )?;
    let all = Vec::from_iter(entries.iter().flat_map(steps));
    let mut groups = all.chunk_by(|a, b| is_library(a) && is_library(b));
    let mut left = all.len();
    for group in groups.by_ref().take(SHOWN) {
        left -= group.len();
        if !is_library(group[0]) {
            writeln!(out, "<li>{}</li>", one(group[0]))?;
            continue;
        }
        writeln!(
            out,
            "<li><details><summary>{} in library code</summary><ul class=\"way\">",
            counted(group.len() as u64, "step")
        )?;
        for step in group.iter().take(SHOWN) {
            writeln!(out, "<li>{}</li>", one(step))?;
        }
        more(out, group.len().saturating_sub(SHOWN))?;
        writeln!(out, "</ul></details></li>")?;
    }
    more(out, left)?;
    Ok(writeln!(out, "</ul>")?)
}

/// Writes the number of steps that are not shown.
fn more(out: &mut dyn Write, left: usize) -> Result<()> {
    if left > 0 {
        let steps = counted(left as u64, "more step");
        writeln!(out, "<li class=\"soft\">and {steps}</li>")?;
    }
    Ok(())
}

/// Whether a step is in library code.
fn is_library(step: &Value) -> bool {
    place(step)["library"] == true
}

/// Returns the place of a step.
fn place(step: &Value) -> &Value {
    match step["step"].as_str() {
        Some("again") => &step["back"]["place"],
        _ => &step["place"],
    }
}

/// Returns the steps of an entry.
fn steps(entry: &Value) -> Vec<&Value> {
    let list = match entry["step"].as_str() {
        Some("led") => &entry["frames"],
        Some("moved") => &entry["moves"],
        _ => return vec![entry],
    };
    list.as_array().into_iter().flatten().collect()
}

/// Formats a step: the event, its place, and its value.
fn one(step: &Value) -> String {
    let place = place(step);
    let source = if place["around"].is_null() {
        &place["source"]
    } else {
        &place["around"]
    };
    let at = if source.is_null() {
        place["at"].as_str().unwrap_or_default().to_owned()
    } else {
        super::line(source)
    };
    let verb = match (step["step"].as_str(), step["how"].as_str()) {
        (Some("end"), _) => "it comes from".to_owned(),
        (Some("again"), _) => {
            let number = |name: &str| step[name].as_u64().unwrap_or(0);
            let repeat = match number("steps") {
                1 => "step repeats".to_owned(),
                steps => format!("{} repeat", counted(steps, "step")),
            };
            format!(
                "the last {repeat} {} times, back to",
                grouped(number("times"))
            )
        }
        (Some(step), _) => step.to_owned(),
        (None, Some(how)) => how.to_owned(),
        (None, None) => "executed".to_owned(),
    };
    let operands = step["operands"].as_array().into_iter().flatten();
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let operands =
        operands.map(|one| format!("{} {}", text_of(&one["role"]), text_of(&one["value"])));
    let operands = Vec::from_iter(operands);
    let from = match operands.is_empty() {
        true => String::new(),
        false => format!(
            " <span class=\"soft\">from {}</span>",
            escaped(&operands.join(", "))
        ),
    };
    let value = [&step["value"], &step["what"], &step["back"]["value"]];
    let value = value.into_iter().find_map(|value| value.as_str());
    let text = place["text"]
        .as_str()
        .map(str::trim)
        .or(place["operator"].as_str());
    format!(
        "{verb} <span class=\"where\">{}</span> <code>{}</code> <span class=\"value\">{}</span>{from}",
        escaped(&at),
        escaped(text.unwrap_or_default()),
        escaped(value.unwrap_or_default())
    )
}
