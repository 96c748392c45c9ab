//! Reads the host's actions from the log on demand.

use crate::locked;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;

use afterimage_ids::{FuncId, ImportId};
use afterimage_trace::{Event, HostRead, HostWrite, LogPlace, LogReader, RawValue, TraceError};

/// The maximum number of calls in a block.
const CALLS: usize = 512;
/// The approximate maximum size of a block's data in bytes.
const BYTES: usize = 256 << 10;
/// The approximate size in bytes of the blocks kept in memory.
const KEPT: usize = 128 << 20;
/// The maximum number of ranges that cover the host's reads in a block's calls.
const RANGES: usize = 64;

/// A call to a host function.
#[derive(Clone, Debug)]
pub struct HostCall {
    /// The imported function that was called.
    pub import: ImportId,
    /// The results. They are empty if the call did not return.
    pub results: Box<[RawValue]>,
    /// The host's writes to memory in the call, in order.
    pub writes: Box<[HostWrite]>,
    /// The host's reads of memory in the call, in order. They come before the writes.
    pub reads: Box<[HostRead]>,
}

/// The calls to the host, in order, numbered from 1.
///
/// Calls are read from the log on demand. Only the calls' positions in the log, and ranges that
/// cover the memory that they read, stay in memory. This takes at most about 2 KiB for each block
/// of calls.
#[derive(Debug, Default)]
pub struct HostCalls {
    log: Option<Mutex<LogReader>>,
    blocks: Vec<Block>,
    count: u64,
    by_itself: Vec<u64>,
    /// The host's calls to the program's functions, in order, with the arguments.
    entered: Vec<(FuncId, Vec<RawValue>)>,
    kept: Mutex<Kept>,
}

/// Consecutive calls in the log.
#[derive(Debug)]
struct Block {
    /// The position of the first call in the log.
    place: LogPlace,
    /// The number of the first call.
    first: u64,
    /// Ascending ranges that contain all bytes that the host read in these calls.
    reads: Vec<HostRead>,
}

/// A call, and the number of events before it.
type Logged = (u64, Arc<HostCall>);

/// Blocks in memory, and their total size in bytes.
#[derive(Debug, Default)]
struct Kept {
    blocks: HashMap<usize, Arc<[Logged]>>,
    bytes: usize,
}

impl HostCalls {
    /// Scans a log once.
    ///
    /// # Errors
    /// Returns an error if the log is damaged.
    pub fn read(mut log: LogReader) -> Result<Self, TraceError> {
        let mut all = Self::default();
        let mut open = Open::default();
        let mut place = log.place();
        let mut entered = None;
        while let Some(event) = log.next().transpose()? {
            if let Event::Enter { function, args } = event {
                entered = Some(function.as_u32());
                all.entered.push((function, args));
            } else if let Some(call) = HostCall::of(event) {
                all.count += 1;
                // The host calls exported functions, and an import may be exported.
                if entered.take() == Some(call.import.as_u32()) {
                    all.by_itself.push(all.count);
                    all.entered.pop();
                }
                let first = *open.first.get_or_insert((place, all.count));
                open.bytes += call.bytes();
                open.calls += 1;
                open.reads.extend_from_slice(&call.reads);
                if open.calls == CALLS || open.bytes >= BYTES {
                    all.close(first, &mut open);
                }
            } else {
                entered = None;
            }
            place = log.place();
        }
        if let Some(first) = open.first {
            all.close(first, &mut open);
        }
        all.log = Some(Mutex::new(log));
        Ok(all)
    }

    fn close(&mut self, (place, first): (LogPlace, u64), open: &mut Open) {
        let reads = cover(std::mem::take(&mut open.reads));
        self.blocks.push(Block {
            place,
            first,
            reads,
        });
        *open = Open::default();
    }

    /// Returns an argument of a call that the host made to one of the program's functions. Calls
    /// and arguments are numbered from 0. Returns `None` if the host called another function, or if
    /// the log lacks the bits of a reference.
    pub(super) fn argument(&self, call: usize, function: FuncId, index: u32) -> Option<(u64, u64)> {
        let (called, args) = self.entered.get(call)?;
        let arg = args.get(index as usize);
        bits(*arg.filter(|_| *called == function)?)
    }

