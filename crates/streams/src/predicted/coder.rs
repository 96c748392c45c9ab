//! A binary range coder (Martin 1979, in the binary form of Rissanen and Langdon's arithmetic
//! coding), 64 bits wide, with words of 32 bits.

/// A probability that adapts to the decisions made with it.
///
/// The upper 22 bits are the probability of `true`. The lower 10 bits count the decisions, because
/// early decisions weigh most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probability(u32);

impl Probability {
    /// The probability before any decision.
    pub(super) const EVEN: Self = Self(1 << 31);
    const COUNT: u32 = (1 << 10) - 1;
    /// After this many decisions, the weight of each further decision is one divided by this
    /// number.
    const LIMIT: u32 = 60;

    /// Returns the probability in units of 1/65536. It is never 0 or 65536.
    #[inline]
    fn share(self) -> u64 {
        u64::from(self.0 >> 16).clamp(16, 65_536 - 16)
    }

    #[inline(always)]
    fn adapt(&mut self, bit: bool) {
        let count = self.0 & Self::COUNT;
        let share = self.0 >> 10;
        let weight = WEIGHTS[count as usize % WEIGHTS.len()];
        // The bits of an escaped number are unpredictable, so this code avoids a branch.
        let least = u32::from(bit).wrapping_neg() & ((1 << 22) - 1);
        let step = (u64::from(least.abs_diff(share)) * weight) >> 16;
        let sign = u32::from(!bit).wrapping_neg();
        let share = share.wrapping_add((step as u32 ^ sign).wrapping_sub(sign));
        self.0 = share << 10 | (count + u32::from(count < Self::LIMIT));
    }
}

/// The weight of a decision by the number of earlier decisions: `65536 / (count + 1.6)`.
const WEIGHTS: [u64; 64] = {
    let mut weights = [0; 64];
    let mut count = 0;
    while count < 64 {
        weights[count] = 655_360 / (10 * count as u64 + 16);
        count += 1;
    }
    weights
};

/// Makes one decision after another. An [`Encoder`] writes the given decisions, a [`Decoder`]
/// recovers them, and a [`Trainer`] only lets the model learn. All three use the same model through
/// this interface, so they cannot disagree.
pub(super) trait Coder {
    /// Makes a decision that is true with probability `share / 65536`. A decoder ignores `bit`.
    fn decide(&mut self, bit: bool, share: u64) -> bool;

    /// Makes a decision with a probability that learns from it.
    #[inline(always)]
    fn bit(&mut self, bit: bool, probability: &mut Probability) -> bool {
        let bit = self.decide(bit, probability.share());
        probability.adapt(bit);
        bit
    }

    /// Codes the lowest `count` bits of a number, `count <= 16`. All values are equally likely.
    fn few(&mut self, value: u64, count: u32) -> u64;

    /// Codes the lowest `count` bits of a number. All values are equally likely.
    #[inline]
    fn raw(&mut self, value: u64, count: u32) -> u64 {
        let (mut sum, mut left) = (0, count);
        while left > 0 {
            let taken = left.min(16);
            left -= taken;
            sum = sum << taken | self.few(value >> left & ((1 << taken) - 1), taken);
        }
        sum
    }
}

/// A coder that writes nothing.
pub(super) struct Trainer;

impl Coder for Trainer {
    #[inline(always)]
    fn decide(&mut self, bit: bool, _: u64) -> bool {
        bit
    }

    #[inline]
    fn few(&mut self, value: u64, _: u32) -> u64 {
        value
    }
}

/// Appends decisions to `bytes`. The interval is `[low, low + range)`, where `range >= 2^32` before
/// each decision.
pub(super) struct Encoder<'b> {
    low: u64,
    range: u64,
    bytes: &'b mut Vec<u8>,
}

impl<'b> Encoder<'b> {
    pub(super) fn new(bytes: &'b mut Vec<u8>) -> Self {
        Self {
            low: 0,
            range: u64::MAX,
            bytes,
        }
    }

    /// Returns the number of bytes that are already determined.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds to `low`. A carry propagates into bytes already written, whose value as a fraction
    /// stays below 1.
    #[inline]
    fn add(&mut self, amount: u64) {
        let (low, carry) = self.low.overflowing_add(amount);
        self.low = low;
        if carry {
            self.carry();
        }
    }

    #[cold]
    fn carry(&mut self) {
        for byte in self.bytes.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }

