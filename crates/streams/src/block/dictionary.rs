//! Few distinct values: the values once, in ascending order, and for each place the rank of its value. Both are columns,
//! so that ranks are packed, in runs, or periodic as they come.

use super::{Nesting, decode_nested, encode_nested};
use crate::{StreamError, varint};

/// More distinct values than this are left to other codecs.
const MOST: usize = 256;

/// What a block's dictionary would be.
pub(crate) struct Plan {
    distinct: Vec<u64>,
    ranks: Vec<u64>,
}

/// The dictionary of a block that has few distinct values for its length.
pub(crate) fn plan(values: &[u64]) -> Option<Plan> {
    let most = MOST.min(values.len() / 4);
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
    let rank = |value| distinct.partition_point(|&other| other < value) as u64;
    let ranks: Vec<_> = values.iter().map(|&value| rank(value)).collect();
    // Small numbers in a row are their own ranks.
    (distinct.len() > 1 && distinct.last() >= Some(&(distinct.len() as u64)))
        .then_some(Plan { distinct, ranks })
}

/// Appends the block; the result is the tag's parameter.
pub(crate) fn encode(plan: &Plan, nesting: Nesting, out: &mut Vec<u8>) -> u8 {
    varint::put(out, plan.distinct.len() as u64 - 1);
    encode_nested(&plan.distinct, nesting, out);
    encode_nested(&plan.ranks, nesting, out);
    0
}

/// Takes the block.
pub(crate) fn decode(
    input: &mut &[u8],
    parameter: u8,
    out: &mut [u64],
    nesting: Nesting,
) -> Result<(), StreamError> {
    let greatest = varint::get(input)?;
    if parameter != 0 || greatest >= out.len().min(MOST) as u64 {
        return Err(StreamError::Malformed("a dictionary that cannot be"));
    }
    let mut distinct = [0; MOST];
    let distinct = &mut distinct[..=greatest as usize];
    decode_nested(input, distinct, nesting)?;
    decode_nested(input, out, nesting)?;
    for slot in out {
        *slot = *usize::try_from(*slot)
            .ok()
            .and_then(|rank| distinct.get(rank))
            .ok_or(StreamError::Malformed("a rank that the dictionary lacks"))?;
    }
    Ok(())
}