    /// Returns the number of calls.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns a call by its number.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn get(&self, call: u64) -> Result<Option<Arc<HostCall>>, TraceError> {
        let block = self.blocks.partition_point(|block| block.first <= call);
        let Some(block) = block.checked_sub(1) else {
            return Ok(None);
        };
        let calls = self.block(block)?;
        let position = usize::try_from(call - self.blocks[block].first).ok();
        let found = position.and_then(|position| calls.get(position));
        Ok(found.map(|(_, call)| Arc::clone(call)))
    }

    /// Returns the number of calls among the first `events` events of the log.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn among(&self, events: u64) -> Result<u64, TraceError> {
        let block = self.blocks.partition_point(|b| b.place.events < events);
        let Some(block) = block.checked_sub(1) else {
            return Ok(0);
        };
        let calls = self.block(block)?;
        let before = calls.partition_point(|(event, _)| *event < events);
        Ok(self.blocks[block].first - 1 + before as u64)
    }

    /// Returns the first call, from a given number on, that reads a range accepted by `wanted`, and
    /// that call's number. `wanted` must also accept every range that contains an accepted range.
    /// Takes O(calls / 512 · ranges), plus the time to read the parts of the log that may have
    /// matching calls.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn next_reading(
        &self,
        from: u64,
        wanted: impl Fn(&HostRead) -> bool,
    ) -> Result<Option<(u64, Arc<HostCall>)>, TraceError> {
        let first = self.blocks.partition_point(|block| block.first <= from);
        for number in first.saturating_sub(1)..self.blocks.len() {
            let block = &self.blocks[number];
            if !block.reads.iter().any(&wanted) {
                continue;
            }
            for (number, (_, call)) in (block.first..).zip(self.block(number)?.iter()) {
                if number >= from && call.reads.iter().any(&wanted) {
                    return Ok(Some((number, Arc::clone(call))));
                }
            }
        }
        Ok(None)
    }

    /// Returns the number of calls made by the guest. The host itself made the other calls, to
    /// imports that are also exported.
    pub fn by_guest(&self) -> u64 {
        self.count - self.by_itself.len() as u64
    }

    /// Returns the number of a call among the guest's calls, from 1, or `None` if the host itself
    /// made the call.
    pub fn of_guest(&self, call: u64) -> Option<u64> {
        let before = self.by_itself.partition_point(|&other| other < call);
        let is_own = self.by_itself.get(before) == Some(&call);
        (!is_own).then_some(call - before as u64)
    }

    /// Returns the number, among all calls, of one of the guest's calls.
    pub fn number_of(&self, of_guest: u64) -> u64 {
        // The guest made all calls before the host's own call number i, except i of them. The
        // host's own calls are counted from 0.
        let (mut low, mut high) = (0, self.by_itself.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.by_itself[middle] - 1 - (middle as u64) < of_guest {
                low = middle + 1
            } else {
                high = middle
            }
        }
        of_guest + low as u64
    }

    fn block(&self, number: usize) -> Result<Arc<[Logged]>, TraceError> {
        if let Some(known) = locked(&self.kept).blocks.get(&number) {
            return Ok(Arc::clone(known));
        }
        let block = &self.blocks[number];
        let next = self.blocks.get(number + 1).map(|next| next.first);
        let count = next.unwrap_or(self.count + 1) - block.first;
        let mut calls = Vec::new();
        let mut bytes = 0;
        if let Some(log) = &self.log {
            let mut log = locked(log);
            log.go(block.place)?;
            while (calls.len() as u64) < count {
                let before = log.events();
                let Some(event) = log.next().transpose()? else {
                    break;
                };
                if let Some(call) = HostCall::of(event) {
                    bytes += call.bytes();
                    calls.push((before, Arc::new(call)));
                }
            }
        }
        let calls: Arc<[Logged]> = calls.into();
        let mut kept = locked(&self.kept);
        if kept.bytes + bytes > KEPT {
            *kept = Kept::default();
        }
        kept.bytes += bytes;
        kept.blocks.insert(number, Arc::clone(&calls));
        Ok(calls)
    }
}

/// A block that is still growing while the log is scanned.
#[derive(Default)]
struct Open {
    first: Option<(LogPlace, u64)>,
    calls: usize,
    bytes: usize,
    reads: Vec<HostRead>,
}

/// Returns a few ranges that contain all given ranges. Ranges with small gaps between them are
/// merged.
fn cover(mut all: Vec<HostRead>) -> Vec<HostRead> {
    all.retain(|read| read.length > 0);
    all.sort_unstable_by_key(|read| (read.memory, read.address));
    let mut joined: Vec<HostRead> = Vec::new();
    for read in all {
        match joined.last_mut() {
            Some(last) if gap(last, &read) == Some(0) => join(last, &read),
            _ => joined.push(read),
        }
    }
    if joined.len() <= RANGES {
        return joined;
    }
    let gaps = joined.windows(2).map(|pair| gap(&pair[0], &pair[1]));
    let mut gaps = Vec::from_iter(gaps.map(|gap| gap.unwrap_or(u64::MAX)));
    let nearest = gaps.len() + 1 - RANGES;
    let (_, &mut most, _) = gaps.select_nth_unstable(nearest - 1);
    let mut few: Vec<HostRead> = Vec::new();
    for read in joined {
        match few.last_mut() {
            Some(last) if gap(last, &read).is_some_and(|gap| gap <= most) => join(last, &read),
            _ => few.push(read),
        }
    }
    few
}

