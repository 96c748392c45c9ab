//! One bit per conditional branch.

use std::io::{self, Write};

/// The outcomes of the branches alone, packed: ⌈log₂ n⌉ bits for a branch of n ways, so one bit for a conditional
/// branch and none for a jump. Whoever knows the program finds the blocks again from these bits, as from
/// the taken/not-taken packets of processors' branch traces.
///
/// Bits fill each byte from its least significant end; the last byte is padded with zeros.
#[derive(Debug)]
pub struct BranchTrace<W> {
    sink: W,
    bits: u64,
    /// The bits that are not yet in the sink, fewer than 64; those above `pending_bits` are zero.
    pending: u64,
    pending_bits: u32,
}

impl<W: Write> BranchTrace<W> {
    /// The empty trace. [`std::io::sink`] is a sink for when only the size matters.
    pub fn new(sink: W) -> Self {
        Self {
            sink,
            bits: 0,
            pending: 0,
            pending_bits: 0,
        }
    }

    /// A branch with `ways` targets went to target `chosen`, counted from 0.
    ///
    /// # Errors
    /// `InvalidInput` unless `chosen < ways`, with nothing written; else the sink's, after which the trace
    /// is of no use.
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
        // What of `chosen` did not fit. At most 32 bits come at a time, so that at least 32 were pending and
        // the shift is at most 32.
        self.pending = u64::from(chosen) >> (64 - self.pending_bits);
        self.pending_bits = filled - 64;
        Ok(())
    }

    /// How many bits the branches so far take.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// The trace's size so far, the last byte's padding included.
    pub fn bytes(&self) -> u64 {
        self.bits.div_ceil(8)
    }

    /// Writes what is pending and gives the sink back.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(mut self) -> io::Result<W> {
        let bytes = self.pending_bits.div_ceil(8) as usize;
        self.sink.write_all(&self.pending.to_le_bytes()[..bytes])?;
        Ok(self.sink)
    }
}

/// ⌈log₂ n⌉, the bits that tell `n` things apart; 0 for none or one.
pub(crate) fn ceil_log2(n: u32) -> u32 {
    u32::BITS - n.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads the outcomes back, a bit at a time.
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
