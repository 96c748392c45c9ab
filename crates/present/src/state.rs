//! The state at a moment, as text and as JSON.

use std::io::Write;

use afterimage_replay::state::{Frame, Local, Shown, StateReport, Writer, Written};
use serde_json::{Value, json};

use crate::name::without_parameters;
use crate::plain::plain;
use crate::{PresentError, bits_text, grouped, type_text, value_text};

/// The state as text: a line for each activation, and its variables below.
///
/// # Errors
/// If it cannot be written.
pub fn state_text(out: &mut dyn Write, report: &StateReport) -> Result<(), PresentError> {
    let time = format!("t={} of {}", grouped(report.time), grouped(report.length));
    match report.before {
        Some(offset) => writeln!(out, "before @{offset}, in the block at {time}")?,
        None => writeln!(out, "before the block at {time}")?,
    }
    let mut said = None;
    for frame in &report.frames {
        frame_text(out, frame)?;
        match &frame.variables {
            Ok(variables) => shown_text(out, variables.iter())?,
            Err(why) => {
                if said != Some(why) {
                    writeln!(out, "    {}", plain(why))?;
                }
                said = Some(why);
                locals_text(out, &frame.locals, "local")?;
            }
        }
        if let Some(why) = &frame.outside {
            writeln!(out, "    not all is known: {}", plain(why))?;
        }
    }
    let more = report.open.saturating_sub(report.frames.len());
    match (&report.frames[..], more) {
        (_, 0) => {}
        // One that was asked for by its number.
        ([one], _) if one.number > 0 => {}
        _ => writeln!(out, "… and {} more: --depth N", grouped(more as u64))?,
    }
    let Some(globals) = &report.globals else {
        return Ok(());
    };
    writeln!(out, "globals")?;
    locals_text(out, &globals.module, "global")?;
    shown_text(out, globals.source.iter())?;
    if globals.more > 0 {
        writeln!(out, "    … and {} more", grouped(globals.more as u64))?;
    }
    Ok(())
}

fn frame_text(out: &mut dyn Write, frame: &Frame) -> Result<(), PresentError> {
    let arguments = match &frame.variables {
        Ok(variables) => {
            let own = variables
                .iter()
                .filter(|v| v.parameter && v.inlined.is_none());
            let one = |v: &Shown| format!("{}={}", named(&v.name), v.brief);
            Vec::from_iter(own.map(one)).join(", ")
        }
        Err(_) => {
            let own = frame.locals.iter().filter(|local| local.parameter);
            Vec::from_iter(own.map(value_of)).join(", ")
        }
    };
    let place = match frame.line.is_empty() {
        true => String::new(),
        false => format!(" at {}", plain(&frame.line)),
    };
    writeln!(
        out,
        "#{} {}({}){place}  @{}  t={}",
        frame.number,
        plain(without_parameters(&frame.name)),
        plain(&arguments),
        frame.offset,
        grouped(frame.time)
    )?;
    if !frame.inlined.is_empty() {
        let inlined = frame.inlined.iter().map(|name| plain(name));
        let inlined = Vec::from_iter(inlined).join(", in ");
        writeln!(out, "    inside of {inlined}, inlined")?;
    }
    Ok(())
}

fn shown_text<'s>(
    out: &mut dyn Write,
    shown: impl Iterator<Item = &'s Shown> + Clone,
) -> Result<(), PresentError> {
    let width = shown.clone().map(|v| v.name.chars().count()).max();
    let width = width.unwrap_or(0).min(24);
    for variable in shown {
        let value = match &variable.value {
            Ok(value) => plain(value),
            Err(why) => format!("<{}>", plain(why)),
        };
        let inlined = variable.inlined.as_deref().map(|function| {
            let function = plain(function);
            format!("  in {function}, inlined")
        });
        let shadowed = match variable.shadowed {
            true => "  (hidden by one further inside)",
            false => "",
        };
        writeln!(
            out,
            "    {:<width$} = {value}  ({}){}{shadowed}{}",
            named(&variable.name),
            plain(&variable.type_name),
            inlined.unwrap_or_default(),
            written_text(variable.written)
        )?;
    }
    Ok(())
}

