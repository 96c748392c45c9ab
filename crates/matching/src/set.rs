//! Provides small sets of numbers, for queries about numbers that are mostly absent.

use std::ops::Deref;

/// A set of ascending numbers, with a one-word filter (Bloom 1970).
#[derive(Clone, Debug, Default)]
pub(crate) struct Set {
    sorted: Vec<u32>,
    filter: Filter,
}

impl Set {
    /// Whether the set contains a number. O(log size); O(1) for most absent numbers.
    #[inline(always)]
    pub fn holds(&self, number: u32) -> bool {
        self.filter.may_hold(number) && self.sorted.binary_search(&number).is_ok()
    }
}

impl FromIterator<u32> for Set {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut sorted = Vec::from_iter(numbers);
        sorted.sort_unstable();
        Self {
            filter: sorted.iter().copied().collect(),
            sorted,
        }
    }
}

impl Deref for Set {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.sorted
    }
}

/// A word with a bit for each number in the set. An absent number may have the same bit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filter(u64);

impl Filter {
    /// Whether the set may contain a number. Returns false only if the number is absent.
    #[inline(always)]
    pub fn may_hold(self, number: u32) -> bool {
        self.0 & bit(number) != 0
    }
}

impl FromIterator<u32> for Filter {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        Self(
            numbers
                .into_iter()
                .fold(0, |bits, number| bits | bit(number)),
        )
    }
}

/// Returns the bit of a number. Neighbouring numbers have different bits (multiplicative hashing,
/// Knuth 1973).
#[inline(always)]
fn bit(number: u32) -> u64 {
    1 << (number.wrapping_mul(0x9e37_79b1) >> 26)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_it_was_made_of(numbers in prop::collection::vec(0u32..200, 0..40), asked in 0u32..200) {
            let set: Set = numbers.iter().copied().collect();
            prop_assert_eq!(set.holds(asked), numbers.contains(&asked));
            prop_assert!(set.is_sorted());
        }
    }
}
