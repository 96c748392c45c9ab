//! Chooses blocks that prime the model of a long stream.
//!
//! A predictor that began each block with empty tables would learn the same patterns again in each
//! block. So a predictor begins with the tables that it has learnt from a few blocks, which are
//! spread evenly over the stream. These blocks are coded first, each by a model that knows the
//! earlier priming blocks. All other blocks are coded by a model that knows all priming blocks.

use crate::block::{self, Nesting};
use crate::blocks::Directory;
use crate::predicted::{self, Model};
use crate::{BLOCK, Codec, StreamError, varint};

/// The blocks that prime the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Primer {
    /// The number of priming blocks.
    count: u64,
    /// The total number of blocks.
    blocks: u64,
}

impl Primer {
    /// The binary logarithm of the largest number of blocks that prime a model.
    const MOST_LOG: u8 = 3;
    /// The binary logarithm of the largest number of blocks that are chosen. It is small because a
    /// request for a single value waits for all of them.
    const CHOSEN_LOG: u32 = 2;

    /// Chooses the priming blocks for a stream of at least two blocks.
    pub(crate) fn choose(blocks: u64) -> Self {
        let log = (blocks / 3).max(1).ilog2().min(Self::CHOSEN_LOG);
        Self {
            count: 1 << log,
            blocks,
        }
    }

    /// Returns the tag's parameter, which is never 0.
    pub(crate) fn parameter(self) -> u8 {
        1 + self.count.ilog2() as u8
    }

    /// Decodes the tag's parameter, which is not 0.
    pub(crate) fn from_parameter(parameter: u8, blocks: u64) -> Result<Self, StreamError> {
        let log = parameter - 1;
        if log > Self::MOST_LOG || 1 << log >= blocks {
            return Err(StreamError::Malformed(
                "more blocks to learn from than exist",
            ));
        }
        Ok(Self {
            count: 1 << log,
            blocks,
        })
    }

    /// Returns the priming blocks, in order.
    pub(crate) fn indices(self) -> impl Iterator<Item = u64> {
        // Dividing first avoids an overflow in long streams.
        let (step, rest) = (self.blocks / self.count, self.blocks % self.count);
        (0..self.count).map(move |at| at * step + at * rest / self.count)
    }

    /// Returns the untrained model.
    pub(crate) fn fresh(self) -> Model {
        Model::fresh((self.count as usize + 1) * BLOCK)
    }

    /// Returns the model for a block. For a priming block, the model knows the earlier priming
    /// blocks. For any other block, it knows all priming blocks.
    ///
    /// This method takes the time to decode those priming blocks and learn from them.
    pub(crate) fn model(
        self,
        directory: &Directory<'_>,
        before: Option<u64>,
    ) -> Result<Model, StreamError> {
        let mut model = self.fresh();
        let mut values = [0; BLOCK];
        for index in self.indices().take_while(|&index| Some(index) != before) {
            // No priming block is the last block, which is the only block that may be shorter.
            decode(directory.block(index), &mut values, || Ok(model.clone()))?;
            model.train(&values);
        }
        Ok(model)
    }

    /// Whether a block primes the model.
    pub(crate) fn contains(self, index: u64) -> bool {
        self.indices().any(|other| other == index)
    }
}

/// Decodes a block, with a model if it is predicted.
pub(crate) fn decode(
    bytes: &[u8],
    out: &mut [u64],
    model: impl FnOnce() -> Result<Model, StreamError>,
) -> Result<(), StreamError> {
    let mut input = bytes;
    match block::untag(varint::byte(&mut input)?)? {
        (Codec::Predicted, parameter) => predicted::decode(&mut input, parameter, model()?, out),
        _ => {
            input = bytes;
            block::decode(&mut input, out, Nesting::default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_primes_nothing() {
        for blocks in (2..100).chain([1 << 20, u64::MAX >> 10]) {
            let primer = Primer::choose(blocks);
            let indices: Vec<_> = primer.indices().collect();
            assert!(indices.is_sorted_by(|a, b| a < b), "{blocks}: {indices:?}");
            assert!(indices.iter().all(|&index| index + 1 < blocks));
            assert_eq!(
                Primer::from_parameter(primer.parameter(), blocks),
                Ok(primer)
            );
        }
    }
}
