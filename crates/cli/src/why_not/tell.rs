//! What kept a place from being executed, in words.

use afterimage_ids::{FuncId, OpId};
use afterimage_present::{WhyPlace, grouped, value_text};
use afterimage_program::EdgeKind;
use afterimage_query::state::calls;
use afterimage_query::values::ValuesError;
use afterimage_query::why::{Absent, At, Cause, Hop, Place, Turned};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::explain::Scene;
use crate::output::harmless;
use crate::places::times;
use crate::why::Start;

/// A cause, told.
pub(super) struct Told {
    /// In one sentence, to stand behind the place.
    pub what: String,
    /// How the place depends on it.
    pub hops: Vec<String>,
    /// The branch or call.
    pub place: Option<WhyPlace>,
    /// What decided it.
    pub start: Option<Start>,
    pub json: Value,
}

/// The operator that a block ends with.
fn end_of(scene: &Scene<'_, '_>, (function, block): Place) -> Result<OpId> {
    let code = scene.traced.loaded.program.function(function);
    let end = code.and_then(|code| code.cfg.blocks.get(block));
    let op = end.and_then(|block| block.ops.end.as_u32().checked_sub(1));
    op.map(OpId::from_u32).context("a block without operators")
}

/// `file.c:42 in main`.
fn text(place: &WhyPlace) -> String {
    match place.line.is_empty() {
        true => format!("{} in {}", place.at, place.function),
        false => format!("{} in {}", place.source(), place.function),
    }
}

/// `file.c:42 in main (@0x1f3)`: a line may have several branches.
fn exactly(place: &WhyPlace) -> String {
    match place.line.is_empty() {
        true => text(place),
        false => format!("{} ({})", text(place), place.at),
    }
}

/// Tells a cause.
pub(super) fn told(scene: &Scene<'_, '_>, absent: &Absent, after: u64) -> Result<Told> {
    let mut hops = Vec::new();
    let mut json_hops = Vec::new();
    for hop in &absent.hops {
        let (how, place) = match *hop {
            Hop::Branch(place) => ("that depends on", place),
            Hop::Call(place) => ("its function would be called by", place),
        };
        let place = scene.operator(place.0, end_of(scene, place)?)?;
        hops.push(format!(
            "{how} {} at {}, which was not executed",
            place.operator,
            exactly(&place)
        ));
        json_hops.push(json!({
            "how": if matches!(hop, Hop::Branch(_)) { "branch" } else { "call" },
            "at": place.at, "line": place.line, "function": place.function, "operator": place.operator,
        }));
    }
    let which = if after == 0 {
        "the last time"
    } else {
        "the first time then"
    };
    let name = |function| harmless(scene.names.function(function));
    let mut told = match absent.cause {
        Cause::Branch {
            place,
            edge,
            times: count,
            execution,
        } => {
            let (shown, start) = decided(scene, place, &execution)?;
            let code = scene.traced.loaded.program.function(place.0);
            let kind = code.map(|code| code.cfg.edges[edge].kind);
            let needed = match kind {
                Some(EdgeKind::Taken | EdgeKind::Then) => "that takes another value than 0",
                Some(EdgeKind::NotTaken | EdgeKind::Else) => "that takes 0",
                Some(EdgeKind::CallThrow | EdgeKind::Throw) => "that takes an exception",
                _ => "that takes another index",
            };
            let by = match &start {
                Some(start) => format!("decided by {}, ", start.value),
                None if matches!(kind, Some(EdgeKind::CallThrow | EdgeKind::Throw)) => {
                    String::new()
                }
                None => "decided by a value that was not kept, ".to_owned(),
            };
            let went = went(scene, place.0, &execution)?;
            let what = format!(
                "{} at {} was executed {} and never went there; {which}, {by}{went} ({needed})",
                shown.operator,
                text(&shown),
                times(count)
            );
            let json = json!({
                "kind": "branch", "place": shown.at, "line": shown.line, "function": shown.function,
                "operator": shown.operator, "times": count, "time": execution.time,
                "value": start.as_ref().map(|start| start.value.clone()),
            });
            Told {
                what,
                hops,
                place: Some(shown),
                start,
                json,
            }
        }
        Cause::Table {
            place,
            function,
            times: count,
            execution,
            called,
        } => {
            let (shown, start) = decided(scene, place, &execution)?;
            let by = start.as_ref().map_or(String::new(), |start| {
                format!(", through index {}", start.value)
            });
            let called = called.map_or("a function of the host".to_owned(), name);
            let what = format!(
                "{} at {} was executed {} and never called {}; {which} it called {called}{by}",
                shown.operator,
                text(&shown),
                times(count),
                name(function)
            );
            let json = json!({
                "kind": "table", "place": shown.at, "line": shown.line, "function": shown.function,
                "operator": shown.operator, "times": count, "time": execution.time, "called": called,
                "value": start.as_ref().map(|start| start.value.clone()),
            });
            Told {
                what,
                hops,
                place: Some(shown),
                start,
                json,
            }
        }
        Cause::Ended {
            place,
            times: count,
            time,
        } => {
            let mut shown = scene.operator(place.0, end_of(scene, place)?)?;
            shown.time = time;
            let end = scene.traced.file.end()?;
            let (stack, _) = calls(scene.values, scene.values.path().length(), usize::MAX)?;
            let mut open = stack.iter();
            let is_open = open.any(|call| call.function == place.0 && call.entered <= time);
            let then = match end.filter(|_| is_open) {
                Some(end) => format!("the run {}", end.ending),
                None => format!("{} was left by an exception", shown.function),
            };
            let what = format!(
                "{} at {} was executed {}, and from there the way leads on, but then, at t={} or after, {then}",
                shown.operator,
                text(&shown),
                times(count),
                grouped(time)
            );
            let json = json!({
                "kind": "ended", "place": shown.at, "line": shown.line, "function": shown.function,
                "operator": shown.operator, "times": count, "time": time,
            });
            Told {
                what,
                hops,
                place: Some(shown),
                start: None,
                json,
            }
        }
        Cause::Host(function) | Cause::Uncalled(function) => {
            let (kind, what) = match absent.cause {
                Cause::Host(_) => ("host", "only the host could have called"),
                _ => ("uncalled", "nothing in the program calls"),
            };
            let again = if after > 0 { " after that" } else { "" };
            let what = format!("{what} {}{again}", name(function));
            let json = json!({ "kind": kind, "function": name(function) });
            Told {
                what,
                hops,
                place: None,
                start: None,
                json,
            }
        }
    };
    told.json["through"] = Value::Array(json_hops);
    Ok(told)
}

