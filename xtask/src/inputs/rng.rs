//! Generates random numbers for the inputs. They are the same on every machine and in every
//! version.

/// SplitMix64 (Steele, Lea and Flood 2014, Figure 17).
pub struct Rng(u64);

impl Rng {
    /// Creates a generator that is fully determined by `seed`.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        // The bias of a remainder does not matter here, because bounds are tiny in comparison with
        // 2^64.
        (self.bits() % bound as u64) as usize
    }

    /// Returns true `percent` times in a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `choices`, each equally likely.
    pub fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// Returns one of `choices`, early ones more often. Text repeats itself, and compressors and
    /// parsers depend on that.
    pub fn favour<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        let bound = choices.len();
        choices[self
            .below(bound)
            .min(self.below(bound))
            .min(self.below(bound))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_are_those_of_the_reference_implementation() {
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.bits(), 6_457_827_717_110_365_317);
        assert_eq!(rng.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn favour_reaches_every_choice_and_prefers_the_first() {
        let mut rng = Rng::new(1);
        let mut seen = [0; 4];
        for _ in 0..10_000 {
            seen[*rng.favour(&[&0usize, &1, &2, &3])] += 1;
        }
        assert!(
            seen.windows(2).all(|pair| pair[0] > pair[1] && pair[1] > 0),
            "{seen:?}"
        );
    }
}
