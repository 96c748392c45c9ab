//! A binary range coder (Martin 1979, in the binary form of Rissanen and Langdon's arithmetic
//! coding), 64 bits wide.
//!
//! The interval is `[low, low + range)` with `range >= 2^32` before each decision, so a 16-bit
//! probability is never rounded to zero. A carry propagates back into bytes already written.

/// Codes one decision after another. An [`Encoder`] writes the given decisions, and a [`Decoder`]
/// recovers them.
///
/// Both use the same model through this interface, so the encoder and the decoder cannot disagree.
pub(super) trait Coder {
    /// Codes a decision that is true with probability `p / 65536`, `0 < p < 65536`. The encoder
    /// returns `bit`, and the decoder ignores it.
    fn bit(&mut self, bit: bool, p: u32) -> bool;

    /// Whether decoding has gone past the end of the bytes. This means that no encoder wrote them.
    fn exhausted(&self) -> bool;

    /// Codes the lowest `count` bits of a number, highest bit first. All values are equally likely.
    fn raw(&mut self, value: u64, count: u32) -> u64 {
        (0..count).rev().fold(0, |sum, at| {
            sum << 1 | u64::from(self.bit(value >> at & 1 == 1, 1 << 15))
        })
    }
}

/// Writes decisions.
pub(super) struct Encoder {
    low: u64,
    range: u64,
    bytes: Vec<u8>,
}

impl Encoder {
    pub(super) fn new() -> Self {
        Self {
            low: 0,
            range: u64::MAX,
            bytes: Vec::new(),
        }
    }

    /// Adds to `low`. An overflow is carried into the bytes. Their value as a fraction stays below
    /// 1.
    fn add(&mut self, amount: u64) {
        let (low, carry) = self.low.overflowing_add(amount);
        self.low = low;
        if carry {
            for byte in self.bytes.iter_mut().rev() {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
        }
    }

    /// Returns the fewest bytes that identify the interval if zeros follow them.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let kept = (1..=8).find(|kept| {
            let mask = u64::MAX.checked_shr(8 * kept).unwrap_or(0);
            (self.low.wrapping_add(mask) & !mask).wrapping_sub(self.low) < self.range
        });
        let kept = kept.unwrap_or(8);
        let mask = u64::MAX.checked_shr(8 * kept).unwrap_or(0);
        self.add(mask);
        self.bytes
            .extend_from_slice(&self.low.to_be_bytes()[..kept as usize]);
        self.bytes
    }
}

impl Coder for Encoder {
    #[inline]
    fn bit(&mut self, bit: bool, p: u32) -> bool {
        let split = (self.range >> 16) * u64::from(p);
        if bit {
            self.range = split;
        } else {
            self.add(split);
            self.range -= split;
        }
        if self.range < 1 << 32 {
            self.bytes
                .extend_from_slice(&((self.low >> 32) as u32).to_be_bytes());
            self.low <<= 32;
            self.range <<= 32;
        }
        bit
    }

    fn exhausted(&self) -> bool {
        false
    }
}

/// Recovers the decisions.
pub(super) struct Decoder<'a> {
    /// The distance of the bytes' value from the encoder's `low`.
    offset: u64,
    range: u64,
    bytes: &'a [u8],
    /// The number of bytes consumed, including zeros after the end.
    taken: usize,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self {
            offset: 0,
            range: u64::MAX,
            bytes,
            taken: 0,
        };
        decoder.offset = u64::from(decoder.word()) << 32;
        decoder.offset |= u64::from(decoder.word());
        decoder
    }

    fn word(&mut self) -> u32 {
        let rest = self.bytes.get(self.taken..).unwrap_or(&[]);
        self.taken += 4;
        match rest.first_chunk() {
            Some(word) => u32::from_be_bytes(*word),
            None => {
                let mut word = [0; 4];
                word[..rest.len()].copy_from_slice(rest);
                u32::from_be_bytes(word)
            }
        }
    }

    /// Whether bytes that no encoder would have written remain after the last decision.
    pub(super) fn has_rest(&self) -> bool {
        self.bytes.len() > self.taken
    }
}

impl Coder for Decoder<'_> {
    #[inline]
    fn bit(&mut self, _: bool, p: u32) -> bool {
        let split = (self.range >> 16) * u64::from(p);
        let bit = self.offset < split;
        if bit {
            self.range = split;
        } else {
            self.offset -= split;
            self.range -= split;
        }
        if self.range < 1 << 32 {
            self.offset = self.offset << 32 | u64::from(self.word());
            self.range <<= 32;
        }
        bit
    }

    fn exhausted(&self) -> bool {
        // An encoder writes between one and eight bytes after its last full word.
        self.taken >= self.bytes.len() + 8
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decisions_come_back(decisions in prop::collection::vec((any::<bool>(), 1..65_536u32), 0..2000)) {
            let mut encoder = Encoder::new();
            for &(bit, p) in &decisions {
                encoder.bit(bit, p);
            }
            let bytes = encoder.finish();
            let mut decoder = Decoder::new(&bytes);
            for &(bit, p) in &decisions {
                prop_assert_eq!(decoder.bit(!bit, p), bit);
            }
            prop_assert!(!decoder.exhausted() && !decoder.has_rest());
        }
    }

    #[test]
    fn a_carry_runs_through_full_bytes() {
        let mut encoder = Encoder {
            low: u64::MAX - 5,
            range: 1 << 40,
            bytes: vec![1, 0xff, 0xff],
        };
        encoder.add(10);
        assert_eq!((encoder.low, encoder.bytes), (4, vec![2, 0, 0]));
    }

    #[test]
    fn a_decision_costs_its_information() {
        let mut encoder = Encoder::new();
        for at in 0..100_000 {
            encoder.bit(at % 100 != 0, 64_881);
        }
        let entropy = 100_000.0 * 0.0808 / 8.0;
        assert!((encoder.finish().len() as f64 / entropy - 1.0).abs() < 0.01);
    }
}
