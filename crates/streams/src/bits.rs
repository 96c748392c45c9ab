//! Packs numbers of equal width in sequence, lowest bits first.

use crate::{StreamError, varint};

/// Returns the size in bytes of `count` numbers of `width` bits.
pub(crate) fn packed_size(count: u64, width: u32) -> Option<u64> {
    Some(count.checked_mul(u64::from(width))?.div_ceil(8))
}

/// Appends numbers, which must be below 2^`width`.
pub(crate) fn pack(values: impl IntoIterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let (mut held, mut bits) = (0u128, 0);
    for value in values {
        debug_assert!(width == 64 || value >> width == 0);
        held |= u128::from(value) << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&(held as u64).to_le_bytes());
            held >>= 64;
            bits -= 64;
        }
    }
    out.extend_from_slice(&held.to_le_bytes()[..bits.div_ceil(8) as usize]);
}

/// Unpacks numbers, applies `map` to each, and fills `out` with the results.
pub(crate) fn unpack(
    input: &mut &[u8],
    width: u32,
    out: &mut [u64],
    map: impl Fn(u64) -> u64,
) -> Result<(), StreamError> {
    if width > 64 {
        return Err(StreamError::Malformed("a width of more than 64 bits"));
    }
    let size = packed_size(out.len() as u64, width).ok_or(StreamError::Truncated)?;
    let bytes = varint::bytes(input, size)?;
    let mask = mask(width);
    if width == 0 {
        out.fill(map(0));
        return Ok(());
    }
    // Eight numbers take `width` whole bytes. One load of the 8 bytes at which a number begins
    // reads the number. A number longer than 57 bits also needs the next byte.
    let step = width as usize;
    let mut groups = out.chunks_exact_mut(8);
    let mut at = 0;
    for group in &mut groups {
        let Some(window) = bytes.get(at..at + step + 8) else {
            let mut padded = [0; 72];
            padded[..step].copy_from_slice(&bytes[at..at + step]);
            unpack_group(&padded, step, mask, group, &map);
            at += step;
            continue;
        };
        unpack_group(window, step, mask, group, &map);
        at += step;
    }
    let rest = groups.into_remainder();
    let mut padded = [0; 72];
    padded[..bytes.len() - at].copy_from_slice(&bytes[at..]);
    unpack_group(&padded, step, mask, rest, &map);
    Ok(())
}

/// Unpacks at most eight numbers from the beginning of `bytes`. `bytes` must extend 8 bytes beyond
/// the numbers.
#[inline(always)]
fn unpack_group(bytes: &[u8], width: usize, mask: u64, out: &mut [u64], map: &impl Fn(u64) -> u64) {
    for (index, slot) in out.iter_mut().enumerate() {
        let (byte, shift) = (index * width / 8, index * width % 8);
        let low = bytes[byte..]
            .first_chunk()
            .map_or(0, |chunk| u64::from_le_bytes(*chunk));
        let mut value = low >> shift;
        if width > 57 && shift > 0 {
            value |= u64::from(bytes[byte + 8]) << (64 - shift);
        }
        *slot = map(value & mask);
    }
}

/// Returns a mask of the lowest `width` bits.
#[inline]
pub(crate) fn mask(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width).unwrap_or(0)
}

/// Returns the number of bits that a number takes.
#[inline]
pub(crate) fn length(value: u64) -> u32 {
    64 - value.leading_zeros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_of_all_widths_come_back(values in prop::collection::vec(any::<u64>(), 0..100), width in 0..=64u32) {
            let values: Vec<_> = values.into_iter().map(|value| value & mask(width)).collect();
            let mut bytes = Vec::new();
            pack(values.iter().copied(), width, &mut bytes);
            prop_assert_eq!(Some(bytes.len() as u64), packed_size(values.len() as u64, width));
            let mut back = vec![0; values.len()];
            bytes.push(0xff);
            let mut input = &bytes[..];
            unpack(&mut input, width, &mut back, |value| value).unwrap();
            prop_assert_eq!(input, &[0xff]);
            prop_assert_eq!(&back, &values);
        }
    }
}
