//! Codes a value that no prediction matched, by its magnitude. Its number of bits, the bits below
//! the leading bit, and the lowest bits (alignment) are modelled. The other bits are not modelled.

use super::coder::{Coder, Probability};
use crate::bits;

/// Numbers of up to this many bits are modelled entirely.
const WHOLE: u32 = 8;
/// The number of modelled bits below the leading bit in longer numbers.
const HIGH: u32 = 3;
/// The number of modelled lowest bits.
const LOW: u32 = 3;

/// Numbers of three neighbouring lengths form a class. The last class contains all longer numbers.
const CLASSES: usize = 9;

/// The model of escaped numbers.
#[derive(Clone, Debug)]
pub(super) struct Escapes {
    /// Trees over the number of bits, 0 to 64, by the class of the previous escaped number.
    lengths: [[Probability; 128]; CLASSES],
    /// The next tree to use.
    class: usize,
    /// A tree over the numbers below 2^[`WHOLE`].
    whole: [Probability; 1 << WHOLE],
    /// For each number of bits, a tree over the bits below the leading bit.
    high: [[Probability; 1 << HIGH]; 65],
    /// A tree over the lowest bits, lowest first.
    low: [Probability; 1 << LOW],
}

impl Escapes {
    pub(super) fn new() -> Self {
        Self {
            lengths: [[Probability::EVEN; 128]; CLASSES],
            class: 0,
            whole: [Probability::EVEN; 1 << WHOLE],
            high: [[Probability::EVEN; 1 << HIGH]; 65],
            low: [Probability::EVEN; 1 << LOW],
        }
    }

    /// Codes a number.
    pub(super) fn code(&mut self, coder: &mut impl Coder, number: u64) -> u64 {
        let len = u64::from(bits::length(number));
        let len = descend(coder, &mut self.lengths[self.class], len, 7) as u32;
        self.class = (len as usize).div_ceil(3).min(CLASSES - 1);
        let below = len.saturating_sub(1);
        if below == 0 {
            return u64::from(len);
        }
        let lead = 1 << below.min(63);
        if len <= WHOLE {
            // One tree covers all numbers of these lengths.
            return lead | descend(coder, &mut self.whole, number & (lead - 1), below);
        }
        let below = below.min(63);
        let high_at = below - HIGH;
        let high = &mut self.high[len.min(64) as usize];
        let high = descend(coder, high, number >> high_at & bits::mask(HIGH), HIGH);
        let middle = coder.raw(number >> LOW & bits::mask(high_at - LOW), high_at - LOW);
        let mut low = 0;
        let mut node = 1;
        for at in 0..LOW {
            let bit = coder.bit(number >> at & 1 == 1, &mut self.low[node]);
            node = node << 1 | usize::from(bit);
            low |= u64::from(bit) << at;
        }
        lead | high << high_at | middle << LOW | low
    }
}

/// Codes the lowest `count` bits of a number from a tree's root down, highest bit first. Each bit
/// depends on the bits above it. The tree has at least 2^`count` entries.
#[inline(always)]
fn descend<const SIZE: usize>(
    coder: &mut impl Coder,
    tree: &mut [Probability; SIZE],
    number: u64,
    count: u32,
) -> u64 {
    let mut node = 1;
    for at in (0..count).rev() {
        let bit = coder.bit(number >> at & 1 == 1, &mut tree[node % SIZE]);
        node = node << 1 | usize::from(bit);
    }
    (node - (1 << count)) as u64
}
