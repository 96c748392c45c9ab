//! Chooses the differences, base and width of a packed block.

use super::sort::sort;
use super::{HIGHEST_ORDER, lags};
use crate::block::Nesting;
use crate::{bits, varint};

/// The way in which a block is packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The order of differences: 0 for values, 1 for differences, 2 for differences of differences,
    /// and so on.
    pub(super) order: usize,
    /// The distance between the two values of each difference.
    pub(super) lag: usize,
    /// The base, which is subtracted from each number.
    pub(super) base: u64,
    /// The common divisor of the numbers after the subtraction.
    pub(super) scale: u64,
    /// The number of bits per number.
    pub(super) width: u32,
    /// The approximate size of the block in bytes.
    bytes: usize,
}

impl Plan {
    /// Returns the approximate size of the block in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The size of an exception in bytes, apart from its number.
const PATCH: usize = 1;

/// The ranks of candidate bases among the sorted numbers. The rank of a base is the number of
/// exceptions below it.
const BELOW: [usize; 8] = [0, 1, 2, 5, 12, 25, 50, 100];

/// The number of candidates that are examined closely.
const FINALISTS: usize = 2;
/// A finalist's estimate exceeds the best estimate by at most one part in this many.
const CLOSE: u64 = 8;

/// An estimate of a long block examines two stretches of this many values.
const STRETCH: usize = 128;

/// Returns at most [`FINALISTS`] ways to pack a block, best estimate first.
pub(crate) fn plans(values: &[u64], nesting: Nesting) -> Vec<Plan> {
    let mut numbers = Vec::with_capacity(values.len());
    let mut ways = Vec::new();
    let mut consider = |order: usize, lag: usize| {
        let head = 8 * head_bytes(&values[..order * lag]) as u64;
        let stretches = stretches(values, order * lag);
        let mut bits = 0;
        for stretch in stretches.clone() {
            residuals(stretch, order, lag, &mut numbers);
            bits += spread(&numbers);
        }
        let seen: usize = stretches.map(|stretch| stretch.len() - order * lag).sum();
        let bits = head + bits * (values.len() - order * lag) as u64 / seen as u64;
        ways.push((bits, order, lag));
        bits
    };
    let mut least = u64::MAX;
    for order in 0..=HIGHEST_ORDER {
        if order > 0 && values.len() < 3.max(4 * order) {
            break;
        }
        // Higher orders are tried as long as the differences get shorter.
        let bits = consider(order, 1);
        if order > 1 && bits >= least {
            break;
        }
        least = bits;
    }
    // Search for periods only if the best plan takes more than one bit per value.
    if nesting.has_columns() && least > values.len() as u64 {
        for (order, lag) in lags::find(values) {
            consider(order, lag);
        }
    }
    ways.sort_unstable();
    ways.truncate(FINALISTS);
    let best = ways[0].0;
    ways.retain(|&(bits, ..)| bits <= best + best / CLOSE);
    let mut plans: Vec<_> = ways
        .into_iter()
        .map(|(_, order, lag)| {
            residuals(values, order, lag, &mut numbers);
            let head = head_bytes(&values[..order * lag]);
            Plan {
                order,
                lag,
                ..frame(&mut numbers, order > 0, head)
            }
        })
        .collect();
    plans.sort_by_key(|plan| plan.bytes);
    plans
}

/// Returns the values that an estimate examines. The first `head` values are not representative.
fn stretches(values: &[u64], head: usize) -> impl Iterator<Item = &[u64]> + Clone {
    let (first, second) = match values.len() {
        len if len < 4 * STRETCH || head > STRETCH / 2 => (values, None),
        len => {
            let middle = len / 2;
            let second = &values[middle..middle + STRETCH];
            (&values[..STRETCH], Some(second))
        }
    };
    std::iter::once(first).chain(second)
}

/// Returns the approximate total number of bits of numbers relative to a middle number, without
/// sorting. Outliers have little weight.
fn spread(numbers: &[u64]) -> u64 {
    let at = |eighths: usize| numbers[numbers.len() * eighths / 8];
    let mut samples = [at(1), at(3), at(4), at(5), at(7)];
    samples.sort_unstable_by_key(|&sample| sample as i64);
    let middle = samples[2];
    numbers
        .iter()
        .map(|number| u64::from(bits::length(varint::zigzag(number.wrapping_sub(middle)))))
        .sum()
}

/// Computes the differences of an order to the values `lag` places before, excluding the head.
pub(super) fn residuals(values: &[u64], order: usize, lag: usize, out: &mut Vec<u64>) {
    out.clear();
    match order {
        0 => out.extend_from_slice(values),
        1 => out.extend(
            values[lag..]
                .iter()
                .zip(values)
                .map(|(value, before)| value.wrapping_sub(*before)),
        ),
        2 => out.extend((2 * lag..values.len()).map(|at| {
            let (near, far) = (values[at - lag], values[at - 2 * lag]);
            values[at]
                .wrapping_sub(near)
                .wrapping_sub(near.wrapping_sub(far))
        })),
        _ => {
            out.extend_from_slice(values);
            for _ in 0..order {
                for at in 1..out.len() {
                    out[at - 1] = out[at].wrapping_sub(out[at - 1]);
                }
                out.pop();
            }
        }
    }
}

/// Returns the approximate size of the head as a block, in bytes.
fn head_bytes(head: &[u64]) -> usize {
    let values: usize = head.iter().map(|&value| varint::size(value)).sum();
    let differences: usize = head
        .windows(2)
        .map(|pair| varint::size(varint::zigzag(pair[1].wrapping_sub(pair[0]))))
        .sum();
    values.min(differences + 4)
}

/// Sorts the numbers, and returns the best base, scale and width for them.
fn frame(numbers: &mut [u64], signed: bool, head: usize) -> Plan {
    // Signed order equals the order of numbers with a flipped sign bit.
    let flip = if signed { 1 << 63 } else { 0 };
    for number in &mut *numbers {
        *number ^= flip;
    }
    let (min, max) = numbers.iter().fold((u64::MAX, 0), |(min, max), &number| {
        (number.min(min), number.max(max))
    });
    sort(numbers, min, max);
    let scale = numbers
        .iter()
        .try_fold(0, |divisor, number| match gcd(number - min, divisor) {
            1 => None,
            divisor => Some(divisor),
        })
        .map_or(1, |divisor| divisor.max(1));
    let mut best = Plan {
        order: 0,
        lag: 1,
        base: min ^ flip,
        scale,
        width: bits::length((max - min) / scale),
        bytes: 0,
    };
    best.bytes = bytes(
        numbers.len(),
        best.width,
        0,
        head + varint::size(min ^ flip),
    );
    if scale > 1 || best.width == 0 {
        return best;
    }
    let middle = numbers[numbers.len() / 2];
    let below_middle = numbers.partition_point(|&number| number < middle);
    let candidates = BELOW.into_iter().filter(|&below| below < numbers.len() / 4);
    for below in candidates.chain([below_middle]) {
        let base = numbers[below];
        for width in 0..bits::length(max - base) {
            if bytes(numbers.len(), width, 0, head) >= best.bytes {
                break;
            }
            let top = base.saturating_add(bits::mask(width));
            let above = numbers.partition_point(|&number| number <= top);
            let exceptions = below + numbers.len() - above;
            if exceptions * 3 > numbers.len() {
                continue;
            }
            let outlying =
                |number: &u64| PATCH + varint::size(varint::zigzag(number.wrapping_sub(base)));
            let least = bytes(numbers.len(), width, exceptions * (PATCH + 1), head);
            if least >= best.bytes {
                continue;
            }
            let patches: usize = numbers[..below]
                .iter()
                .chain(&numbers[above..])
                .map(outlying)
                .sum();
            let total = bytes(
                numbers.len(),
                width,
                patches,
                head + varint::size(varint::zigzag(base ^ flip)),
            );
            if total < best.bytes {
                best = Plan {
                    base: base ^ flip,
                    width,
                    bytes: total,
                    ..best
                };
            }
        }
    }
    best
}

fn bytes(count: usize, width: u32, patches: usize, head: usize) -> usize {
    2 + (count * width as usize).div_ceil(8) + patches + head
}

/// Returns the greatest common divisor. Uses Stein's algorithm, because division is slow and most
/// blocks have no common divisor.
fn gcd(mut a: u64, mut b: u64) -> u64 {
    if a == 0 || b == 0 {
        return a | b;
    }
    let shift = (a | b).trailing_zeros();
    a >>= a.trailing_zeros();
    loop {
        b >>= b.trailing_zeros();
        if a > b {
            std::mem::swap(&mut a, &mut b);
        }
        b -= a;
        if b == 0 {
            return a << shift;
        }
    }
}
