//! Codes a block with few distinct values. The block stores these values once, in ascending order,
//! and the rank of the value at each place. Both are columns, so ranks can be packed, coded as
//! runs, or periodic.

use super::{Nesting, decode_nested, encode_nested};
use crate::{BLOCK, StreamError, bits, varint};

/// Blocks with more distinct values than this are left to other codecs.
const MOST: usize = 256;

/// The dictionary that an encoded block would have.
pub(crate) struct Plan {
    distinct: Vec<u64>,
    pub(crate) ranks: Vec<u64>,
}

impl Plan {
    /// Returns the approximate size of the block in bytes, assuming that its ranks have no pattern.
    pub(crate) fn bytes(&self) -> usize {
        let width = bits::length(self.distinct.len() as u64 - 1) as usize;
        self.distinct.len() + self.ranks.len() * width / 8
    }
}

/// Returns the maximum number of distinct values in a block's dictionary.
pub(crate) fn limit(len: usize) -> usize {
    MOST.min(len / 4)
}

/// Plans a dictionary of 2 to `most` distinct values, unless the values equal, or nearly equal,
/// their own ranks.
pub(crate) fn plan(values: &[u64], most: usize) -> Option<Plan> {
    if most < 2 {
        return None;
    }
    let (ranks, mut distinct) = number(values, most)?;
    let mut order = Vec::from_iter(0..distinct.len());
    order.sort_unstable_by_key(|&at| distinct[at]);
    let mut rank_of = vec![0; distinct.len()];
    for (rank, &at) in order.iter().enumerate() {
        rank_of[at] = rank as u64;
    }
    distinct.sort_unstable();
    let [first, .., last] = distinct[..] else {
        return None;
    };
    if last - first < 2 * distinct.len() as u64 {
        return None;
    }
    let ranks = ranks.into_iter().map(|at| rank_of[usize::from(at)]);
    let ranks = ranks.collect();
    Some(Plan { distinct, ranks })
}

/// Returns the index of each value among the distinct values, and the distinct values in the order
/// of first occurrence. Returns `None` if there are more than `most` distinct values.
fn number(values: &[u64], most: usize) -> Option<(Vec<u16>, Vec<u64>)> {
    /// The table has at least this many places per entry.
    const ROOM: usize = 4;
    let bits = (most.min(usize::from(u16::MAX)) * ROOM)
        .next_power_of_two()
        .ilog2();
    // Each place has the index of a distinct value, plus 1.
    let mut table = vec![0u16; 1 << bits];
    let mut distinct: Vec<u64> = Vec::new();
    let mut numbers = Vec::with_capacity(values.len());
    let mut last = None;
    for &value in values {
        // Look up equal consecutive values only once.
        if let Some((before, number)) = last
            && before == value
        {
            numbers.push(number);
            continue;
        }
        let mut at = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize;
        let number = loop {
            match table[at].checked_sub(1) {
                Some(number) if distinct[usize::from(number)] == value => break number,
                Some(_) => at = (at + 1) % table.len(),
                None => {
                    if distinct.len() == most {
                        return None;
                    }
                    let number = distinct.len() as u16;
                    distinct.push(value);
                    table[at] = number + 1;
                    break number;
                }
            }
        };
        last = Some((value, number));
        numbers.push(number);
    }
    Some((numbers, distinct))
}

/// Appends the block and returns the tag's parameter.
pub(crate) fn encode(plan: &Plan, nesting: Nesting, out: &mut Vec<u8>) -> u8 {
    encode_values(plan, nesting, out);
    encode_nested(&plan.ranks, nesting, out);
    0
}

/// Appends the distinct values.
pub(crate) fn encode_values(plan: &Plan, nesting: Nesting, out: &mut Vec<u8>) {
    varint::put(out, plan.distinct.len() as u64 - 1);
    encode_nested(&plan.distinct, nesting, out);
}

/// Decodes distinct values. Their number may be at most `most`, and at most [`BLOCK`].
pub(crate) fn decode_values(
    input: &mut &[u8],
    most: u64,
    nesting: Nesting,
) -> Result<Box<[u64]>, StreamError> {
    let greatest = varint::get(input)?;
    if greatest >= most.min(BLOCK as u64) {
        return Err(StreamError::Malformed("an impossible dictionary"));
    }
    let mut distinct = vec![0; greatest as usize + 1];
    decode_nested(input, &mut distinct, nesting)?;
    Ok(distinct.into())
}

/// Replaces ranks with values.
pub(crate) fn look_up(distinct: &[u64], out: &mut [u64]) -> Result<(), StreamError> {
    for slot in out {
        *slot = *usize::try_from(*slot)
            .ok()
            .and_then(|rank| distinct.get(rank))
            .ok_or(StreamError::Malformed("a rank that the dictionary lacks"))?;
    }
    Ok(())
}

/// Decodes the block.
pub(crate) fn decode(
    input: &mut &[u8],
    parameter: u8,
    out: &mut [u64],
    nesting: Nesting,
) -> Result<(), StreamError> {
    if parameter != 0 {
        return Err(StreamError::Malformed("an unknown kind of dictionary"));
    }
    let distinct = decode_values(input, out.len() as u64, nesting)?;
    decode_nested(input, out, nesting)?;
    look_up(&distinct, out)
}
