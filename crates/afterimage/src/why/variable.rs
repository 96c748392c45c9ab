//! Finds the origin of a source variable's value.

use afterimage_analyses::why::{At, Bytes, written_until};
use afterimage_present::{grouped, value_text};
use afterimage_replay::state::{Activation, Bodies, Path, PathError, Shape, VariableLocation};
use afterimage_replay::steps::Range;
use afterimage_replay::whole_path::At as When;
use anyhow::{Context, Result, anyhow, bail};

use super::start::{Held, Start};
use crate::ended::{self, Shown, is_over, place_of_end};
use crate::explain::Scene;
use crate::text::harmless;
use crate::wasm_local::wasm_local;

/// Finds the value of a variable, or of an expression, right before a place is executed.
pub fn find(scene: &Scene<'_, '_>, at: &str, expression: &str) -> Result<Start> {
    let path: Path = expression.parse().map_err(|error: PathError| {
        anyhow!("--var {expression}: {error}; write a name, p->next, s.member, a[3] or *p")
    })?;
    let loaded = scene.traced.module();
    let When { time, op } = match place_of_end(scene.traced, at)? {
        Some(end) => end,
        None => {
            let positions = scene.traced.positions(scene.names, scene.source())?;
            positions.moment(at)?
        }
    };
    let bodies = Bodies::new(&loaded.program, &loaded.bytes);
    let over = is_over(scene.traced, at)?;
    if !over && let Some(start) = of_local(scene, &bodies, When { time, op }, expression)? {
        return Ok(start);
    }
    let variables = scene.traced.variables()?;
    let Shown {
        pieces,
        rendered,
        bits,
        held,
        written,
    } = if over {
        ended::variable(scene.traced, variables, &path, expression)?
    } else {
        let known = (variables, &bodies);
        let (traced, moment) = (scene.traced, When { time, op });
        let found = ended::before(traced, scene.values, scene.names, known, path, moment)?;
        let found = found.with_context(|| format!("the run ended before {at}"))?;
        let found = found.and_then(|shown| match shown.rendered.shape {
            Shape::Missing(why) => Err(*why),
            _ => Ok(shown),
        });
        found.map_err(|why| anyhow!("--var {expression} at {at}: {why}"))?
    };
    let value = rendered.to_string();
    let activation = Activation::at(scene.values, &bodies, time, op)?;
    let piece = pieces.first();
    let piece = piece.with_context(|| format!("{expression} has no bytes"))?;
    let spot = scene.walk().spot_of(activation.instance, activation.op);
    // Other members, elements or pieces may have different origins.
    let is_one = matches!(rendered.shape, Shape::Scalar | Shape::Pointer) && pieces.len() == 1;
    let mut which = if is_one {
        "which"
    } else {
        "the first byte of which"
    };
    let of_local = |variable: u32| -> Result<At> {
        let register = activation.register(scene.values, variable)?;
        let lowest = Bytes {
            first: 0,
            length: 1,
        };
        Ok(if is_one {
            At::Register(activation.instance, register)
        } else {
            At::Part(activation.instance, register, lowest)
        })
    };
    let from = match piece.place {
        VariableLocation::Local(index) => of_local(index)?,
        VariableLocation::OperandStack(slot) => {
            let found = activation.slot(slot);
            of_local(
                found
                    .context("the debug information names a slot of the operand stack that is not in use")?
                    .0,
            )?
        }
        VariableLocation::Memory(address) => {
            // For a bit-field, uses the bytes that contain its bits.
            let (skipped, length) = match bits {
                Some(bits) => (
                    u64::from(bits.first / 8),
                    u64::from((bits.first % 8 + bits.count).div_ceil(8)),
                ),
                None if is_one => (0, piece.bytes.max(1)),
                None => (0, 1),
            };
            let range = Range {
                memory: 0,
                address: address.wrapping_add(skipped),
                length,
            };
            let executed = if over {
                usize::MAX
            } else {
                activation.instructions()
            };
            let until = (activation.instance, executed);
            let held = held.get(skipped as usize..).unwrap_or_default();
            // Bits of other members do not belong to the bit-field.
            let held = match bits {
                Some(bits) => masked(held, mask(bits.first % 8, bits.count)),
                None => held.to_vec(),
            };
            let (at, several) = written_until(&scene.walk(), &scene.host, until, range, &held)?;
            if several {
                which = "a part of which";
            }
            at
        }
        VariableLocation::Global(index) => bail!(
            "{expression} is in global {index} then; ask about the statement that last wrote it"
        ),
        VariableLocation::Value(_) => {
            bail!("{expression} is a constant there, {value}: the compiler computed it")
        }
        VariableLocation::OptimisedOut => bail!("{expression} is optimised out there"),
    };
    let place = scene.place(spot)?;
    let where_ = place.own_described();
    let when = if over {
        "at the end of the run".to_owned()
    } else {
        format!("before {where_} at t={}", grouped(time))
    };
    let from = match bits.zip(Some(from)) {
        Some((bits, At::Written { range, .. })) => {
            // The write may begin after the bit-field's first byte.
            let first = match piece.place {
                VariableLocation::Memory(address) => address + u64::from(bits.first / 8),
                _ => range.address,
            };
            let skipped = 8 * range.address.saturating_sub(first);
            let mask = mask(bits.first % 8, bits.count);
            Held::Bits(from, mask.checked_shr(skipped as u32).unwrap_or(0))
        }
        Some((bits, At::Register(..))) => Held::Bits(from, mask(bits.first, bits.count)),
        _ => Held::At(from),
    };
    Ok(Start {
        from: Some(from),
        ty: None,
        what: format!(
            "{} is {}{} {when}, {which}",
            harmless(expression),
            harmless(&value),
            ended::marked(written)
        ),
        value,
        written,
        place: Some(spot),
        ..Start::default()
    })
}

