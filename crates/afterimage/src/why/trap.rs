//! Finds the operator that killed the program, and the value to blame.

mod died;
mod overflow;

use std::collections::HashSet;

use afterimage_analyses::why::{At, End, StepBack};
use afterimage_ids::{BlockId, OpId};
use afterimage_present::{WhyBranch, WhyEntry, WhyFrame, WhyLed, grouped};
use afterimage_program::BlockEnd;
use afterimage_replay::state::calls;
use afterimage_replay::values::Instance;
use afterimage_trace::{Ending, TrapCode};
use anyhow::{Context, Result, bail};

use self::overflow::{Repeated, repeated, sites};
use super::bounds::{self, Bounded};
use super::led::{Value, last_of, led_by, of_place, value};
use super::start::{Held, Start};
use crate::explain::Scene;
use crate::text::pasted;

/// The number of functions of the call stack to list. Further functions are listed up to the branch
/// that is followed.
const FRAMES: usize = 16;
/// The minimum number of the user's own functions to list, if the stack has them.
const CALLS: usize = 2;
/// The maximum number of activations for which to find the branch that led to their place.
const LOOKED_AT: usize = 256;
/// The minimum depth of a stack in which to search for repeated calls, unless the stack may have
/// overflowed.
const DEEP: usize = 1000;

/// The end of the run.
struct Death {
    /// The ending in words, for the end of a sentence.
    how: String,
    /// The operator at which the run ended.
    op: OpId,
    /// The execution of the operator's node.
    instance: Instance,
}

