//! Sorts the numbers of a block.

use crate::{BLOCK, bits};

/// Numbers that differ in more bytes than this are sorted by comparison instead of distribution.
const MOST_BYTES: u32 = 4;
/// Fewer numbers than this are also sorted by comparison.
const FEW: usize = 64;

/// Sorts at most [`BLOCK`] numbers between `min` and `max`. Distributes them by the lowest bytes in
/// which they differ, if that is faster.
pub(super) fn sort(numbers: &mut [u64], min: u64, max: u64) {
    let bytes = bits::length(max - min).div_ceil(8);
    if bytes > MOST_BYTES || !(FEW..=BLOCK).contains(&numbers.len()) {
        return numbers.sort_unstable();
    }
    let mut other = [0; BLOCK];
    let other = &mut other[..numbers.len()];
    for byte in 0..bytes {
        let digit = |number: u64| ((number - min) >> (8 * byte)) as u8;
        let mut places = [0u16; 256];
        for &number in &*numbers {
            places[usize::from(digit(number))] += 1;
        }
        let mut next = 0;
        for place in &mut places {
            let count = *place;
            *place = next;
            next += count;
        }
        for &number in &*numbers {
            let place = &mut places[usize::from(digit(number))];
            other[usize::from(*place)] = number;
            *place += 1;
        }
        numbers.copy_from_slice(other);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_of_all_widths_are_sorted(mut numbers in prop::collection::vec(any::<u64>(), 1..300), width in 0..=64u32, base: u64) {
            for number in &mut numbers {
                *number = base.saturating_add(*number & bits::mask(width));
            }
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            sort(&mut numbers, sorted[0], sorted[sorted.len() - 1]);
            prop_assert_eq!(numbers, sorted);
        }
    }
}
