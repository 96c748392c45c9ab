//! Encodes and decodes LEB128 numbers.

use super::HistoryError;

/// Appends a number.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a number and advances the input.
pub(super) fn get(input: &mut &[u8]) -> Result<u64, HistoryError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first().ok_or(HistoryError::Truncated)?;
        *input = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            break;
        }
        value |= part << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(HistoryError::Malformed("a number of more than 64 bits"))
}