/// Finds what killed the program: an operand of the operator that trapped, the exit code, or the
/// branch that led to its end.
pub fn find(scene: &Scene<'_, '_>) -> Result<Start> {
    let traced = scene.traced;
    let end = traced.file().end()?;
    let end = end.context("the recording does not contain the end of the run")?;
    let (how, code) = match &end.ending {
        Ending::Returned => bail!("the run returned and was not killed; ask with --at or --stdout"),
        Ending::Interrupted { .. } | Ending::HostError { .. } => bail!(
            "the run {}: no value caused that; see: afterimage state --at end {}",
            end.ending,
            pasted(traced.at())
        ),
        Ending::Exited { code } => (format!("exited with code {code}"), None),
        Ending::Exception { .. } | Ending::StackOverflow => (end.ending.to_string(), None),
        Ending::Trapped { code, .. } => (end.ending.to_string(), Some(*code)),
    };
    let found = traced.ended_in()?;
    let (time, _, op) = found.context("where the run ended is not in the recording")?;
    let instance = scene.values.at(time)?.context("the run has no blocks")?;
    let death = Death { how, op, instance };
    let overflowed = matches!(end.ending, Ending::StackOverflow);
    let operand = if overflowed {
        // All calls together filled the stack, so no argument of the last call is to blame.
        None
    } else {
        operand(scene, &death, code)?
    };
    let (mut stack, open) = calls(scene.values, time, LOOKED_AT)?;
    // Compilers also keep a stack in memory. A program that exhausts this stack may trap at an
    // address below 0, which appears as a very large number, or at any other address.
    let is_below = code == Some(TrapCode::MemoryOutOfBounds)
        && operand
            .as_ref()
            .is_some_and(|blamed| blamed.value.text.starts_with("0xf"));
    let repeated = if overflowed || open >= DEEP || is_below {
        (stack, _) = calls(scene.values, time, usize::MAX)?;
        repeated(&sites(scene, &stack, op)?)
    } else {
        None
    };
    // Repeated calls are reported once.
    let repeated = repeated.filter(|repeated| repeated.end() <= LOOKED_AT);
    let mut enough = repeated.as_ref().map_or(FRAMES, Repeated::end);
    // The innermost functions of the user's own code are always included.
    let owns = scene.folded().shows_any();
    let mut owned = if owns { 0 } else { CALLS };
    stack.truncate(LOOKED_AT);
    let mut frames = Vec::new();
    // The innermost branch with a computed decision that could have avoided the end. If there is
    // none, the innermost branch of the user's own code with a computed decision, or else the
    // innermost branch.
    let mut decisive: Option<(Decides, usize, Value)> = None;
    for (depth, call) in stack.iter().enumerate() {
        let found = matches!(decisive, Some((Decides::End, ..)));
        if depth >= enough && owned >= CALLS && (found || operand.is_some()) {
            break;
        }
        let op = (depth == 0).then_some(death.op);
        let (mut frame, branch) = frame_at(scene, call.time, op)?;
        // The compiler writes the `main` of a test program.
        let callee = depth.checked_sub(1).map(|callee| stack[callee].function);
        frame.place.library |= callee.is_some_and(|callee| died::is_libtest(scene, callee));
        let own = !frame.place.library && frame.place.source.is_some();
        owned += usize::from(own);
        if own && owned <= CALLS {
            enough = enough.max(depth + 1);
        }
        let led = frame.branch.as_ref().map_or(0, |led| led.branch.place.t);
        frames.push(WhyFrame { own, ..frame });
        // Ignore the decisions of callers outside the user's own code.
        let is_outside = !own && owned > 0 && owns;
        if let Some(branch) = branch.filter(|_| !found && !is_outside) {
            let decides = match is_computed(scene, &branch)? {
                true if could_avoid(scene, led)? => Decides::End,
                true if own => Decides::Way,
                _ => Decides::Unknown,
            };
            if decisive.as_ref().is_none_or(|(known, ..)| *known < decides) {
                decisive = Some((decides, depth, branch));
            }
        }
    }
    let followed = decisive.as_ref().map_or(0, |(_, depth, _)| depth + 1);
    frames.truncate(followed.max(enough));
    let spot = scene.walk().spot_of(instance, op);
    let place = scene.place(spot)?;
    let full = match (overflowed, &repeated) {
        (true, _) => Some("it"),
        (false, Some(_)) => Some("the stack"),
        (false, None) => None,
    };
    // If the user's own code called the library code, describe only the call.
    let first_own = frames.iter().position(|frame| frame.own);
    let caller = first_own.filter(|_| owns && place.library);
    let at = match (full, caller) {
        (Some(it), _) => {
            let overflown = overflow::described(open, it, &frames, repeated.as_ref());
            format!("at {}{overflown}", place.described())
        }
        (None, Some(own)) => format!(
            "in library code called at {}",
            frames[own].place.described()
        ),
        (None, None) => format!("at {}", place.described()),
    };
    let joined = if full.is_some() { ";" } else { ":" };
    let how = &death.how;
    let index = match (code, &operand) {
        (Some(TrapCode::BadSignature | TrapCode::IndirectCallToNull), Some(blamed)) => {
            let value = &blamed.value;
            Some(scene.values.value(value.instance, value.register)?.0)
        }
        _ => None,
    };
    let told = match (&end.ending, index) {
        _ if is_below && repeated.is_some() => died::overflowed(&frames),
        (_, Some(index)) => died::of_wrong_type(scene, (spot, index), &frames)?,
        (&Ending::Exited { code }, _) if code != 0 && !frames.iter().any(|frame| frame.own) => {
            died::returned(scene, code, time)?
        }
        _ => died::cause_of_death(scene, how, &frames, &stack)?,
    };
    let (what, from) = match (&operand, &decisive) {
        (
            Some(Blamed {
                role,
                value,
                with,
                within,
            }),
            _,
        ) => {
            let value_of = match (&end.ending, *role) {
                (Ending::Exited { .. }, _) => "the exit code".to_owned(),
                (Ending::Exception { .. }, "carried") => "the value it carries".to_owned(),
                (_, "operand") => format!("the operand of {}", place.operator),
                (_, "right") if ["div", "rem"].iter().any(|of| place.operator.contains(of)) => {
                    "the divisor".to_owned()
                }
                (_, role) => format!("the {role} of {}", place.operator),
            };
            let beyond = beyond(scene, &death)?;
            let what = match (&end.ending, *role) {
                (Ending::Exception { .. }, "exception") => {
                    format!("the run {how} {at}{joined} it rethrew an exception")
                }
                _ => format!(
                    "the run {how} {at}{with}{joined} {value_of} is {}{within}{beyond}",
                    value.text
                ),
            };
            (what, Some(value.clone()))
        }
        (None, Some((_, depth, branch))) => {
            let in_that_code = caller.is_some_and(|own| *depth < own);
            let mut branch_at = String::new();
            if let Some(led) = &mut frames[*depth].branch {
                led.followed = true;
                branch_at = match &led.branch.place {
                    _ if in_that_code => "a branch in that code".to_owned(),
                    place if place.library && owns => "a branch in library code".to_owned(),
                    place => format!("the branch at {}", place.described()),
                };
            }
            let what = format!(
                "the run {how} {at}{joined} {branch_at} led there, decided by {}",
                branch.text
            );
            (what, Some(branch.clone()))
        }
        (None, None) => {
            let what = format!("the run {how} {at}{joined} neither a branch nor a value led there");
            (what, None)
        }
    };
    let which = if from.is_some() { ", which" } else { "" };
    Ok(Start {
        ty: from.as_ref().map(|from| from.ty),
        value: from
            .as_ref()
            .map_or(String::new(), |from| from.text.clone()),
        from: from.map(|from| Held::At(At::Register(from.instance, from.register))),
        what: format!("{what}{which}"),
        place: Some(spot),
        spot: Some(spot),
        death: told,
        prelude: vec![WhyEntry::Led {
            more: open.saturating_sub(frames.len()) as u64,
            frames,
        }],
        ..Start::default()
    })
}

