//! Records one bit per conditional branch.

use std::io::{self, Write};

/// The packed outcomes of branches. A branch with n targets takes ⌈log₂ n⌉ bits, so a conditional
/// branch takes one bit, and a jump takes none. With the program, these bits determine the executed
/// blocks, like the taken/not-taken packets of a processor's branch trace.
///
/// Bits fill each byte from its least significant end. The last byte is padded with zeros.
#[derive(Debug)]
pub struct BranchTrace<W> {
    sink: W,
    bits: u64,
    /// The bits that have not been written to the sink yet. Higher bits are zero.
    pending: u64,
    /// The number of these bits, which is less than 64.
    pending_bits: u32,
}

impl<W: Write> BranchTrace<W> {
    /// Creates an empty trace. Use [`std::io::sink`] if only the size matters.
    pub fn new(sink: W) -> Self {
        Self {
            sink,
            bits: 0,
            pending: 0,
            pending_bits: 0,
        }
    }

    /// Records that a branch with `ways` targets went to target `chosen`, counted from 0.
    ///
    /// # Errors
    /// Returns `InvalidInput`, and writes nothing, if `chosen >= ways`. Returns the sink's error if
    /// the sink fails. The trace is then unusable.
    #[inline]
    pub fn push(&mut self, ways: u32, chosen: u32) -> io::Result<()> {
        if chosen >= ways {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a branch of {ways} ways cannot choose way {chosen}"),
            ));
        }
        let width = ceil_log2(ways);
        self.pending |= u64::from(chosen) << self.pending_bits;
        let filled = self.pending_bits + width;
        self.bits += u64::from(width);
        if filled < 64 {
            self.pending_bits = filled;
            return Ok(());
        }
        self.sink.write_all(&self.pending.to_le_bytes())?;
        // Keeps the part of `chosen` that did not fit. A push adds at most 32 bits, so at least 32
        // were pending, and the shift is at most 32.
        self.pending = u64::from(chosen) >> (64 - self.pending_bits);
        self.pending_bits = filled - 64;
        Ok(())
    }

    /// Returns the size so far, in bits.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Returns the size so far, in bytes, including the padding of the last byte.
    pub fn bytes(&self) -> u64 {
        self.bits.div_ceil(8)
    }

    /// Writes the pending bits and returns the sink.
    ///
    /// # Errors
    /// Returns an error if the sink fails.
    pub fn finish(mut self) -> io::Result<W> {
        let bytes = self.pending_bits.div_ceil(8) as usize;
        self.sink.write_all(&self.pending.to_le_bytes()[..bytes])?;
        Ok(self.sink)
    }
}

/// Returns ⌈log₂ n⌉, the number of bits needed to distinguish `n` values. Returns 0 if `n` is 0 or
/// 1.
pub(crate) fn ceil_log2(n: u32) -> u32 {
    u32::BITS - n.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads the outcomes back, one bit at a time.
    fn unpack(bytes: &[u8], ways: &[u32]) -> Vec<u32> {
        let mut bits = bytes
            .iter()
            .flat_map(|byte| (0..8).map(move |at| u32::from(byte >> at & 1)));
        ways.iter()
            .map(|&n| (0..ceil_log2(n)).fold(0, |sum, at| sum | bits.next().unwrap() << at))
            .collect()
    }

    #[test]
    fn widths_are_the_logarithm_rounded_up() {
        let widths = [0, 1, 2, 3, 4, 5, 8, 9, 1 << 31, u32::MAX].map(ceil_log2);
        assert_eq!(widths, [0, 0, 1, 2, 2, 3, 3, 4, 31, 32]);
    }

    #[test]
    fn an_impossible_choice_is_refused_and_not_written() {
        let mut trace = BranchTrace::new(Vec::new());
        assert!(trace.push(0, 0).is_err());
        assert!(trace.push(3, 3).is_err());
        trace.push(2, 1).unwrap();
        assert_eq!((trace.bits(), trace.bytes()), (1, 1));
        assert_eq!(trace.finish().unwrap(), [1]);
    }

    proptest! {
        #[test]
        fn unpacking_gives_the_outcomes_back(
            events in prop::collection::vec(
                prop_oneof![4 => Just(2u32), 2 => 1u32..40, 1 => any::<u32>().prop_map(|n| n.max(1))]
                    .prop_flat_map(|ways| (Just(ways), 0..ways)),
                0..300,
            )
        ) {
            let mut trace = BranchTrace::new(Vec::new());
            for &(ways, chosen) in &events {
                trace.push(ways, chosen).unwrap();
            }
            let (ways, chosen): (Vec<u32>, Vec<u32>) = events.into_iter().unzip();
            let bits: u64 = ways.iter().map(|&n| f64::from(n).log2().ceil() as u64).sum();
            prop_assert_eq!(trace.bits(), bits);
            let bytes = trace.bytes();
            let packed = trace.finish().unwrap();
            prop_assert_eq!(packed.len() as u64, bytes);
            prop_assert_eq!(unpack(&packed, &ways), chosen);
        }
    }
}
