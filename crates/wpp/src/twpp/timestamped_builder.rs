//! Builds the timestamped form while the blocks execute.

use afterimage_ids::BlockId;
use rustc_hash::FxHashMap;

use super::packed;
use super::series::Entry;
use super::series_builder::SeriesBuilder;
use super::timestamped::{TimestampedTrace, put_block};
use super::varint;

/// Builds a [`TimestampedTrace`] block by block. Memory is proportional to the series found.
#[derive(Clone, Debug, Default)]
pub struct TimestampedBuilder {
    steps: u64,
    index: FxHashMap<BlockId, usize>,
    blocks: Vec<(BlockId, PackedSeries)>,
    /// For each block, the index of its last successor, which is most likely to follow again.
    after: Vec<usize>,
    /// The index of the latest block.
    latest: usize,
}

/// The series of a block so far.
#[derive(Clone, Debug, Default)]
struct PackedSeries {
    latest: SeriesBuilder,
    after: u64,
    bytes: Vec<u8>,
}

impl TimestampedBuilder {
    /// Appends the next block. Time: O(1).
    pub fn push(&mut self, block: BlockId) {
        self.steps += 1;
        let likely = self.after.get(self.latest).copied().unwrap_or(0);
        let k = match self.blocks.get(likely) {
            Some(&(expected, _)) if expected == block => likely,
            _ => self.find(block),
        };
        self.latest = k;
        let series = &mut self.blocks[k].1;
        if let Some(done) = series.latest.push(self.steps) {
            series.put(&done);
        }
    }

    /// Returns the index of a block that was not predicted. Adds the block if it is new.
    fn find(&mut self, block: BlockId) -> usize {
        let k = *self.index.entry(block).or_insert_with(|| {
            self.blocks.push((block, PackedSeries::default()));
            self.after.push(0);
            self.blocks.len() - 1
        });
        if let Some(after) = self.after.get_mut(self.latest) {
            *after = k;
        }
        k
    }

    /// Returns the number of blocks executed.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the trace and clears the builder. Time: O(bytes + blocks log blocks).
    pub fn finish(&mut self) -> TimestampedTrace {
        self.index.clear();
        self.after.clear();
        self.latest = 0;
        self.blocks.sort_unstable_by_key(|&(block, _)| block);
        let mut bytes = Vec::new();
        varint::put(&mut bytes, self.steps);
        varint::put(&mut bytes, self.blocks.len() as u64);
        self.steps = 0;
        let mut last = None;
        for (block, mut series) in self.blocks.drain(..) {
            for entry in series.latest.finish().into_iter().flatten() {
                series.put(&entry);
            }
            put_block(&mut bytes, block, last);
            last = Some(block);
            varint::put(&mut bytes, series.bytes.len() as u64);
            bytes.extend_from_slice(&series.bytes);
        }
        TimestampedTrace::from_builder(bytes)
    }
}

impl PackedSeries {
    fn put(&mut self, entry: &Entry) {
        packed::put(&mut self.bytes, entry, self.after);
        self.after = entry.last;
    }
}
