//! Encodes and decodes numbers as LEB128.

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a number from the front. Returns `None` if there is no valid number.
pub(crate) fn take(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Reads a number that must fit into 32 bits.
pub(crate) fn take_u32(input: &mut &[u8]) -> Option<u32> {
    u32::try_from(take(input)?).ok()
}

/// Reads `length` bytes.
pub(super) fn take_bytes<'a>(input: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(bytes)
}