/// Returns the value of the WebAssembly local with this name, if there is one and the debug
/// information does not describe the function.
fn of_local<'a>(
    scene: &Scene<'_, 'a>,
    bodies: &Bodies<'a>,
    When { time, op }: When,
    expression: &str,
) -> Result<Option<Start>> {
    let activation = Activation::at(scene.values, bodies, time, op)?;
    let function = activation.function;
    let Some(local) = wasm_local(scene.traced, scene.names, function, expression) else {
        return Ok(None);
    };
    let ty = activation.locals().get(local as usize);
    let ty = *ty.with_context(|| format!("{expression} is local {local}, which does not exist"))?;
    let value = value_text(ty, activation.recorded(scene.values, local)?);
    let register = activation.register(scene.values, local)?;
    let spot = scene.walk().spot_of(activation.instance, activation.op);
    let place = scene.place(spot)?;
    Ok(Some(Start {
        from: Some(Held::At(At::Register(activation.instance, register))),
        ty: Some(ty),
        what: format!(
            "{} is {value} before {} at t={}, which",
            harmless(expression),
            place.own_described(),
            grouped(time)
        ),
        value,
        place: Some(spot),
        ..Start::default()
    }))
}

/// Returns a mask of `count` bits beginning with bit `first`, or 0 if some of the bits are beyond
/// the lowest 64.
fn mask(first: u32, count: u32) -> u64 {
    let all = u64::MAX.checked_shr(64_u32.saturating_sub(count));
    let mask = all.filter(|_| first + count <= 64);
    mask.map_or(0, |mask| mask << first)
}

/// Keeps the bits of the bytes that `mask` selects, and clears the others.
fn masked(bytes: &[u8], mask: u64) -> Vec<u8> {
    let all = mask.to_le_bytes();
    let both = bytes.iter().zip(all);
    both.map(|(byte, mask)| byte & mask).collect()
}