/// The effect of a branch on the end of the run. The least important effect comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Decides {
    /// None. The branch was decided by a constant, or it is in library code and could not avoid the
    /// end.
    Unknown,
    /// The branch determined how the run ended, but could not avoid the end.
    Way,
    /// The branch determined that the run ended. It could have avoided the end.
    End,
}

/// The operand to blame for a trap, or the exit code.
struct Blamed {
    role: &'static str,
    value: Value,
    /// The other operands that contributed, in words, beginning with a comma.
    with: String,
    /// The size of the memory or table in words, if the operand is a position in it.
    within: String,
}

/// Finds the operand to blame.
fn operand(scene: &Scene<'_, '_>, death: &Death, code: Option<TrapCode>) -> Result<Option<Blamed>> {
    let Death { op, instance, .. } = *death;
    let walk = scene.walk();
    let Some(statement) = walk.statement(instance, op)? else {
        return Ok(None);
    };
    let wanted: &[&str] = match code {
        None => &["argument", "carried", "exception"],
        Some(TrapCode::DivisionByZero) => &["right"],
        Some(TrapCode::IntegerOverflow) => &["left", "operand"],
        Some(TrapCode::Unreachable) => return Ok(None),
        Some(TrapCode::MemoryOutOfBounds) => &["address", "base address", "to", "length"],
        _ => &[
            "index",
            "operand",
            "to",
            "address",
            "base address",
            "left",
            "exception",
        ],
    };
    let compiled = scene.values.compiled(instance.node)?;
    let function = compiled.code.function;
    let (types, _) = scene.types.of(function, op).unwrap_or_default();
    let is_bound = matches!(
        code,
        Some(TrapCode::MemoryOutOfBounds | TrapCode::TableOutOfBounds)
    );
    if is_bound && let Some(all) = bounds::operands(scene, instance, statement, &types)? {
        let mut all = all.into_iter();
        let Some(blamed) = all.next() else {
            return Ok(None);
        };
        let within = |one: &Bounded| {
            let within = one.within.as_ref();
            within.map_or(String::new(), |within| format!(" in {within}"))
        };
        // The value to be written cannot cause the trap.
        let others = all.filter(|one| one.role != "value");
        let others = others.map(|one| format!("{} {}{}", one.role, one.value.text, within(&one)));
        return Ok(Some(Blamed {
            within: within(&blamed),
            with: format!(", with {}", Vec::from_iter(others).join(", ")),
            role: blamed.role,
            value: blamed.value,
        }));
    }
    let operands = statement.operands(&compiled.code);
    let of = |role: &str| {
        let mut all = operands.iter().zip(&types);
        let found = all.find(|(one, _)| one.role == role);
        let found = found.map(|(one, &ty)| {
            let held = value(scene, instance, one.register, ty)?;
            let says_where = matches!(one.role, "address" | "base address" | "index" | "to");
            let held = if says_where {
                of_place(held, scene.values.value(instance, one.register)?.0)
            } else {
                held
            };
            anyhow::Ok((one.role, held))
        });
        found.transpose()
    };
    // Only the smallest number divided by -1 overflows. Blame the operand that is not a constant.
    let by_right = match (code, of("left")?, of("right")?) {
        (Some(TrapCode::IntegerOverflow), Some((_, left)), Some((_, right))) => {
            !is_computed(scene, &left)? && is_computed(scene, &right)?
        }
        _ => false,
    };
    let (wanted, beside) = if by_right {
        (&["right"][..], "left")
    } else {
        (wanted, "right")
    };
    for &role in wanted {
        let Some((role, value)) = of(role)? else {
            continue;
        };
        let other = match code {
            Some(TrapCode::IntegerOverflow) => of(beside)?,
            _ => None,
        };
        return Ok(Some(Blamed {
            role,
            value,
            with: other.map_or(String::new(), |(role, other)| {
                format!(", with {role} {}", other.text)
            }),
            within: String::new(),
        }));
    }
    Ok(None)
}

