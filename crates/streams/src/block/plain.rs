//! Stores values one by one, each in the bytes that it needs. This suits the handful of values that
//! most streams contain.

use crate::{StreamError, varint};

/// The tag's parameters, which say how the values become short numbers.
const VALUES: u8 = 0;
const DIFFERENCES: u8 = 1;

/// Appends values, or their differences if those are shorter, and returns the tag's parameter.
pub(crate) fn encode(values: &[u64], out: &mut Vec<u8>) -> u8 {
    let sizes = |map: fn(u64, u64) -> u64| -> usize {
        steps(values)
            .map(|(last, value)| varint::size(map(last, value)))
            .sum()
    };
    let parameter = u8::from(sizes(difference) < sizes(itself));
    let map = if parameter == DIFFERENCES {
        difference
    } else {
        itself
    };
    for (last, value) in steps(values) {
        varint::put(out, map(last, value));
    }
    parameter
}

/// Decodes values.
pub(crate) fn decode(input: &mut &[u8], parameter: u8, out: &mut [u64]) -> Result<(), StreamError> {
    let mut last = 0u64;
    for slot in out {
        let number = varint::get(input)?;
        last = match parameter {
            VALUES => number,
            DIFFERENCES => last.wrapping_add(varint::unzigzag(number)),
            _ => return Err(StreamError::Malformed("an unknown kind of plain values")),
        };
        *slot = last;
    }
    Ok(())
}

/// Returns each value with its predecessor. 0 precedes the first value.
fn steps(values: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    let before = std::iter::once(0).chain(values.iter().copied());
    before.zip(values.iter().copied())
}

fn itself(_: u64, value: u64) -> u64 {
    value
}

fn difference(last: u64, value: u64) -> u64 {
    varint::zigzag(value.wrapping_sub(last))
}
