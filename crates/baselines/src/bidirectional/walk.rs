//! Steps through a compressed stream, in both directions.

use std::collections::VecDeque;

use super::predictor::Method;
use super::side::Side;

/// A compressed stream that contains a window of uncompressed values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bidirectional {
    /// The values left of the window, coded by right contexts.
    left: Side,
    window: VecDeque<u64>,
    /// The values right of the window, coded by left contexts.
    right: Side,
    width: u32,
    /// The largest total size of both sides so far, in bits.
    peak: u64,
}

impl Bidirectional {
    /// Compresses a stream and walks back to its beginning, as in Figure 12. Time is linear.
    pub fn new(values: &[u64], method: Method) -> Self {
        let width = if values.iter().all(|&value| value <= u32::MAX.into()) {
            32
        } else {
            64
        };
        let (window, rest) = values.split_at(method.window().min(values.len()));
        let mut stream = Self {
            left: Side::new(method, width),
            window: window.iter().copied().collect(),
            right: Side::new(method, width),
            width,
            peak: 0,
        };
        for &value in rest {
            stream.window.push_back(value);
            if let Some(leaving) = stream.window.pop_front() {
                stream
                    .left
                    .compress(leaving, stream.window.make_contiguous());
            }
        }
        stream.peak = stream.left.bits();
        while stream.step_backward().is_some() {}
        stream
    }

    /// Returns the uncompressed values, in order.
    pub fn window(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.window.iter().copied()
    }

    /// Moves the window right by one place. Returns the value that enters it, or `None` at the end.
    /// Time: O(1).
    pub fn step_forward(&mut self) -> Option<u64> {
        let context: Vec<_> = self.window().rev().collect();
        let entering = self.right.uncompress(&context)?;
        self.window.push_back(entering);
        let leaving = self.window.pop_front()?;
        self.left.compress(leaving, self.window.make_contiguous());
        self.peak = self.peak.max(self.left.bits() + self.right.bits());
        Some(entering)
    }

    /// Moves the window left by one place. Returns the value that enters it, or `None` at the
    /// beginning. Time: O(1).
    pub fn step_backward(&mut self) -> Option<u64> {
        let entering = self.left.uncompress(self.window.make_contiguous())?;
        self.window.push_front(entering);
        let leaving = self.window.pop_back()?;
        let context: Vec<_> = self.window().rev().collect();
        self.right.compress(leaving, &context);
        self.peak = self.peak.max(self.left.bits() + self.right.bits());
        Some(entering)
    }

    /// Returns the current size in bits of both sides and the window. As in the paper, tables do
    /// not count.
    pub fn bits(&self) -> u64 {
        self.left.bits() + self.right.bits() + self.window.len() as u64 * u64::from(self.width)
    }

    /// Returns the number of bits to allocate so that the window can go anywhere. This covers the
    /// paper's `Strm` with its buffer, and the window. The number is exact, while Figure 12 rounds
    /// it up.
    pub fn allocated_bits(&self) -> u64 {
        self.peak + self.window.len() as u64 * u64::from(self.width)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
