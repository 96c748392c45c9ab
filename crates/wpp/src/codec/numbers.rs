//! Codes numbers with adaptive probabilities, but without contexts from the path.

use super::coder::Coder;
use super::logistic::Chance;

/// Codes numbers of up to 64 bits that are mostly small, in Elias's gamma code (1975) with adaptive
/// probabilities.
pub(super) struct Gamma {
    /// The chance, for each length, that `value + 1` is longer. `value + 1` has up to 65 bits.
    lengths: [Chance; 65],
    /// The chances of the two highest bits after the leading bit, by length.
    heads: [[Chance; 4]; 65],
}

impl Gamma {
    pub(super) fn new() -> Self {
        Self {
            lengths: [Chance::new(1 << 15, 1); 65],
            heads: [[Chance::new(1 << 15, 1); 4]; 65],
        }
    }

    /// Codes a number. Returns `None` for a number of more than 64 bits, which occurs only in
    /// hostile bytes.
    pub(super) fn code(&mut self, coder: &mut impl Coder, value: u64) -> Option<u64> {
        let value = u128::from(value) + 1;
        let bits = 127 - value.leading_zeros();
        let mut length = 0;
        while length < 64 && self.lengths[length as usize].code(coder, bits > length) {
            length += 1;
        }
        let mut sum = 1u128;
        for at in (0..length).rev() {
            let bit = value >> at & 1 == 1;
            let bit = match length - 1 - at {
                0 => self.heads[length as usize][1].code(coder, bit),
                1 => self.heads[length as usize][(2 | sum & 1) as usize].code(coder, bit),
                _ => coder.bit(bit, 1 << 15),
            };
            sum = sum << 1 | u128::from(bit);
        }
        u64::try_from(sum - 1).ok()
    }

    /// Codes a number modulo 2^32 that is close to 0, whether positive or negative.
    pub(super) fn code_signed(&mut self, coder: &mut impl Coder, value: u32) -> u32 {
        let folded = value << 1 ^ ((value as i32) >> 31) as u32;
        let folded = self
            .code(coder, folded.into())
            .map_or(0, |folded| folded as u32);
        folded >> 1 ^ (folded & 1).wrapping_neg()
    }
}

/// Codes numbers below a bound, highest bit first. The context of each of the first sixteen bits is
/// the bits before it.
pub(super) struct Tree {
    bits: u32,
    chances: Vec<Chance>,
}

impl Tree {
    /// Creates a coder of numbers below `bound`.
    pub(super) fn new(bound: u32) -> Self {
        let bits = u32::BITS - bound.saturating_sub(1).leading_zeros();
        Self {
            bits,
            chances: vec![Chance::new(1 << 15, 1); 1 << bits.min(16)],
        }
    }

    /// Codes a number. Hostile bytes may encode a number that is not below the bound.
    pub(super) fn code(&mut self, coder: &mut impl Coder, value: u32) -> u32 {
        let mut sum = 1u32;
        for at in (0..self.bits.min(16)).map(|at| self.bits - 1 - at) {
            let bit = self.chances[sum as usize].code(coder, value >> at & 1 == 1);
            sum = sum << 1 | u32::from(bit);
        }
        let rest = self.bits.saturating_sub(16);
        let head = u64::from(sum) - (1 << self.bits.min(16));
        (head << rest | coder.raw(u64::from(value), rest)) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::coder::{Decoder, Encoder};
    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(
            numbers in prop::collection::vec(prop_oneof![any::<u64>(), 0..9u64, Just(u64::MAX)], 0..100),
            bound in 1..u32::MAX,
        ) {
            fn all(coder: &mut impl Coder, numbers: &[u64], given: bool, bound: u32) -> Vec<(u64, u32, u32)> {
                let (mut gamma, mut signed, mut tree) = (Gamma::new(), Gamma::new(), Tree::new(bound));
                numbers.iter().map(|&number| {
                    let number = if given { number } else { 0 };
                    let whole = gamma.code(coder, number).unwrap();
                    let other = signed.code_signed(coder, number as u32);
                    (whole, other, tree.code(coder, number as u32 % bound))
                }).collect()
            }
            let expected: Vec<_> = numbers.iter().map(|&n| (n, n as u32, n as u32 % bound)).collect();
            let mut encoder = Encoder::new();
            prop_assert_eq!(all(&mut encoder, &numbers, true, bound), expected.clone());
            let bytes = encoder.finish();
            prop_assert_eq!(all(&mut Decoder::new(&bytes), &numbers, false, bound), expected);
        }
    }
}
