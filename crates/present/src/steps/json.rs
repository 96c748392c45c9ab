//! Steps as lines of JSON. docs/JSON.md describes them.

use std::io::Write;

use afterimage_replay::steps::{Level, Range, Step, Tried, Value, What};
use serde_json::{Value as Json, json};

use super::{NextStep, StepScene, level_name};
use crate::PresentError;
use crate::trace::Stretch;
use crate::value::{bits_text, type_text, value_text};

/// Writes steps as lines of JSON, after a head. `length` is how many blocks the run executed.
///
/// # Errors
/// If `out` fails or the run cannot be followed.
pub fn steps_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    next: &mut NextStep<'_>,
    level: Level,
    stretch: &Stretch,
    length: u64,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    let function = stretch.function.map(
        |function| json!({ "index": function.as_u32(), "name": scene.names.function(function) }),
    );
    let head = json!({
        "schema": "afterimage/trace/1",
        "level": level_name(level),
        "first": stretch.window.first,
        "last": stretch.window.last,
        "length": length,
        "reverse": stretch.reverse,
        "function": function,
    });
    writeln!(out, "{head}")?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(step) = next()?
    {
        writeln!(out, "{}", entry(scene, &step)?)?;
        room -= 1;
    }
    Ok(())
}

/// A step.
pub(crate) fn entry(scene: &StepScene<'_>, step: &Step) -> Result<Json, PresentError> {
    let operator = scene.operator(step)?;
    let source = operator.position.map(|position| {
        let mut source = json!({ "file": scene.file(position), "line": position.line });
        if position.column > 0 {
            source["column"] = json!(position.column);
        }
        source
    });
    let mut entry = json!({
        "t": step.time,
        "function": step.function.as_u32(),
        "name": scene.names.function(step.function),
        "operator": step.op.map(|_| operator.name),
        "offset": operator.offset.map(|offset| offset.0),
        "source": source,
        "kind": kind(&step.what),
    });
    if let Some(bytes) = &step.bytes {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        entry["contents"] = json!(digits.collect::<String>());
    }
    let mut set = |key: &str, value: Json| entry[key] = value;
    match &step.what {
        What::Computed(given) | What::Branch(given) => set("value", value_json(given)),
        What::Load(range, given) | What::Store(range, given) => {
            set("access", range_json(*range));
            set("value", value_json(given));
        }
        What::Copy { from, to } => {
            set("access", range_json(*to));
            set("from", range_json(*from));
        }
        What::Fill(range, byte) => {
            set("access", range_json(*range));
            set("byte", json!(byte));
        }
        What::Init { to, segment, from } => {
            set("access", range_json(*to));
            set("segment", json!(segment));
            set("offset_in_segment", json!(from));
        }
        What::Grow { memory, by, result } => {
            set("memory", json!(memory));
            set("pages", json!(by));
            set("value", value_json(result));
        }
        What::SetGlobal(global, given) => {
            set("global", json!(global));
            set("value", value_json(given));
        }
        What::Changed(values) | What::Return(values) | What::Throw(values) => {
            set("values", all(values));
        }
        What::Jump => {}
        What::Call { callee, arguments } => {
            set("callee", json!(callee.as_u32()));
            set("callee_name", json!(scene.names.function(*callee)));
            set("values", all(arguments));
        }
        What::HostReturn(import, values) => {
            set("callee", json!(import.as_u32()));
            set("callee_name", json!(scene.names.function(*import)));
            set("values", all(values));
        }
        What::HostRead(import, range) | What::HostWrite(import, range) => {
            set("callee", json!(import.as_u32()));
            set("callee_name", json!(scene.names.function(*import)));
            set("access", range_json(*range));
        }
        What::Trap(trap, tried) => {
            set("trap", json!(trap.to_string()));
            if let Some(tried) = tried {
                set("tried", tried_json(tried));
            }
        }
    }
    Ok(entry)
}

/// What a kind of step is called.
fn kind(what: &What) -> &'static str {
    match what {
        What::Computed(_) => "value",
        What::Load(..) => "load",
        What::Store(..) => "store",
        What::Copy { .. } => "copy",
        What::Fill(..) => "fill",
        What::Init { .. } => "init",
        What::Grow { .. } => "grow",
        What::SetGlobal(..) => "set global",
        What::Changed(_) => "change",
        What::Branch(_) => "branch",
        What::Jump => "jump",
        What::Call { .. } => "call",
        What::Return(_) => "return",
        What::HostReturn(..) => "host return",
        What::HostRead(..) => "host read",
        What::HostWrite(..) => "host write",
        What::Throw(_) => "throw",
        What::Trap(..) => "trap",
    }
}

/// What an operator that trapped would have done: the fields of the step that it would have been.
fn tried_json(tried: &Tried) -> Json {
    match tried {
        Tried::Load(range) => json!({ "kind": "load", "access": range_json(*range) }),
        Tried::Store(range, stored) => {
            json!({ "kind": "store", "access": range_json(*range), "value": value_json(stored) })
        }
        Tried::Copy { from, to } => {
            json!({ "kind": "copy", "access": range_json(*to), "from": range_json(*from) })
        }
        Tried::Fill(range, byte) => {
            json!({ "kind": "fill", "access": range_json(*range), "byte": byte })
        }
        Tried::Init { to, segment, from } => json!({
            "kind": "init",
            "access": range_json(*to),
            "segment": segment,
            "offset_in_segment": from,
        }),
    }
}

/// Bytes of a memory, as JSON has them.
pub fn range_json(range: Range) -> Json {
    json!({ "memory": range.memory, "address": range.address, "bytes": range.length })
}

fn all(values: &[Value]) -> Json {
    values.iter().map(value_json).collect()
}

pub(crate) fn value_json(value: &Value) -> Json {
    let Value { ty, bits } = *value;
    json!({ "type": type_text(ty), "bits": bits_text(ty, bits), "text": value_text(ty, bits) })
}
