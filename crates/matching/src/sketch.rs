//! Summarises a sequence of values in a fixed amount of memory.

use crate::Sample;

/// Mixes the bits of a number with a bijection, the finalizer of splitmix64 (Steele, Lea and Flood
/// 2014).
#[inline(always)]
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The base of a polynomial hash. It is odd, so that multiplying by it loses no information.
const BASE: u64 = 0xd6e8_feb8_6659_fd93;

/// The smallest number that may be a data address. Compilers leave the first kilobyte unused.
pub const ADDRESSES: u64 = 1024;

/// A summary of a sequence of values. Everything in it is exact, except for collisions of 64-bit
/// hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// The number of values.
    pub count: u64,
    /// A hash of the sequence.
    pub sequence: u64,
    /// A hash of the multiset, independent of the order.
    pub multiset: u64,
    /// A hash of the differences between neighbours. This hash does not change if a constant is
    /// added to all values, as when an object lies elsewhere.
    pub steps: u64,
    /// The first value.
    pub first: u64,
    /// The last value.
    pub last: u64,
    /// The smallest value.
    pub smallest: u64,
    /// The largest value.
    pub largest: u64,
    /// Hashes of the first 1, 2, 4, 8, … values.
    pub prefixes: Vec<u64>,
    /// A sample of the values, selected by [`mix`] of each.
    pub sample: Sample,
    /// A sample of the differences between neighbours.
    pub step_sample: Sample,
}

impl Sketch {
    /// Adds a value. O(1).
    #[inline(always)]
    pub fn add(&mut self, value: u64) {
        let mixed = mix(value);
        self.sequence = self.sequence.wrapping_mul(BASE).wrapping_add(mixed);
        self.multiset = self.multiset.wrapping_add(mixed);
        if self.count == 0 {
            self.first = value;
            self.smallest = value;
            self.largest = value;
        } else {
            let step = mix(value.wrapping_sub(self.last));
            self.steps = self.steps.wrapping_mul(BASE).wrapping_add(step);
            self.step_sample.add(step);
            self.smallest = self.smallest.min(value);
            self.largest = self.largest.max(value);
        }
        self.last = value;
        self.sample.add(mixed);
        self.count += 1;
        if self.count.is_power_of_two() {
            self.prefixes.push(self.sequence);
        }
    }

    /// Whether all values were the same.
    pub fn is_constant(&self) -> bool {
        self.smallest == self.largest
    }

    /// Whether all values may be data addresses. If so, no value is below the data, and no value
    /// exceeds 32 bits.
    pub fn may_be_addresses(&self) -> bool {
        self.smallest >= ADDRESSES && self.largest < 1 << 32
    }

    /// Returns the number of first values that are known to be equal in both sequences. It is the
    /// common length if the sequences are equal, and otherwise a power of two or 0.
    pub fn common_prefix(&self, other: &Self) -> u64 {
        if self.count == other.count && self.sequence == other.sequence {
            return self.count;
        }
        let pairs = self.prefixes.iter().zip(&other.prefixes);
        match pairs.take_while(|(a, b)| a == b).count() {
            0 => 0,
            same => 1 << (same - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sketch(values: &[u64]) -> Sketch {
        let mut sketch = Sketch::default();
        values.iter().for_each(|&value| sketch.add(value));
        sketch
    }

    proptest! {
        #[test]
        fn shifted_sequences_have_the_same_steps(values in prop::collection::vec(any::<u64>(), 1..50), by in any::<u64>()) {
            let shifted: Vec<u64> = values.iter().map(|v| v.wrapping_add(by)).collect();
            let (a, b) = (sketch(&values), sketch(&shifted));
            prop_assert_eq!(a.steps, b.steps);
            prop_assert_eq!(&a.step_sample, &b.step_sample);
            prop_assert_eq!(by != 0, a.sequence != b.sequence);
        }

        #[test]
        fn the_order_does_not_matter_to_the_multiset(mut values in prop::collection::vec(0u64..9, 1..50)) {
            let a = sketch(&values);
            values.sort_unstable();
            let b = sketch(&values);
            prop_assert_eq!((a.multiset, a.smallest, a.largest), (b.multiset, b.smallest, b.largest));
            prop_assert_eq!((a.smallest, a.largest), (values[0], values[values.len() - 1]));
        }

        #[test]
        fn a_common_prefix_is_one(a in prop::collection::vec(0u64..2, 1..40), b in prop::collection::vec(0u64..2, 1..40)) {
            let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count() as u64;
            let found = sketch(&a).common_prefix(&sketch(&b));
            prop_assert!(found <= same);
            // It is also at least half of the equal part.
            prop_assert!(found * 2 > same || found == same);
        }
    }
}