/// Returns the number of bytes between a range and a later range, or `None` if they are in
/// different memories.
fn gap(a: &HostRead, b: &HostRead) -> Option<u64> {
    let end = a.address.saturating_add(a.length);
    (a.memory == b.memory).then(|| b.address.saturating_sub(end))
}

fn join(a: &mut HostRead, b: &HostRead) {
    let end = a.address.saturating_add(a.length);
    let end = end.max(b.address.saturating_add(b.length));
    a.length = end - a.address;
}

impl HostCall {
    /// Returns the call that an event describes.
    fn of(event: Event) -> Option<Self> {
        Some(match event {
            Event::HostCall {
                import,
                results,
                writes,
                reads,
                ..
            } => Self {
                import,
                results: results.into(),
                writes: writes.into(),
                reads: reads.into(),
            },
            Event::HostStop { import, reads, .. } => Self {
                import,
                results: [].into(),
                writes: [].into(),
                reads: reads.into(),
            },
            _ => return None,
        })
    }

    /// Returns the approximate memory use in bytes.
    fn bytes(&self) -> usize {
        let writes = self.writes.iter();
        let writes: usize = writes.map(|write| write.bytes.len() + 48).sum();
        128 + writes + 24 * self.reads.len() + 32 * self.results.len()
    }

    /// Fills in the bytes that the call wrote, from an address on. Returns whether the call wrote
    /// all bytes of the range.
    pub(super) fn wrote(&self, memory: u32, address: u64, bytes: &mut [u8]) -> bool {
        (0..).zip(bytes).all(|(i, byte)| {
            let at = address.wrapping_add(i);
            // The last write to a byte determines its value.
            let mut writes = self.writes.iter().rev();
            let found = writes.find_map(|write| {
                let offset = usize::try_from(at.checked_sub(write.address)?).ok()?;
                let found = write.bytes.get(offset);
                found.filter(|_| write.memory == memory)
            });
            found.map(|found| *byte = *found).is_some()
        })
    }

    /// Returns the bits of a result.
    pub(super) fn result(&self, index: u32) -> Option<(u64, u64)> {
        bits(*self.results.get(index as usize)?)
    }
}

/// Returns the bits of a value in the log, or `None` for a reference that is only known not to be
/// null.
fn bits(value: RawValue) -> Option<(u64, u64)> {
    Some(match value {
        RawValue::I32(value) => (u64::from(value as u32), 0),
        RawValue::I64(value) => (value as u64, 0),
        RawValue::F32(bits) => (u64::from(bits), 0),
        RawValue::F64(bits) => (bits, 0),
        RawValue::V128(bits) => (bits as u64, (bits >> 64) as u64),
        RawValue::NullRef => (0, 0),
        RawValue::OpaqueRef => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{HostRead, RANGES, cover};

    fn range(address: u64, length: u64) -> HostRead {
        HostRead {
            memory: 0,
            address,
            length,
        }
    }

    #[test]
    fn a_cover_contains_all_and_is_small() {
        let spread = (0..300u64).map(|i| range(i * i % 7919 * 8, 1 + i % 13));
        let spread = Vec::from_iter(spread.chain([range(5, 0)]));
        let covered = cover(spread.clone());
        assert!(covered.len() <= RANGES, "{}", covered.len());
        for read in spread.iter().filter(|read| read.length > 0) {
            let holds = |c: &&HostRead| {
                c.address <= read.address && read.address + read.length <= c.address + c.length
            };
            assert_eq!(covered.iter().filter(holds).count(), 1, "{read:?}");
        }
        let apart = covered.windows(2);
        assert!(apart.into_iter().all(|pair| {
            let (a, b) = (&pair[0], &pair[1]);
            a.address + a.length < b.address
        }));
        // Nothing is merged if there are few ranges.
        assert_eq!(
            cover(vec![range(9, 2), range(4, 3)]),
            [range(4, 3), range(9, 2)]
        );
        assert_eq!(cover(vec![range(6, 3), range(4, 3)]), [range(4, 5)]);
    }
}
