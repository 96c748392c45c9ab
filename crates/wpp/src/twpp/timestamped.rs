//! Stores a path trace as the times at which each block executed (Zhang and Gupta 2001, section 2).

use afterimage_ids::BlockId;

use super::packed;
use super::series::{Entry, Series};
use super::steps::Steps;
use super::varint;

/// A path trace as a mapping of blocks to the timestamps 1, 2, 3, … at which they execute. This
/// is the paper's compacted TWPP form.
///
/// The trace is stored as in a file. The numbers of steps and blocks come first. The blocks follow,
/// ascending. Each block is stored as its distance from the previous block, the size of its entries
/// in bytes, and the entries. Two path traces are equal if and only if their bytes are equal. `B`
/// contains the bytes. A trace read from a file may borrow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimestampedTrace<B = Box<[u8]>> {
    bytes: B,
}

/// The reason why bytes are not a timestamped path trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a timestamped path trace: {0}")]
pub struct BadTrace(pub(super) &'static str);

impl TimestampedTrace {
    /// Converts a sequence of blocks to a timestamped trace. Time: O(n). Memory is proportional to
    /// the series, not to the steps.
    pub fn of(blocks: impl IntoIterator<Item = BlockId>) -> Self {
        let mut builder = super::TimestampedBuilder::default();
        for block in blocks {
            builder.push(block);
        }
        builder.finish()
    }

    /// Wraps bytes from a builder, in which blocks and entries ascend.
    pub(super) fn from_builder(bytes: Vec<u8>) -> Self {
        Self {
            bytes: bytes.into(),
        }
    }
}

impl<B: AsRef<[u8]>> TimestampedTrace<B> {
    /// Wraps bytes from a file. Time: O(bytes).
    ///
    /// Checks that blocks and their timestamps ascend, and that both the number of timestamps and
    /// the last timestamp equal the number of steps. Only expanding the trace shows whether two
    /// blocks share a timestamp; see [`Self::expand`].
    pub(super) fn from_file(bytes: B) -> Result<Self, BadTrace> {
        let trace = Self { bytes };
        let mut rest = trace.as_bytes();
        let steps = varint::take(&mut rest).ok_or(BadTrace("it has no length"))?;
        let blocks = varint::take(&mut rest).ok_or(BadTrace("it has no number of blocks"))?;
        let (mut id, mut total, mut latest) = (None, 0u64, 0);
        for _ in 0..blocks {
            id = Some(take_block(&mut rest, id).ok_or(BadTrace("its blocks do not ascend"))?);
            let series = take_series(&mut rest).ok_or(BadTrace("a series is cut off"))?;
            if series.is_empty() {
                return Err(BadTrace("a block has no timestamps"));
            }
            let measured = packed::measure(series);
            let (count, after) = measured.ok_or(BadTrace("a series is malformed"))?;
            total = total.saturating_add(count);
            latest = latest.max(after);
        }
        if !rest.is_empty() {
            return Err(BadTrace("bytes follow its last block"));
        }
        if total != steps || latest != steps {
            return Err(BadTrace("its timestamps are not 1 to its length"));
        }
        Ok(trace)
    }

    /// Returns the number of steps, which is the last timestamp.
    pub fn len(&self) -> u64 {
        varint::take(&mut self.as_bytes()).unwrap_or(0)
    }

    /// Whether nothing is executed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the blocks, ascending, with their timestamps.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockId, Series)> {
        self.packed()
            .map(|(block, entries)| (block, Series::from_entries(entries.collect())))
    }

    /// Returns the timestamps of a block, or `None` if the block does not execute. Time: O(bytes).
    pub fn timestamps(&self, block: BlockId) -> Option<Series> {
        self.blocks()
            .find_map(|(b, series)| (b == block).then_some(series))
    }

    /// Returns the blocks in the order of execution, one per step. Memory is proportional to the
    /// blocks.
    ///
    /// Ends early if a trace from a damaged file has no block for a timestamp. [`Self::expand`]
    /// reports this as an error.
    pub fn steps(&self) -> Steps<'_> {
        Steps::new(self.packed(), self.len())
    }

    /// Returns the blocks in the order of execution.
    ///
    /// # Errors
    /// Returns an error if two blocks share a timestamp, which happens only in a trace from a
    /// damaged file.
    pub fn expand(&self) -> Result<Vec<BlockId>, BadTrace> {
        let mut blocks = Vec::new();
        blocks.extend(self.steps());
        if blocks.len() as u64 != self.len() {
            return Err(BadTrace("two blocks share a timestamp"));
        }
        Ok(blocks)
    }

    /// Returns the number of four-byte words in the paper's form. It stores the number of blocks
    /// and, for each block, its id, the number of integers in its series, and these integers.
    pub fn words(&self) -> u64 {
        let of_block = |entries: PackedEntries<'_>| entries.map(|e| e.width()).sum::<u64>();
        1 + self.packed().map(|(_, e)| 2 + of_block(e)).sum::<u64>()
    }

    /// Returns the bytes as in a file.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Returns the same trace, which now owns its bytes.
    pub fn into_owned(self) -> TimestampedTrace
    where
        B: Into<Box<[u8]>>,
    {
        TimestampedTrace {
            bytes: self.bytes.into(),
        }
    }

    /// Returns the blocks and their entries, still packed.
    pub(super) fn packed(&self) -> PackedBlocks<'_> {
        let mut rest = self.as_bytes();
        let _steps = varint::take(&mut rest);
        let blocks = varint::take(&mut rest).unwrap_or(0);
        PackedBlocks {
            rest,
            blocks,
            last: None,
        }
    }
}

