//! Encodes numbers as LEB128, with seven bits per byte, lowest first. Also maps signed numbers to
//! unsigned numbers.

use crate::StreamError;

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns the number of bytes that [`put`] appends.
pub(crate) fn size(value: u64) -> usize {
    (64 - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// Reads a number.
#[inline]
pub(crate) fn get(input: &mut &[u8]) -> Result<u64, StreamError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let next = byte(input)?;
        let part = u64::from(next & 0x7f);
        if part << shift >> shift != part {
            break;
        }
        value |= part << shift;
        if next < 0x80 {
            return Ok(value);
        }
    }
    Err(StreamError::Malformed("a number of more than 64 bits"))
}

/// Reads a byte.
#[inline]
pub(crate) fn byte(input: &mut &[u8]) -> Result<u8, StreamError> {
    let (&first, rest) = input.split_first().ok_or(StreamError::Truncated)?;
    *input = rest;
    Ok(first)
}

/// Reads `count` bytes.
pub(crate) fn bytes<'a>(input: &mut &'a [u8], count: u64) -> Result<&'a [u8], StreamError> {
    let count = usize::try_from(count).map_err(|_| StreamError::Truncated)?;
    let (taken, rest) = input
        .split_at_checked(count)
        .ok_or(StreamError::Truncated)?;
    *input = rest;
    Ok(taken)
}

/// Maps 0, −1, 1, −2, 2, … to 0, 1, 2, 3, 4, …
#[inline]
pub(crate) fn zigzag(value: u64) -> u64 {
    value << 1 ^ ((value as i64 >> 63) as u64)
}

/// Undoes [`zigzag`].
#[inline]
pub(crate) fn unzigzag(value: u64) -> u64 {
    value >> 1 ^ (value & 1).wrapping_neg()
}