    /// Writes a word once it is determined.
    #[inline(always)]
    fn widen(&mut self) {
        if self.range < 1 << 32 {
            let word = (self.low >> 32) as u32;
            self.bytes.extend_from_slice(&word.to_be_bytes());
            self.low <<= 32;
            self.range <<= 32;
        }
    }

    /// Writes enough bytes to identify the interval if zeros follow.
    pub(super) fn finish(mut self) {
        for kept in 0..=8 {
            let mask = u64::MAX.checked_shr(8 * kept).unwrap_or(0);
            let rounded = self.low.wrapping_add(mask) & !mask;
            if rounded.wrapping_sub(self.low) < self.range {
                self.add(rounded.wrapping_sub(self.low));
                let low = self.low.to_be_bytes();
                self.bytes.extend_from_slice(&low[..kept as usize]);
                return;
            }
        }
    }
}

impl Coder for Encoder<'_> {
    #[inline(always)]
    fn decide(&mut self, bit: bool, share: u64) -> bool {
        let split = (self.range >> 16) * share;
        // Avoid a branch here, as in `adapt`.
        let no = u64::from(!bit).wrapping_neg();
        let below = split & no;
        self.add(below);
        self.range = (split ^ no).wrapping_sub(no).wrapping_add(self.range & no);
        self.widen();
        bit
    }

    #[inline]
    fn few(&mut self, value: u64, count: u32) -> u64 {
        self.range >>= count;
        self.add(self.range * value);
        self.widen();
        value
    }
}

/// Recovers decisions. Zeros follow the end of the bytes.
pub(super) struct Decoder<'a> {
    /// The distance of the bytes' value from the encoder's `low`.
    offset: u64,
    range: u64,
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self {
            offset: 0,
            range: u64::MAX,
            rest: bytes,
        };
        decoder.offset = decoder.word() << 32;
        decoder.offset |= decoder.word();
        decoder
    }

    /// Reads a word if it is needed.
    #[inline(always)]
    fn widen(&mut self) {
        if self.range < 1 << 32 {
            self.offset = self.offset << 32 | self.word();
            self.range <<= 32;
        }
    }

    #[inline]
    fn word(&mut self) -> u64 {
        if let Some((word, rest)) = self.rest.split_first_chunk() {
            self.rest = rest;
            return u64::from(u32::from_be_bytes(*word));
        }
        let mut word = [0; 4];
        word[..self.rest.len()].copy_from_slice(self.rest);
        self.rest = &[];
        u64::from(u32::from_be_bytes(word))
    }
}

impl Coder for Decoder<'_> {
    #[inline(always)]
    fn decide(&mut self, _: bool, share: u64) -> bool {
        let split = (self.range >> 16) * share;
        let bit = self.offset < split;
        if bit {
            self.range = split;
        } else {
            self.offset = self.offset.wrapping_sub(split);
            self.range -= split;
        }
        self.widen();
        bit
    }

    #[inline]
    fn few(&mut self, _: u64, count: u32) -> u64 {
        self.range >>= count;
        // An encoder's bytes are below the limit.
        let value = (self.offset / self.range).min((1 << count) - 1);
        self.offset = self.offset.wrapping_sub(value * self.range);
        self.widen();
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bits;

    proptest! {
        #[test]
        fn decisions_come_back(decisions in prop::collection::vec((any::<bool>(), 16..65_520u64), 0..2000)) {
            let mut bytes = vec![1, 255];
            let mut encoder = Encoder::new(&mut bytes);
            for &(bit, share) in &decisions {
                encoder.decide(bit, share);
                encoder.raw(share, share as u32 % 65);
            }
            encoder.finish();
            prop_assert_eq!(&bytes[..2], &[1, 255]);
            let mut decoder = Decoder::new(&bytes[2..]);
            for &(bit, share) in &decisions {
                prop_assert_eq!(decoder.decide(!bit, share), bit);
                let count = share as u32 % 65;
                prop_assert_eq!(decoder.raw(0, count), share & bits::mask(count));
            }
        }
    }

    #[test]
    fn a_decision_costs_its_information() {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes);
        let mut probability = Probability::EVEN;
        for at in 0..100_000 {
            encoder.bit(at % 100 != 0, &mut probability);
        }
        encoder.finish();
        let entropy = 100_000.0 * 0.0808 / 8.0;
        assert!(
            (bytes.len() as f64 / entropy - 1.0).abs() < 0.2,
            "{}",
            bytes.len()
        );
    }
}
