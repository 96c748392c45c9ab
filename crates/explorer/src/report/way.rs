//! Writes the chain from a value back to its origin as a list.

use std::io::Write;

use afterimage::present::page::escaped;
use anyhow::Result;
use serde_json::Value;

/// The maximum number of steps of a chain that a page shows.
const SHOWN: usize = 60;

/// Writes an answer of `why` with a heading.
pub(super) fn written(out: &mut dyn Write, about: &str, answered: &[Value]) -> Result<()> {
    writeln!(out, "<h2>Why {}</h2>", escaped(about))?;
    write(out, answered)
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
    let steps = entries.iter().flat_map(steps);
    let own = Vec::from_iter(steps.filter(|step| step["place"]["library"] != true));
    for step in own.iter().take(SHOWN) {
        writeln!(out, "<li>{}</li>", one(step))?;
    }
    if own.len() > SHOWN {
        writeln!(
            out,
            "<li class=\"soft\">and {} steps more</li>",
            own.len() - SHOWN
        )?;
    }
    Ok(writeln!(out, "</ul>")?)
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
    let place = match step["step"].as_str() {
        Some("again") => &step["back"]["place"],
        _ => &step["place"],
    };
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
        (Some("end"), _) => "it comes from",
        (Some("again"), _) => "these steps repeat, back to",
        (Some(step), _) => step,
        (None, Some(how)) => how,
        (None, None) => "executed",
    };
    let value = [&step["value"], &step["what"], &step["back"]["value"]];
    let value = value.into_iter().find_map(|value| value.as_str());
    let text = place["text"]
        .as_str()
        .map(str::trim)
        .or(place["operator"].as_str());
    format!(
        "{verb} <span class=\"where\">{}</span> <code>{}</code> <span class=\"value\">{}</span>",
        escaped(&at),
        escaped(text.unwrap_or_default()),
        escaped(value.unwrap_or_default())
    )
}
