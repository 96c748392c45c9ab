//! What kept a place from being executed, in words.

use afterimage::explain::Scene;
use afterimage::places::times;
use afterimage::why::{Held, Start};
use afterimage_analyses::why::{Absent, At, BranchOutcome, Cause, Hop, Place};
use afterimage_ids::{FuncId, OpId};
use afterimage_present::document::objects::{Function, Position};
use afterimage_present::{WhyPlace, grouped, value_text};
use afterimage_program::EdgeKind;
use afterimage_replay::state::{Call, calls};
use afterimage_replay::values::ValuesError;
use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::output::harmless;

/// A cause, told.
pub(super) struct CauseReport {
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
    let code = scene.traced.program().function(function);
    let end = code.and_then(|code| code.cfg.blocks.get(block));
    let end = end.context("a block that is not there")?;
    // Where a loop begins there may be a block without operators.
    Ok(if end.ops.is_empty() {
        end.ops.end
    } else {
        OpId::from_u32(end.ops.end.as_u32() - 1)
    })
}

fn position(place: &WhyPlace) -> Option<Position> {
    place.source.as_ref().map(Position::from)
}

/// `file.c:42 in main (@0x1f3)`: a line may have several branches.
fn exactly(place: &WhyPlace) -> String {
    if place.source.is_none() {
        place.told()
    } else {
        format!("{} ({})", place.told(), place.at)
    }
}

