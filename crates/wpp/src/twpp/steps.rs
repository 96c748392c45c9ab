//! From timestamps back to the sequence of blocks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use afterimage_ids::BlockId;

use super::series::Entry;
use super::timestamped::{PackedBlocks, PackedEntries};

/// The blocks of a timestamped trace in the order of execution.
///
/// A merge of the blocks' timestamps. A step whose timestamp belongs to the block that comes next in the heap costs
/// O(log blocks); that every timestamp is there exactly once is checked as it goes.
#[derive(Clone, Debug)]
pub struct Steps<'a> {
    time: u64,
    /// Every block's next timestamp, and which block.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    cursors: Vec<Cursor<'a>>,
}

/// Where a block's timestamps were read to.
#[derive(Clone, Debug)]
struct Cursor<'a> {
    block: BlockId,
    entry: Entry,
    entries: PackedEntries<'a>,
}

impl<'a> Steps<'a> {
    pub(super) fn new(blocks: PackedBlocks<'a>) -> Self {
        let mut next = BinaryHeap::new();
        let mut cursors = Vec::new();
        for (block, mut entries) in blocks {
            if let Some(entry) = entries.next() {
                next.push(Reverse((entry.first, cursors.len())));
                cursors.push(Cursor {
                    block,
                    entry,
                    entries,
                });
            }
        }
        Self {
            time: 0,
            next,
            cursors,
        }
    }
}

impl Iterator for Steps<'_> {
    type Item = BlockId;

    fn next(&mut self) -> Option<BlockId> {
        let mut top = self.next.peek_mut()?;
        let Reverse((time, k)) = *top;
        if time != self.time + 1 {
            return None;
        }
        self.time = time;
        let cursor = &mut self.cursors[k];
        match cursor.after(time) {
            Some(later) => *top = Reverse((later, k)),
            None => {
                std::collections::binary_heap::PeekMut::pop(top);
            }
        }
        Some(self.cursors[k].block)
    }
}

impl Cursor<'_> {
    /// The block's next timestamp after this one.
    fn after(&mut self, time: u64) -> Option<u64> {
        if time == self.entry.last {
            self.entry = self.entries.next()?;
            return Some(self.entry.first);
        }
        Some(time + self.entry.step)
    }
}
