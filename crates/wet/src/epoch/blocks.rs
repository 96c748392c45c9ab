//! Caches decoded blocks of streams.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_streams::{BLOCK, Cursor, Stream, StreamError};
use rustc_hash::FxBuildHasher;

/// The maximum number of blocks kept.
const MOST: usize = 1 << 14;

/// A stream of an epoch, and its position, which identifies its blocks.
#[derive(Debug)]
pub(crate) struct Coded<'a> {
    stream: Stream<'a>,
    place: StreamKey,
}

/// The epoch's number and the stream's address. The number is needed because another epoch may
/// later be at the same address.
type StreamKey = (u64, usize);

/// The position of a stream, and the number of its block.
type BlockKey = (StreamKey, u64);

/// The blocks decoded since the cache was last full. A full cache is cleared.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    known: RefCell<HashMap<BlockKey, Rc<[u64]>, FxBuildHasher>>,
}

impl<'a> Coded<'a> {
    pub(super) fn open(epoch: u64, bytes: &'a [u8], length: u64) -> Result<Self, StreamError> {
        Ok(Self {
            stream: Stream::open(bytes, length)?,
            // The address identifies the bytes, because they do not move while the epoch exists.
            place: (epoch, bytes.as_ptr().addr()),
        })
    }

    /// Returns a cursor before the first value. The cursor does not use the cache.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        self.stream.cursor()
    }

    pub(super) fn len(&self) -> u64 {
        self.stream.len()
    }

    /// Returns a block, by its position.
    pub(super) fn block(&self, index: u64, blocks: &Blocks) -> Result<Rc<[u64]>, StreamError> {
        if let Some(known) = blocks.known.borrow().get(&(self.place, index)) {
            return Ok(Rc::clone(known));
        }
        let mut cursor = self.stream.cursor();
        cursor.seek(index.saturating_mul(BLOCK as u64))?;
        let mut values = Vec::with_capacity(BLOCK);
        while values.len() < BLOCK
            && let Some(value) = cursor.next()?
        {
            values.push(value);
        }
        let values: Rc<[u64]> = values.into();
        let mut known = blocks.known.borrow_mut();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert((self.place, index), Rc::clone(&values));
        Ok(values)
    }

    /// Returns a value, by its position.
    pub(super) fn get(&self, index: u64, blocks: &Blocks) -> Result<Option<u64>, StreamError> {
        let block = self.block(index / BLOCK as u64, blocks)?;
        Ok(block.get((index % BLOCK as u64) as usize).copied())
    }

    /// Returns the number of values that are at most `value`. The values must be in ascending
    /// order. Reads O(log values) blocks.
    pub(super) fn after(&self, value: u64, blocks: &Blocks) -> Result<u64, StreamError> {
        let (mut low, mut high) = (0, self.len().div_ceil(BLOCK as u64));
        // Find the last block whose first value is at most `value`.
        while low < high {
            let middle = low + (high - low) / 2;
            let first = self.block(middle, blocks)?.first().copied();
            if first.is_some_and(|first| first <= value) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(block) = low.checked_sub(1) else {
            return Ok(0);
        };
        let values = self.block(block, blocks)?;
        let within = values.partition_point(|&other| other <= value);
        Ok(block * BLOCK as u64 + within as u64)
    }
}