/// That a parameter's place may hold something else.
pub fn written_text(written: Option<Written>) -> String {
    written.map_or(String::new(), |Written { time, offset, by }| match by {
        Writer::Shared => {
            "  (another variable has the same place: may be something else)".to_owned()
        }
        _ => format!(
            "  (its place was written since the call began, at @{offset}, t={}: may be something else)",
            grouped(time)
        ),
    })
}

/// The same in JSON.
pub fn written_json(written: Written) -> Value {
    let mut json = json!({ "time": written.time, "offset": written.offset.0 });
    if written.by == Writer::Shared {
        json["shared"] = json!(true);
    }
    json
}

fn locals_text(out: &mut dyn Write, locals: &[Local], what: &str) -> Result<(), PresentError> {
    for local in locals {
        let name = local
            .name
            .as_deref()
            .map(|name| format!(" ${}", plain(name)));
        let parameter = if local.parameter { ", parameter" } else { "" };
        writeln!(
            out,
            "    {what} {}{} = {}  ({}{parameter})",
            local.index,
            name.unwrap_or_default(),
            value_of(local),
            type_text(local.ty)
        )?;
    }
    Ok(())
}

fn value_of(local: &Local) -> String {
    match local.value {
        Some(bits) => value_text(local.ty, bits),
        None => "?".to_owned(),
    }
}

/// A variable's name; parameters may have none.
fn named(name: &str) -> String {
    match name {
        "" => "_".to_owned(),
        name => plain(name),
    }
}

/// The state as one object. `results` are what the function returned that was invoked, if it is the state at the end.
///
/// # Errors
/// If it cannot be written.
pub fn state_json(
    out: &mut dyn Write,
    report: &StateReport,
    results: Option<Value>,
) -> Result<(), PresentError> {
    let mut whole = json!({
        "schema": "afterimage/state/1",
        "time": report.time,
        "length": report.length,
        "before": if report.before.is_some() { "operator" } else { "block" },
        "open": report.open,
        "frames": Vec::from_iter(report.frames.iter().map(frame_json)),
    });
    if let Some(globals) = &report.globals {
        whole["globals"] = json!(Vec::from_iter(globals.module.iter().map(local_json)));
        whole["variables"] = json!(Vec::from_iter(globals.source.iter().map(shown_json)));
        whole["more"] = json!(globals.more);
    }
    if let Some(results) = results {
        whole["results"] = results;
    }
    writeln!(out, "{whole}")?;
    Ok(())
}

fn frame_json(frame: &Frame) -> Value {
    let mut json = json!({
        "number": frame.number,
        "index": frame.function.as_u32(),
        "function": frame.name,
        "entered": frame.entered,
        "time": frame.time,
        "offset": frame.offset.0,
        "line": frame.line,
        "inlined": frame.inlined,
    });
    if let Some(why) = &frame.outside {
        json["outside"] = json!(why);
    }
    match &frame.variables {
        Ok(variables) => {
            json["variables"] = json!(Vec::from_iter(variables.iter().map(shown_json)));
        }
        Err(why) => {
            json["why"] = json!(why);
            json["locals"] = json!(Vec::from_iter(frame.locals.iter().map(local_json)));
        }
    }
    json
}

fn shown_json(variable: &Shown) -> Value {
    let mut json = json!({
        "name": variable.name,
        "type": variable.type_name,
        "parameter": variable.parameter,
        "shadowed": variable.shadowed,
    });
    match &variable.value {
        Ok(value) => json["value"] = json!(value),
        Err(why) => json["unavailable"] = json!(why),
    }
    if let Some(written) = variable.written {
        json["written"] = written_json(written);
    }
    if let Some(function) = &variable.inlined {
        json["inlined"] = json!(function);
    }
    if let Some(line) = variable.line {
        json["declared"] = json!(line);
    }
    json
}

fn local_json(local: &Local) -> Value {
    let mut json = json!({
        "index": local.index,
        "type": type_text(local.ty),
        "parameter": local.parameter,
    });
    if let Some(name) = &local.name {
        json["name"] = json!(name);
    }
    if let Some(bits) = local.value {
        json["bits"] = json!(bits_text(local.ty, bits));
        json["text"] = json!(value_of(local));
    }
    json
}
