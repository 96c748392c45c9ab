//! Generates reproducible pseudorandom numbers.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        Self(1)
    }

    /// Returns a number from 1 to `n`, each about equally likely.
    pub(crate) fn up_to(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        1 + (z ^ z >> 31) % n.max(1)
    }
}
