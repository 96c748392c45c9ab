//! Packs values, differences or differences of differences in a frame of reference with exceptions.
//! A difference is taken from the value `lag` places before (patched bit-packing: Zukowski, Héman,
//! Nes and Boncz 2006, section 3.1).
//!
//! With lag 1, these are the usual deltas. With lag p, a period of p costs its first p values, and
//! p interleaved strides cost 2p values. The encoder subtracts a base, divides by a common divisor,
//! and packs the results in equal widths. The few numbers that do not fit are patched in.

mod lags;
mod plan;
mod sort;

pub(crate) use plan::{Plan, plans};

use super::{Nesting, decode_nested, encode_nested};
use crate::{BLOCK, StreamError, bits, varint};

/// The parts of the tag's parameter. Its lowest two bits are the order, and the others are flags.
const ORDER: u8 = 3;
/// From this order on, the order is stored separately.
const HIGH_ORDER: usize = 3;
/// The highest order of differences.
const HIGHEST_ORDER: usize = 8;
const LAG: u8 = 1 << 2;
const SCALE: u8 = 1 << 3;
const PATCHES: u8 = 1 << 4;

/// Appends the block and returns the tag's parameter.
pub(crate) fn encode(values: &[u64], plan: Plan, nesting: Nesting, out: &mut Vec<u8>) -> u8 {
    let mut parameter = plan.order.min(HIGH_ORDER) as u8;
    if plan.order >= HIGH_ORDER {
        varint::put(out, (plan.order - HIGH_ORDER) as u64);
    }
    if plan.lag > 1 {
        parameter |= LAG;
        varint::put(out, plan.lag as u64 - 2);
    }
    if plan.scale > 1 {
        parameter |= SCALE;
        varint::put(out, plan.scale - 2);
    }
    varint::put(
        out,
        if plan.order == 0 {
            plan.base
        } else {
            varint::zigzag(plan.base)
        },
    );
    out.push(plan.width as u8);
    let head = plan.order * plan.lag;
    encode_nested(&values[..head], nesting, out);
    let mut numbers = Vec::with_capacity(values.len());
    plan::residuals(values, plan.order, plan.lag, &mut numbers);
    for number in &mut numbers {
        *number = number.wrapping_sub(plan.base) / plan.scale;
    }
    let mask = bits::mask(plan.width);
    let patches: Vec<_> = (0..numbers.len())
        .filter(|&at| numbers[at] > mask)
        .collect();
    if !patches.is_empty() {
        parameter |= PATCHES;
        varint::put(out, patches.len() as u64 - 1);
        let mut next = 0;
        for &at in &patches {
            varint::put(out, (at - next) as u64);
            next = at + 1;
            // Numbers below the base are as likely as numbers above it.
            varint::put(out, varint::zigzag(numbers[at]));
        }
    }
    bits::pack(
        numbers
            .iter()
            .map(|&number| if number > mask { 0 } else { number }),
        plan.width,
        out,
    );
    parameter
}

/// Decodes the block.
pub(crate) fn decode(
    input: &mut &[u8],
    parameter: u8,
    out: &mut [u64],
    nesting: Nesting,
) -> Result<(), StreamError> {
    let order = match usize::from(parameter & ORDER) {
        HIGH_ORDER => HIGH_ORDER + varint::get(input)?.min(BLOCK as u64) as usize,
        order => order,
    };
    let lag = if parameter & LAG != 0 { lag(input)? } else { 1 };
    let head = order * lag;
    if order > HIGHEST_ORDER || (lag > 1 && order >= HIGH_ORDER) || head > out.len() {
        return Err(StreamError::Malformed("impossible differences"));
    }
    let scale = if parameter & SCALE != 0 {
        varint::get(input)?.wrapping_add(2)
    } else {
        1
    };
    let base = varint::get(input)?;
    let base = if order == 0 {
        base
    } else {
        varint::unzigzag(base)
    };
    let width = u32::from(varint::byte(input)?);
    if head == BLOCK && out.len() == BLOCK {
        return Err(StreamError::Malformed(
            "a block whose head leaves nothing for its body",
        ));
    }
    decode_nested(input, &mut out[..head], nesting)?;
    let body = &mut out[head..];
    // Patches come before the numbers that they modify.
    let patches = if parameter & PATCHES != 0 {
        skip_patches(input, body.len())?
    } else {
        &[]
    };
    if scale == 1 {
        bits::unpack(input, width, body, |number| number.wrapping_add(base))?;
    } else {
        bits::unpack(input, width, body, |number| {
            number.wrapping_mul(scale).wrapping_add(base)
        })?;
    }
    patch(patches, body, |number| {
        number.wrapping_mul(scale).wrapping_add(base)
    })?;
    integrate(out, order, lag);
    Ok(())
}

