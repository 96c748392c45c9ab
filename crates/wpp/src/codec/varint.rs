//! Encodes numbers as LEB128, with seven bits per byte, lowest first.

use super::CodecError;

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a number.
pub(crate) fn get(input: &mut &[u8]) -> Result<u64, CodecError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let next = byte(input)?;
        let part = u64::from(next & 0x7f);
        if part << shift >> shift != part || (next == 0 && shift > 0) {
            return Err(CodecError::Malformed(
                "a number that is not in its shortest form",
            ));
        }
        value |= part << shift;
        if next < 0x80 {
            return Ok(value);
        }
    }
    Err(CodecError::Malformed(
        "a number that is not in its shortest form",
    ))
}

/// Reads a number that must be below a bound.
pub(crate) fn get_below(
    input: &mut &[u8],
    bound: u64,
    what: &'static str,
) -> Result<u64, CodecError> {
    let value = get(input)?;
    if value < bound {
        Ok(value)
    } else {
        Err(CodecError::TooLarge(what))
    }
}

/// Reads a byte.
pub(crate) fn byte(input: &mut &[u8]) -> Result<u8, CodecError> {
    let (&first, rest) = input.split_first().ok_or(CodecError::Truncated)?;
    *input = rest;
    Ok(first)
}

/// Reads the version, which must be `known`.
pub(crate) fn version(input: &mut &[u8], known: u8) -> Result<(), CodecError> {
    match byte(input)? {
        version if version == known => Ok(()),
        version => Err(CodecError::Version(version)),
    }
}

/// Reads a length, and then the rest of the input, which must have that length.
pub(crate) fn rest<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], CodecError> {
    let length = get(input)?;
    match (input.len() as u64).cmp(&length) {
        std::cmp::Ordering::Less => Err(CodecError::Truncated),
        std::cmp::Ordering::Greater => Err(CodecError::Trailing),
        std::cmp::Ordering::Equal => Ok(std::mem::take(input)),
    }
}

/// Reads a length, and then that many bytes of the input.
pub(crate) fn part<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], CodecError> {
    let length = usize::try_from(get(input)?).map_err(|_| CodecError::Truncated)?;
    let (part, rest) = input
        .split_at_checked(length)
        .ok_or(CodecError::Truncated)?;
    *input = rest;
    Ok(part)
}
