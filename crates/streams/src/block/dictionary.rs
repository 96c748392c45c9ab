//! Few distinct values: the values once, in ascending order, and for each place the rank of its value. Both are columns,
//! so that ranks are packed, in runs, or periodic as they come.

use super::{Nesting, decode_nested, encode_nested};
use crate::{BLOCK, StreamError, varint};

/// More distinct values than this are left to other codecs.
const MOST: usize = 256;

/// What a block's dictionary would be.
pub(crate) struct Plan {
    distinct: Vec<u64>,
    pub(crate) ranks: Vec<u64>,
}

/// How many distinct values a block's dictionary may have.
pub(crate) fn limit(len: usize) -> usize {
    MOST.min(len / 4)
}

/// A dictionary of between 2 and `most` distinct values, unless those are their own ranks, or nearly.
pub(crate) fn plan(values: &[u64], most: usize) -> Option<Plan> {
    // Equal values in a row are looked up once.
    let mut distinct: Vec<u64> = Vec::with_capacity(most + 1);
    let mut last = None;
    for &value in values {
        if last == Some(value) {
            continue;
        }
        last = Some(value);
        if let Err(at) = distinct.binary_search(&value) {
            if distinct.len() == most {
                return None;
            }
            distinct.insert(at, value);
        }
    }
    let [first, .., last] = distinct[..] else {
        return None;
    };
    if last - first < 2 * distinct.len() as u64 {
        return None;
    }
    let rank = |value| distinct.partition_point(|&other| other < value) as u64;
    let ranks: Vec<_> = values.iter().map(|&value| rank(value)).collect();
    Some(Plan { distinct, ranks })
}

/// Appends the block; the result is the tag's parameter.
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

/// Takes distinct values, at most `most` and [`BLOCK`].
pub(crate) fn decode_values(
    input: &mut &[u8],
    most: u64,
    nesting: Nesting,
) -> Result<Box<[u64]>, StreamError> {
    let greatest = varint::get(input)?;
    if greatest >= most.min(BLOCK as u64) {
        return Err(StreamError::Malformed("a dictionary that cannot be"));
    }
    let mut distinct = vec![0; greatest as usize + 1];
    decode_nested(input, &mut distinct, nesting)?;
    Ok(distinct.into())
}

/// Puts values for ranks.
pub(crate) fn look_up(distinct: &[u64], out: &mut [u64]) -> Result<(), StreamError> {
    for slot in out {
        *slot = *usize::try_from(*slot)
            .ok()
            .and_then(|rank| distinct.get(rank))
            .ok_or(StreamError::Malformed("a rank that the dictionary lacks"))?;
    }
    Ok(())
}

/// Takes the block.
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