/// Tells a cause.
pub(super) fn told(scene: &Scene<'_, '_>, absent: &Absent, after: u64) -> Result<CauseReport> {
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
            "at": place.at, "source": position(&place), "function": place.function, "operator": place.operator,
        }));
    }
    let which = if after == 0 {
        "the last time"
    } else {
        "the first time then"
    };
    let exact = |function| scene.names.function(function);
    let name = |function| harmless(exact(function));
    let mut told = match absent.cause {
        Cause::Branch {
            place,
            edge,
            times: count,
            execution,
        } => {
            let (shown, start) = decided(scene, place, &execution)?;
            let code = scene.traced.program().function(place.0);
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
                shown.told(),
                times(count)
            );
            let json = json!({
                "kind": "branch", "place": shown.at, "source": position(&shown), "function": shown.function,
                "operator": shown.operator, "times": count, "t": execution.time,
                "value": start.as_ref().map(|start| start.value.clone()),
            });
            CauseReport {
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
            let host = "a function of the host";
            let called = called.map_or(host, exact);
            let what = format!(
                "{} at {} was executed {} and never called {}; {which} it called {}{by}",
                shown.operator,
                shown.told(),
                times(count),
                name(function),
                harmless(called)
            );
            let json = json!({
                "kind": "table", "place": shown.at, "source": position(&shown), "function": shown.function,
                "operator": shown.operator, "times": count, "t": execution.time, "called": called,
                "value": start.as_ref().map(|start| start.value.clone()),
            });
            CauseReport {
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
            shown.t = time;
            let stood = stood(scene, time)?;
            let then = match &stood {
                Some(stood) => stood.what.clone(),
                None => format!(
                    "{} was left by an exception",
                    harmless(&shown.function.name)
                ),
            };
            let code = scene.traced.program().function(place.0);
            let is_empty = code.is_some_and(|code| code.cfg.blocks[place.1].ops.is_empty());
            let from = if is_empty {
                format!("{}, which was entered", name(place.0))
            } else {
                format!("{} at {}, which was executed", shown.operator, shown.told())
            };
            let what = format!(
                "{then}; the way there leads on from {from} {}, the last time at t={}",
                times(count),
                grouped(time)
            );
            let json = json!({
                "kind": "ended", "place": shown.at, "source": position(&shown), "function": shown.function,
                "operator": shown.operator, "times": count, "t": time,
                "stood": stood.map(|stood| stood.json),
            });
            CauseReport {
                what,
                hops,
                place: Some(shown),
                start: None,
                json,
            }
        }
        Cause::Stopped(place) => {
            let length = scene.values.path().length();
            let stood = stood(scene, length)?;
            let stood = stood.context("how the run ended is not in the recording")?;
            let shown = scene.operator(place.0, end_of(scene, place)?)?;
            CauseReport {
                what: format!("{}, before it came there", stood.what),
                hops,
                json: json!({
                    "kind": "stopped", "place": shown.at, "source": position(&shown), "function": shown.function,
                    "operator": shown.operator, "t": length, "stood": stood.json,
                }),
                place: Some(shown),
                start: None,
            }
        }
        Cause::Host(function) | Cause::Uncalled(function) => {
            let (kind, what) = match absent.cause {
                Cause::Host(_) => ("host", "only the host could have called"),
                _ => ("uncalled", "nothing in the program calls"),
            };
            let again = if after > 0 { " after that" } else { "" };
            let what = format!("{what} {}{again}", name(function));
            let json = json!({ "kind": kind, "function": Function::new(scene.names, function) });
            CauseReport {
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

/// Where an activation stood when the run ended.
struct Stood {
    /// How the run ended, and where the activation was then.
    what: String,
    json: Value,
}

/// Where the activation stood when the run ended that executed the block at T; `None` if it was over before.
fn stood(scene: &Scene<'_, '_>, time: u64) -> Result<Option<Stood>> {
    let traced = scene.traced;
    let Some(end) = traced.file().end()? else {
        return Ok(None);
    };
    let (asked, _) = calls(scene.values, time, 1)?;
    let asked = asked.first().context("a block of no activation")?;
    let length = scene.values.path().length();
    let (open, _) = calls(scene.values, length, usize::MAX)?;
    let same = |(_, call): &(usize, &Call)| {
        call.function == asked.function && call.entered == asked.entered
    };
    let Some((depth, call)) = open.iter().enumerate().find(same) else {
        return Ok(None);
    };
    let block = |call: &Call| -> Result<Place> {
        let instance = scene.values.at(call.time)?.context("a call at no time")?;
        let blocks = &scene.values.path().nodes()[instance.node].blocks;
        let block = blocks.get((call.time - instance.time) as usize);
        Ok((call.function, *block.context("a call in no block")?))
    };
    let innermost = open.first().context("no activation is open")?;
    // The block may not have been executed to its end.
    let op = match traced.final_operator()? {
        Some((_, op)) => op,
        None => end_of(scene, block(innermost)?)?,
    };
    let died = scene.operator(innermost.function, op)?;
    let mut what = format!(
        "the run {} at {}, at t={}",
        end.ending,
        died.told(),
        grouped(length)
    );
    let mut json = json!({
        "at": died.at, "source": position(&died), "function": died.function, "t": length,
    });
    if depth > 0 {
        let waits = scene.operator(call.function, end_of(scene, block(call)?)?)?;
        what = format!(
            "{what}, when {} was in its call at {}, at t={}",
            harmless(&waits.function.name),
            waits.line_or_at(),
            grouped(call.time)
        );
        json["call"] = json!({
            "at": waits.at, "source": position(&waits), "function": waits.function, "t": call.time,
        });
    }
    Ok(Some(Stood { what, json }))
}

/// An execution of a branch or call, and what decided it.
fn decided(
    scene: &Scene<'_, '_>,
    place: Place,
    execution: &BranchOutcome,
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
        from: Some(Held::At(At::Register(execution.instance, one.register))),
        ty: Some(ty),
        what: format!("what decided it at {}, {value},", shown.at),
        value,
        place: Some(spot),
        spot: Some(spot),
        prelude: Vec::new(),
        written: None,
    };
    Ok((shown, Some(start)))
}

/// Where a branch went instead.
fn went(scene: &Scene<'_, '_>, function: FuncId, execution: &BranchOutcome) -> Result<String> {
    let Some(code) = scene.traced.program().function(function) else {
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
    Ok(format!("it went to {}", place.line_or_at()))
}
