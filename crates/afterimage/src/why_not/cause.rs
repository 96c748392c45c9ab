//! Describes what kept a place from being executed.

use afterimage_analyses::why::{Absent, At, BranchOutcome, Cause, CodeBlock, Hop};
use afterimage_ids::{FuncId, OpId};
use afterimage_present::document::objects::Function;
use afterimage_present::{
    WhyNotCause, WhyNotEnd, WhyNotHop, WhyNotHow, WhyNotKind, WhyNotNeeds, WhyNotWent, WhyPlace,
    value_text,
};
use afterimage_program::EdgeKind;
use afterimage_replay::state::{Call, calls};
use afterimage_replay::values::ValuesError;
use anyhow::{Context, Result};

use super::variables::in_condition;
use crate::explain::Scene;
use crate::why::{Held, Start};

/// Finds the operator that ends a block.
fn end_of(scene: &Scene<'_, '_>, (function, block): CodeBlock) -> Result<OpId> {
    let code = scene.traced.program().function(function);
    let end = code.and_then(|code| code.cfg.blocks.get(block));
    let end = end.context("a block is not in the program")?;
    // A loop may begin with a block without operators.
    Ok(if end.ops.is_empty() {
        end.ops.end
    } else {
        OpId::from_u32(end.ops.end.as_u32() - 1)
    })
}

/// Describes the last operator of a block, without an execution.
fn last_of(scene: &Scene<'_, '_>, place: CodeBlock) -> Result<WhyPlace> {
    scene.operator(place.0, end_of(scene, place)?)
}

/// Describes a cause, and finds the deciding value if it is known.
pub(super) fn found(
    scene: &Scene<'_, '_>,
    absent: &Absent,
) -> Result<(WhyNotCause, Option<Start>)> {
    let through = absent.hops.iter().map(|hop| {
        let (how, place) = match *hop {
            Hop::Branch(place) => (WhyNotHow::Branch, place),
            Hop::Call(place) => (WhyNotHow::Call, place),
        };
        let place = last_of(scene, place)?;
        Ok(WhyNotHop { how, place })
    });
    let through = through.collect::<Result<_>>()?;
    let (kind, start) = kind(scene, &absent.cause)?;
    Ok((WhyNotCause { kind, through }, start))
}

fn kind(scene: &Scene<'_, '_>, cause: &Cause) -> Result<(WhyNotKind, Option<Start>)> {
    let named = |function| Function::new(scene.names, function);
    Ok(match *cause {
        Cause::Branch {
            place: at,
            edge,
            times,
            executions,
            execution,
        } => {
            let (place, start) = decided(scene, at, &execution)?;
            let code = scene.traced.program().function(at.0);
            let needs = match code.map(|code| code.cfg.edges[edge].kind) {
                Some(EdgeKind::Taken | EdgeKind::Then) => WhyNotNeeds::Nonzero,
                Some(EdgeKind::NotTaken | EdgeKind::Else) => WhyNotNeeds::Zero,
                Some(EdgeKind::CallThrow | EdgeKind::Throw) => WhyNotNeeds::Exception,
                _ => WhyNotNeeds::Index,
            };
            let variables = match &start {
                Some(_) => in_condition(scene, at, &place, &execution)?,
                None => Vec::new(),
            };
            let kind = WhyNotKind::Branch {
                place,
                variables,
                times,
                executions,
                value: start.as_ref().map(|start| start.value.clone()),
                needs,
                went: went(scene, at.0, &execution)?,
            };
            (kind, start)
        }
        Cause::Table {
            place: at,
            function,
            times,
            executions,
            execution,
            called,
        } => {
            let (place, start) = decided(scene, at, &execution)?;
            let kind = WhyNotKind::Table {
                place,
                times,
                executions,
                value: start.as_ref().map(|start| start.value.clone()),
                function: named(function),
                called: called.map(named),
            };
            (kind, start)
        }
        Cause::Ended {
            place: at,
            times,
            time,
        } => {
            let mut place = last_of(scene, at)?;
            place.t = time;
            let code = scene.traced.program().function(at.0);
            let kind = WhyNotKind::Ended {
                place,
                entered: code.is_some_and(|code| code.cfg.blocks[at.1].ops.is_empty()),
                times,
                stood: last_place(scene, time)?,
            };
            (kind, None)
        }
        Cause::Stopped(at) => {
            let length = scene.values.path().length();
            let stood = last_place(scene, length)?;
            let mut place = last_of(scene, at)?;
            place.t = length;
            let kind = WhyNotKind::Stopped {
                place,
                stood: stood.context("the recording does not contain the end of the run")?,
            };
            (kind, None)
        }
        Cause::Host(function) => {
            let function = named(function);
            (WhyNotKind::Host { function }, None)
        }
        Cause::Uncalled(function) => {
            let function = named(function);
            (WhyNotKind::Uncalled { function }, None)
        }
    })
}

/// Returns the last place of the activation that executed a block at `time`. Returns `None` if the
/// activation had ended before the run did.
fn last_place(scene: &Scene<'_, '_>, time: u64) -> Result<Option<WhyNotEnd>> {
    let traced = scene.traced;
    let Some(end) = traced.file().end()? else {
        return Ok(None);
    };
    let (asked, _) = calls(scene.values, time, 1)?;
    let asked = asked.first().context("a block belongs to no activation")?;
    let length = scene.values.path().length();
    let (open, _) = calls(scene.values, length, usize::MAX)?;
    let same = |(_, call): &(usize, &Call)| {
        call.function == asked.function && call.entered == asked.entered
    };
    let Some((depth, call)) = open.iter().enumerate().find(same) else {
        return Ok(None);
    };
    let block = |call: &Call| -> Result<CodeBlock> {
        let instance = scene
            .values
            .at(call.time)?
            .context("the time of a call is not in the path")?;
        let blocks = &scene.values.path().nodes()[instance.node].blocks;
        let block = blocks.get((call.time - instance.time) as usize);
        Ok((call.function, *block.context("a call is in no block")?))
    };
    let innermost = open.first().context("no activation is open")?;
    // The block may not have been executed to its end.
    let op = match traced.final_operator()? {
        Some((_, op)) => op,
        None => end_of(scene, block(innermost)?)?,
    };
    let mut place = scene.operator(innermost.function, op)?;
    place.t = length;
    let waits = if depth > 0 {
        let mut waits = last_of(scene, block(call)?)?;
        waits.t = call.time;
        Some(waits)
    } else {
        None
    };
    Ok(Some(WhyNotEnd {
        ending: end.ending.to_string(),
        place,
        call: waits,
    }))
}

/// Describes an execution of a branch or call, and finds the deciding value.
fn decided(
    scene: &Scene<'_, '_>,
    place: CodeBlock,
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
        // The cause of the decision is unknown, but the direction is known.
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
        ..Start::default()
    };
    Ok((shown, Some(start)))
}

/// Describes the direction that a branch took instead.
fn went(scene: &Scene<'_, '_>, function: FuncId, execution: &BranchOutcome) -> Result<WhyNotWent> {
    let Some(to) = execution.to else {
        let ended = execution.time >= scene.values.path().length();
        return Ok(if ended {
            WhyNotWent::Ended
        } else {
            WhyNotWent::Left
        });
    };
    let code = scene.traced.program().function(function);
    let block = code.and_then(|code| code.cfg.blocks.get(to));
    Ok(match block.filter(|block| !block.ops.is_empty()) {
        Some(block) => WhyNotWent::To {
            place: Box::new(scene.operator(function, block.ops.start)?),
        },
        None => WhyNotWent::Left,
    })
}
