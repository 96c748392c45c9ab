//! Adaptive probabilities and their logistic mixing (Mahoney, "Adaptive Weighing of Context Models
//! for Lossless Data Compression", 2005), in integers, so that every machine computes the same.

use super::coder::Coder;

/// The scale of the logistic domain. A value is `ln(p / (1 - p))` multiplied by this number.
const UNIT: i32 = 256;
/// The largest value of the logistic domain. It means odds of e^11, about the most that a 16-bit
/// probability can express.
const MAX: i32 = 11 * UNIT;

/// `65536 / (1 + e^(-x / 256))` for `x` in `0..=MAX`.
static SQUASH: [u16; MAX as usize + 1] = {
    /// e^(-1/256), times 2^62.
    const STEP: u128 = 4_593_706_758_521_714_574;
    let mut table = [0; MAX as usize + 1];
    let mut power: u128 = 1 << 62;
    let mut x = 0;
    while x < table.len() {
        let p = (1u128 << 78) / ((1 << 62) + power);
        table[x] = if p > 65_535 { 65_535 } else { p as u16 };
        power = (power * STEP) >> 62;
        x += 1;
    }
    table
};

/// The inverse of [`squash`] for the upper 12 bits of a probability.
static STRETCH: [i16; 4096] = {
    let mut table = [0; 4096];
    let mut at = 2048;
    let mut x = 0;
    while at < 4096 {
        while x < MAX && (SQUASH[x as usize] as u32) < (at as u32 * 16 + 8) {
            x += 1;
        }
        table[at] = x as i16;
        table[4095 - at] = -(x as i16);
        at += 1;
    }
    table
};

/// Returns the probability, in units of 1/65536, for a value in the logistic domain. It is never 0
/// or 1.
#[inline]
pub(super) fn squash(x: i32) -> u32 {
    if x >= 0 {
        u32::from(SQUASH[x.min(MAX) as usize])
    } else {
        65_536 - u32::from(SQUASH[(-x).min(MAX) as usize])
    }
}

/// A probability that adapts to observed decisions. The n-th decision moves it by about 1/n of the
/// distance to 0 or 1, and later decisions by a fixed share of the distance.
#[derive(Clone, Copy)]
pub(super) struct Chance(u32);

impl Chance {
    /// The largest number of decisions remembered.
    const LIMIT: u32 = 255;

    /// Returns a probability, in units of 1/65536, that counts as much as `worth` observed
    /// decisions.
    pub(super) const fn new(p: u32, worth: u32) -> Self {
        Self(p << 16 | worth)
    }

    #[inline]
    pub(super) fn p(self) -> u32 {
        (self.0 >> 16).clamp(1, 65_535)
    }

    #[inline]
    pub(super) fn stretch(self) -> i32 {
        i32::from(STRETCH[(self.0 >> 20) as usize])
    }

    #[inline]
    pub(super) fn update(&mut self, bit: bool) {
        let count = self.0 & 0x3ff;
        let p = i64::from(self.0 >> 10);
        let target = if bit { (1 << 22) - 1 } else { 0 };
        let p = p + (((target - p) * i64::from(RECIPROCAL[count as usize])) >> 16);
        self.0 = (p as u32) << 10 | (count + u32::from(count < Self::LIMIT));
    }

    /// Codes a decision with this probability alone.
    #[inline]
    pub(super) fn code(&mut self, coder: &mut impl Coder, bit: bool) -> bool {
        let bit = coder.bit(bit, self.p());
        self.update(bit);
        bit
    }
}

/// `65536 / (n + 1.6)`.
static RECIPROCAL: [u16; Chance::LIMIT as usize + 1] = {
    let mut table = [0; Chance::LIMIT as usize + 1];
    let mut n = 0;
    while n < table.len() {
        table[n] = (655_360 / (10 * n + 16)) as u16;
        n += 1;
    }
    table
};

/// The weights of `N` opinions. An opinion is a probability in the logistic domain.
#[derive(Clone, Copy)]
pub(super) struct Mixer<const N: usize>([i32; N]);

impl<const N: usize> Mixer<N> {
    /// Creates a mixer with equal weights. A weight of 65536 means 1.
    pub(super) const fn new(weight: i32) -> Self {
        Self([weight; N])
    }

    /// Returns the mixed opinion, as a probability in units of 1/65536.
    #[inline]
    pub(super) fn mix(&self, opinions: &[i32; N]) -> u32 {
        let sum: i64 = self
            .0
            .iter()
            .zip(opinions)
            .map(|(&weight, &x)| i64::from(weight) * i64::from(x))
            .sum();
        squash((sum >> 16).clamp(-i64::from(MAX), i64::from(MAX)) as i32)
    }

    /// Shifts weight to the opinions that were right.
    #[inline]
    pub(super) fn update(&mut self, opinions: &[i32; N], p: u32, bit: bool, rate: i32) {
        let error = (i32::from(bit) << 16) - p as i32;
        for (weight, &x) in self.0.iter_mut().zip(opinions) {
            *weight =
                (*weight + ((x * (error >> 2) / 1024 * rate) >> 4)).clamp(-(8 << 16), 8 << 16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_the_functions() {
        for x in -MAX..=MAX {
            let exact = 65_536.0 / (1.0 + (-f64::from(x) / f64::from(UNIT)).exp());
            let p = squash(x);
            assert!(
                (f64::from(p) - exact).abs() <= 1.0 && 0 < p && p < 65_536,
                "{x}: {p}"
            );
        }
        for p in (8..65_536u32).step_by(16) {
            let p16 = f64::from(p) / 65_536.0;
            let exact = (p16 / (1.0 - p16)).ln() * f64::from(UNIT);
            let near = f64::from(Chance::new(p, 0).stretch());
            assert!(
                (near - exact).abs() <= 2.0 + exact.abs() / 16.0,
                "{p}: {near} {exact}"
            );
        }
    }

    #[test]
    fn a_chance_approaches_what_happens() {
        let mut chance = Chance::new(1 << 15, 1);
        (0..20_000).for_each(|at| chance.update(at % 10 == 0));
        assert!((5000..9000).contains(&chance.p()), "{}", chance.p());
        (0..10_000).for_each(|_| chance.update(true));
        assert!((65_400..65_536).contains(&chance.p()), "{}", chance.p());
        (0..10_000).for_each(|_| chance.update(false));
        assert!((1..100).contains(&chance.p()), "{}", chance.p());
    }
}