fn lag(input: &mut &[u8]) -> Result<usize, StreamError> {
    match varint::get(input)? {
        lag if lag < BLOCK as u64 => Ok(lag as usize + 2),
        _ => Err(StreamError::Malformed("a lag beyond the block")),
    }
}

/// Skips the bytes of the patches, after reading their number. Returns these bytes.
fn skip_patches<'a>(input: &mut &'a [u8], most: usize) -> Result<&'a [u8], StreamError> {
    let count = varint::get(input)?;
    if count >= most as u64 {
        return Err(StreamError::Malformed("more exceptions than values"));
    }
    let before = *input;
    for _ in 0..=count {
        varint::get(input)?;
        varint::get(input)?;
    }
    Ok(&before[..before.len() - input.len()])
}

/// Inserts the exceptions at their places.
fn patch(
    mut patches: &[u8],
    body: &mut [u64],
    map: impl Fn(u64) -> u64,
) -> Result<(), StreamError> {
    let mut rest = body;
    while !patches.is_empty() {
        let gap = varint::get(&mut patches)?;
        let number = varint::unzigzag(varint::get(&mut patches)?);
        let (slot, behind) = usize::try_from(gap)
            .ok()
            .and_then(|gap| rest.get_mut(gap..))
            .and_then(<[u64]>::split_first_mut)
            .ok_or(StreamError::Malformed("an exception after the end"))?;
        *slot = map(number);
        rest = behind;
    }
    Ok(())
}

/// Converts differences back to values, in place.
fn integrate(out: &mut [u64], order: usize, lag: usize) {
    match (order, lag) {
        (1, 1) => {
            let mut sum = 0u64;
            for slot in out {
                sum = sum.wrapping_add(*slot);
                *slot = sum;
            }
        }
        (2, 1) => {
            if let [first, second, rest @ ..] = out {
                let mut sum = *second;
                let mut step = second.wrapping_sub(*first);
                for slot in rest {
                    step = step.wrapping_add(*slot);
                    sum = sum.wrapping_add(step);
                    *slot = sum;
                }
            }
        }
        (1, _) => {
            for at in lag..out.len() {
                out[at] = out[at].wrapping_add(out[at - lag]);
            }
        }
        (2, _) => {
            for at in 2 * lag..out.len() {
                let (near, far) = (out[at - lag], out[at - 2 * lag]);
                out[at] = out[at].wrapping_add(near.wrapping_mul(2)).wrapping_sub(far);
            }
        }
        (0, _) => {}
        _ => {
            // At the head's end, where the sums begin, compute the differences of each order.
            let (head, body) = out.split_at_mut(order);
            let mut differences = [0; HIGHEST_ORDER];
            let differences = &mut differences[..order];
            differences.copy_from_slice(head);
            differences.reverse();
            for start in 1..order {
                for at in (start..order).rev() {
                    differences[at] = differences[at - 1].wrapping_sub(differences[at]);
                }
            }
            for &start in differences.iter().rev() {
                let mut sum = start;
                for slot in &mut *body {
                    sum = sum.wrapping_add(*slot);
                    *slot = sum;
                }
            }
        }
    }
}