/// The blocks of a trace and their packed entries.
#[derive(Clone, Debug)]
pub(super) struct PackedBlocks<'a> {
    rest: &'a [u8],
    blocks: u64,
    last: Option<BlockId>,
}

/// The entries of one block, packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedEntries<'a> {
    rest: &'a [u8],
    after: u64,
}

impl<'a> Iterator for PackedBlocks<'a> {
    type Item = (BlockId, PackedEntries<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.blocks = self.blocks.checked_sub(1)?;
        let block = take_block(&mut self.rest, self.last)?;
        self.last = Some(block);
        let rest = take_series(&mut self.rest)?;
        Some((block, PackedEntries { rest, after: 0 }))
    }
}

impl Iterator for PackedEntries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let entry = packed::take(&mut self.rest, self.after)?;
        self.after = entry.last;
        Some(entry)
    }
}

/// Appends a block that follows another in ascending order.
pub(super) fn put_block(bytes: &mut Vec<u8>, block: BlockId, last: Option<BlockId>) {
    let next = last.map_or(0, |b| u64::from(b.as_u32()) + 1);
    varint::put(bytes, u64::from(block.as_u32()) - next);
}

/// Takes a block that follows another in ascending order.
pub(super) fn take_block(bytes: &mut &[u8], last: Option<BlockId>) -> Option<BlockId> {
    let next = last.map_or(0, |b| u64::from(b.as_u32()) + 1);
    block_of(next.checked_add(varint::take(bytes)?)?)
}

/// Takes the entries of a block.
fn take_series<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint::take(bytes)?).ok()?;
    let (series, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(series)
}

/// Returns the block with this number, if the number is valid.
pub(super) fn block_of(number: u64) -> Option<BlockId> {
    number_below_reserved(number).map(BlockId::from_u32)
}