/// An execution of a branch or call, and what decided it.
fn decided(
    scene: &Scene<'_, '_>,
    place: Place,
    execution: &Turned,
) -> Result<(WhyPlace, Option<Start>)> {
    let op = end_of(scene, place)?;
    let walk = scene.walk();
    let spot = walk.spot_of(execution.instance, op);
    let shown = scene.place(spot)?;
    let Some(statement) = walk.statement(execution.instance, op)? else {
        return Ok((shown, None));
    };
    let compiled = scene.values.compiled(execution.instance.node)?;
    let operands = statement.operands(&compiled.code);
    let (types, _) = scene.types.of(place.0, op).unwrap_or_default();
    let wanted = |role| matches!(role, "condition" | "index");
    let found = operands
        .iter()
        .zip(&types)
        .find(|(one, _)| wanted(one.role));
    let Some((one, &ty)) = found else {
        return Ok((shown, None));
    };
    let bits = match scene.values.value(execution.instance, one.register) {
        Ok(bits) => bits,
        // What decided it is not known, but which way it turned is.
        Err(ValuesError::Outside { .. }) => return Ok((shown, None)),
        Err(error) => return Err(error.into()),
    };
    let value = value_text(ty, bits);
    let start = Start {
        from: Some(At::Register(execution.instance, one.register)),
        ty: Some(ty),
        what: format!("what decided it at {}, {value},", shown.at),
        value,
        place: Some(shown.clone()),
        spot: Some(spot),
        prelude: Vec::new(),
    };
    Ok((shown, Some(start)))
}

/// Where a branch went instead.
fn went(scene: &Scene<'_, '_>, function: FuncId, execution: &Turned) -> Result<String> {
    let Some(code) = scene.traced.loaded.program.function(function) else {
        return Ok(String::new());
    };
    let Some(to) = execution.to else {
        let ended = execution.time >= scene.values.path().length();
        let what = if ended {
            "the run ended"
        } else {
            "it left the function"
        };
        return Ok(what.to_owned());
    };
    let Some(block) = code
        .cfg
        .blocks
        .get(to)
        .filter(|block| !block.ops.is_empty())
    else {
        return Ok("it left the function".to_owned());
    };
    let place = scene.operator(function, block.ops.start)?;
    Ok(match place.line.is_empty() {
        true => format!("it went to {}", place.at),
        false => format!("it went to {}", place.source()),
    })
}
