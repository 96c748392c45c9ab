//! Computes fingerprints of block sequences. The fingerprint of a concatenation follows from its
//! parts' fingerprints (Karp and Rabin 1987).

use std::hash::{BuildHasher, RandomState};

use afterimage_ids::BlockId;

/// The prime 2^61 − 1, modulo which fingerprints are computed.
const PRIME: u64 = (1 << 61) - 1;

/// The fingerprint of a sequence of blocks. It consists of the length, and of a polynomial's values
/// at two random points. The blocks are the polynomial's coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint {
    length: u64,
    values: [u64; 2],
    /// The two points, each raised to the power of the length.
    powers: [u64; 2],
}

/// The two points at which polynomials are evaluated. They are chosen at random each time, so that
/// nobody can construct colliding sequences.
#[derive(Clone, Copy, Debug)]
pub(super) struct Points([u64; 2]);

impl Points {
    pub(super) fn random() -> Self {
        // Each `RandomState` has its own random keys.
        Self([0, 1].map(|number: u64| RandomState::new().hash_one(number) % (PRIME - 2) + 2))
    }

    pub(super) fn of(self, blocks: &[BlockId]) -> Fingerprint {
        blocks.iter().fold(Fingerprint::EMPTY, |before, block| {
            before.then(Fingerprint {
                length: 1,
                values: [u64::from(block.as_u32()) + 1; 2],
                powers: self.0,
            })
        })
    }
}

impl Fingerprint {
    pub(super) const EMPTY: Self = Self {
        length: 0,
        values: [0; 2],
        powers: [1; 2],
    };

    /// Returns the number of blocks.
    pub(super) fn len(self) -> u64 {
        self.length
    }

    /// Returns the fingerprint of this sequence followed by another.
    pub(super) fn then(self, other: Self) -> Self {
        let value = |k: usize| {
            let sum = times(self.values[k], other.powers[k]) + other.values[k];
            if sum >= PRIME { sum - PRIME } else { sum }
        };
        let power = |k: usize| times(self.powers[k], other.powers[k]);
        Self {
            // The lengths of unreachable sequences may be arbitrary.
            length: self.length.wrapping_add(other.length),
            values: [value(0), value(1)],
            powers: [power(0), power(1)],
        }
    }

    /// Returns the fingerprint of this sequence repeated `rounds` times. Time: O(log rounds).
    pub(super) fn repeated(self, mut rounds: u64) -> Self {
        let (mut result, mut power) = (Self::EMPTY, self);
        while rounds > 0 {
            if rounds & 1 == 1 {
                result = result.then(power);
            }
            power = power.then(power);
            rounds >>= 1;
        }
        result
    }
}

fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let sum = (product as u64 & PRIME) + (product >> 61) as u64;
    if sum >= PRIME { sum - PRIME } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_give_the_fingerprint_of_the_whole() {
        let points = Points::random();
        let blocks: Vec<_> = (0..40u32).map(|k| BlockId::from_u32(k * k % 7)).collect();
        let whole = points.of(&blocks);
        for at in 0..=blocks.len() {
            let (one, other) = blocks.split_at(at);
            assert_eq!(points.of(one).then(points.of(other)), whole);
        }
        let thrice = points.of(&[&blocks[..], &blocks, &blocks].concat());
        assert_eq!(whole.repeated(3), thrice);
        assert_eq!(whole.repeated(0), Fingerprint::EMPTY);
        let mut swapped = blocks.clone();
        swapped.swap(1, 2);
        assert_ne!(points.of(&swapped), whole);
        assert_eq!(times(PRIME - 1, PRIME - 1), 1, "−1 times −1");
    }
}