/// Describes the offset that is added to an address.
fn beyond(scene: &Scene<'_, '_>, death: &Death) -> Result<String> {
    let offset = scene.walk().offset(death.instance, death.op)?;
    Ok(offset.map_or(String::new(), |offset| {
        format!(", with {} added", grouped(offset))
    }))
}

/// Describes an activation at its current place in the block executed at a time: at `op` or, if
/// that is `None`, at the block's last operator. Also returns the value that decided the branch
/// that led there.
fn frame_at(
    scene: &Scene<'_, '_>,
    time: u64,
    op: Option<OpId>,
) -> Result<(WhyFrame, Option<Value>)> {
    let walk = scene.walk();
    let instance = scene
        .values
        .at(time)?
        .context("the time of a call is not in the path")?;
    let op = match op {
        Some(op) => Some(op),
        None => last_of(scene, instance, time),
    };
    let op = op.context("a block has no operators")?;
    let spot = walk.spot_of(instance, op);
    let place = scene.place(spot)?;
    let led = led_by(scene, instance, time)?;
    let (branch, decided) = match led {
        Some((place, decided)) => {
            let value = decided.as_ref().map_or(String::new(), |it| it.text.clone());
            let branch = WhyBranch { place, value };
            let followed = false;
            (Some(WhyLed { branch, followed }), decided)
        }
        None => (None, None),
    };
    let own = place.around.as_ref().or(place.source.as_ref());
    let within = own.map(|line| scene.inlined_with((spot.function, op), line));
    let frame = WhyFrame {
        within: within.transpose()?.flatten(),
        place,
        inlined: scene.inlined(spot.function, op)?,
        branch,
        own: false,
    };
    Ok((frame, decided))
}

/// Whether the branch that ends the block executed at a time could have avoided the end of the run:
/// some path through its function's code leads from it to the function's return, or back to it. If
/// none does, the caller had already decided that the run would end.
fn could_avoid(scene: &Scene<'_, '_>, time: u64) -> Result<bool> {
    let instance = scene.values.at(time)?;
    let instance = instance.context("the time of a branch is not in the path")?;
    let node = &scene.values.path().nodes()[instance.node];
    let function = scene.traced.program().function(node.function);
    let block = node.blocks.get((time - instance.time) as usize);
    let (Some(function), Some(&branch)) = (function, block) else {
        return Ok(false);
    };
    let (cfg, exit) = (&function.cfg, function.cfg.graph.exit());
    let returns = |from: BlockId| {
        !matches!(
            cfg.blocks[from].end,
            BlockEnd::Unreachable | BlockEnd::Throw | BlockEnd::Dispatch
        )
    };
    let (mut seen, mut left) = (HashSet::new(), vec![branch]);
    while let Some(from) = left.pop() {
        for to in cfg.graph.successors(from) {
            if to == branch || to == exit && returns(from) {
                return Ok(true);
            }
            if to != exit && seen.insert(to) {
                left.push(to);
            }
        }
    }
    Ok(false)
}

/// Whether a value is computed rather than a constant of the code.
pub fn is_computed(scene: &Scene<'_, '_>, value: &Value) -> Result<bool> {
    match scene
        .walk()
        .back(At::Register(value.instance, value.register))
    {
        Ok(found) => Ok(!matches!(found, StepBack::End(End::Constant { .. }))),
        Err(error) if error.is_outside() => Ok(true),
        Err(error) => Err(error.into()),
    }
}