/// Converts a number to an entity's number. Returns `None` if it is too large. The greatest 32-bit
/// number is reserved.
pub(super) fn number_below_reserved(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|&n| n < u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twpp::{CompactPath, Dictionary, DynamicCfg, FunctionTraces};

    fn of_bytes(bytes: &[u8]) -> Result<TimestampedTrace, BadTrace> {
        TimestampedTrace::from_file(bytes.into())
    }

    /// Returns a trace of `steps` steps with these blocks, each given by its distance and its
    /// packed entries.
    fn trace(steps: u8, blocks: &[(u8, &[u8])]) -> Result<TimestampedTrace, BadTrace> {
        let mut bytes = vec![steps, blocks.len() as u8];
        for (distance, entries) in blocks {
            bytes.extend([*distance, entries.len() as u8]);
            bytes.extend_from_slice(entries);
        }
        of_bytes(&bytes)
    }

    /// Returns a singleton at this distance from the previous timestamp.
    const fn single(distance: u8) -> u8 {
        distance << 1 | 1
    }

    #[test]
    fn proper_bytes_are_a_trace() {
        // Block 0 executes at 1, 3, 5 and 7, and block 2 at 2, 4 and 6.
        let odd = [2, 6, 5];
        let even = [4, 4, 5];
        let trace = trace(7, &[(0, &odd), (1, &even)]).unwrap();
        let blocks = trace.blocks();
        let shown: Vec<_> = blocks.map(|(b, s)| (b.as_u32(), s.to_string())).collect();
        assert_eq!(shown, [(0, "1:7:2".to_owned()), (2, "2:6:2".to_owned())]);
        assert_eq!(trace.expand().unwrap().len(), 7);
    }

    #[test]
    fn every_rule_of_a_trace_can_fire() {
        let of = |what| Err(BadTrace(what));
        let malformed = of("a series is malformed");
        assert_eq!(trace(1, &[(0, &[single(0)])]), malformed, "timestamp 0");
        assert_eq!(trace(2, &[(0, &[single(1), single(0)])]), malformed);
        assert_eq!(trace(2, &[(0, &[2])]), malformed, "no end mark");
        assert_eq!(trace(2, &[(0, &[2, 2, 3])]), malformed, "l:h:1");
        assert_eq!(trace(1, &[(0, &[2, 1])]), malformed, "h = l");
        let far = [
            2, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 7,
        ];
        assert_eq!(
            trace(4, &[(0, &far)]),
            malformed,
            "h needs more than 63 bits"
        );
        let numbers = of("its timestamps are not 1 to its length");
        assert_eq!(trace(3, &[(0, &[single(1)]), (0, &[single(3)])]), numbers);
        assert_eq!(trace(2, &[(0, &[single(1)]), (0, &[single(3)])]), numbers);
        assert_eq!(trace(1, &[(0, &[])]), of("a block has no timestamps"));
        let cut = of_bytes(&[1, 1, 0, 2, 3]);
        assert_eq!(cut, of("a series is cut off"));
        let long = of_bytes(&[1, 1, 0, 1, 3, 0]);
        assert_eq!(long, of("bytes follow its last block"));
        let reserved = [1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 3];
        let ascend = of("its blocks do not ascend");
        assert_eq!(of_bytes(&reserved), ascend);
        assert_eq!(of_bytes(&[]), of("it has no length"));
        let no_number = of("it has no number of blocks");
        assert_eq!(of_bytes(&[1]), no_number);
    }

    /// Block 0 executes at 1 and 3, block 1 at 1. There are as many timestamps as steps, but no
    /// block at 2.
    #[test]
    fn a_shared_timestamp_is_found_by_all_that_expand() {
        let shared = trace(3, &[(0, &[single(1), single(2)]), (0, &[single(1)])]).unwrap();
        let what = BadTrace("two blocks share a timestamp");
        assert_eq!(shared.expand(), Err(what));
        let graph = DynamicCfg::of(&shared, &Dictionary::default());
        assert_eq!(graph, Err(what));
        let function = FunctionTraces {
            function: afterimage_ids::FuncId::from_u32(0),
            traces: vec![shared],
            dictionaries: vec![Dictionary::default()],
            paths: vec![CompactPath {
                trace: 0,
                dictionary: 0,
                calls: 1,
                unfinished: 0,
            }],
        };
        assert_eq!(function.expand(0), Err(what));
    }
}
