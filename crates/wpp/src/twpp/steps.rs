//! Converts timestamps back to the sequence of blocks.

use afterimage_ids::BlockId;

use super::series::Entry;
use super::timestamped::{PackedBlocks, PackedEntries};

/// The minimum number of steps that are laid out at once.
const WINDOW: usize = 1 << 10;
/// Marks a step without a block.
const NOBODY: u32 = u32::MAX;

/// The blocks of a timestamped trace in the order of execution. Time: O(1) per step, amortised.
/// Memory is proportional to the blocks.
///
/// The steps are laid out one window at a time. Every block is entered at its timestamps in the
/// window. A window has at least one step for each block, so visiting all blocks for a window costs
/// constant time per step.
#[derive(Clone, Debug)]
pub struct Steps<'a> {
    /// The timestamp of the window's first step.
    begin: u64,
    /// The last timestamp of the trace.
    end: u64,
    /// The block of each step in the window, as an index into `cursors`.
    window: Vec<u32>,
    /// The next step's position in the window.
    at: usize,
    cursors: Vec<Cursor<'a>>,
}

/// The position in a block's timestamps.
#[derive(Clone, Debug)]
struct Cursor<'a> {
    block: BlockId,
    /// The rest of the current entry, or `None` after the last entry.
    entry: Option<Entry>,
    entries: PackedEntries<'a>,
}

impl<'a> Steps<'a> {
    /// Returns the steps of these blocks up to `end`.
    pub(super) fn new(blocks: PackedBlocks<'a>, end: u64) -> Self {
        let cursors = blocks.map(|(block, mut entries)| Cursor {
            block,
            entry: entries.next(),
            entries,
        });
        Self {
            begin: 1,
            end,
            window: Vec::new(),
            at: 0,
            cursors: cursors.collect(),
        }
    }

    /// Lays out the next window. If two blocks share a timestamp, another step has no block,
    /// because the numbers of timestamps and steps are equal.
    fn advance(&mut self) {
        self.begin += self.window.len() as u64;
        self.at = 0;
        let left = (self.end + 1).saturating_sub(self.begin);
        let length = left.min(WINDOW.max(self.cursors.len()) as u64);
        self.window.clear();
        self.window.resize(length as usize, NOBODY);
        for (k, cursor) in (0u32..).zip(&mut self.cursors) {
            cursor.lay_out(k, self.begin, &mut self.window);
        }
    }
}

impl Iterator for Steps<'_> {
    type Item = BlockId;

    fn next(&mut self) -> Option<BlockId> {
        if self.at == self.window.len() {
            self.advance();
        }
        let &k = self.window.get(self.at)?;
        let cursor = self.cursors.get(k as usize)?;
        self.at += 1;
        Some(cursor.block)
    }
}

impl Cursor<'_> {
    fn lay_out(&mut self, k: u32, begin: u64, window: &mut [u32]) {
        let end = begin + window.len() as u64;
        while let Some(entry) = &mut self.entry {
            let stop = end.min(entry.last + 1);
            let mut t = entry.first;
            while t < stop {
                window[(t - begin) as usize] = k;
                t += entry.step;
            }
            if entry.last >= end {
                entry.first = t;
                return;
            }
            self.entry = self.entries.next();
        }
    }
}
