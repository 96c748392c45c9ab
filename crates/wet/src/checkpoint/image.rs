//! Restores past contents of memory on demand.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use afterimage_machine::{Checkpoint, Initial, Machine, MachineError, Memory, State};
use afterimage_trace::{Event, HostWrite};

use super::group::bytes_of;
use super::set::{Set, Span};
use super::sites::Site;
use super::touched::bits;
use super::tree::{What, first_from, last_before, newest};
use super::{CheckpointError, FileCheckpoints, Key, LINE, WORD, key_of, place_of, spans, words};

/// The number of bytes in a page of the initial memory contents.
const PAGE: u64 = 4096;
/// The maximum number of intervals for which words are loaded in advance.
const MOST: u64 = 32;

/// Restores a machine to checkpoints of a run. Also loads the words of memory that the following
/// intervals read or write. Words that are not needed are zero.
#[derive(Debug)]
pub struct Image<'c> {
    checkpoints: &'c FileCheckpoints,
    /// The initial contents of the pages that data segments fill, by memory and page. Other bytes
    /// are zero.
    first: BTreeMap<(u32, u64), Box<[u8]>>,
    /// The loaded words, by memory and line.
    there: Vec<Vec<u16>>,
    /// The machine's current interval.
    interval: u64,
    /// The number of blocks executed by that interval's end.
    after: u64,
    /// The first interval whose words have not been loaded.
    until: u64,
    /// The number of intervals for which words were last loaded together.
    at_once: u64,
    /// Whether all words are loaded, so that none will be missing.
    whole: bool,
    /// The lines that `read` has fetched without loading, each with the contents of its missing
    /// words in the current interval.
    seen: RefCell<HashMap<Key, Vec<u8>>>,
}

/// A destination for loaded lines.
trait Lines {
    /// Returns the bytes of a line, or `None` if the destination does not have the line.
    fn line(&mut self, key: Key) -> Option<&mut [u8]>;
}

impl Lines for State {
    fn line(&mut self, key: Key) -> Option<&mut [u8]> {
        let (memory, address) = place_of(key);
        let bytes = &mut self.memories.get_mut(memory as usize)?.bytes;
        bytes.get_mut(address as usize..(address + LINE) as usize)
    }
}

impl Lines for HashMap<Key, Vec<u8>> {
    fn line(&mut self, key: Key) -> Option<&mut [u8]> {
        self.get_mut(&key).map(Vec::as_mut_slice)
    }
}

impl<'c> Image<'c> {
    /// Creates an image in which nothing has been restored. `memories` are the initial memories,
    /// and `initial` describes their contents. Time: O(bytes of segments).
    pub fn new(checkpoints: &'c FileCheckpoints, memories: &[Memory], initial: &[Initial]) -> Self {
        let mut first = BTreeMap::new();
        for segment in initial.iter().filter(|segment| segment.length > 0) {
            let Some(memory) = memories.get(segment.memory as usize) else {
                continue;
            };
            let last = segment.address.saturating_add(segment.length - 1);
            for page in segment.address / PAGE..=last / PAGE {
                let bytes = memory
                    .range(page * PAGE, PAGE)
                    .map(|range| &memory.bytes[range]);
                if let Ok(bytes) = bytes {
                    let known = first.entry((segment.memory, page));
                    known.or_insert_with(|| bytes.into());
                }
            }
        }
        Self {
            checkpoints,
            first,
            there: Vec::new(),
            interval: 0,
            after: u64::MAX,
            until: 0,
            at_once: 0,
            whole: true,
            seen: RefCell::default(),
        }
    }

    /// Restores a machine to the checkpoint at the beginning of a range of intervals. The nodes
    /// that the checkpoint names must be compiled. The words that all these intervals need are
    /// loaded at once, because most were written in the same earlier intervals. The machine may
    /// continue beyond these intervals.
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged or belong to another run.
    pub fn restore(
        &mut self,
        machine: &mut Machine<'_>,
        checkpoint: &Checkpoint,
        intervals: Range<u64>,
    ) -> Result<(), RestoreError> {
        machine.restore(checkpoint, |_| ())?;
        let memories = machine.state.memories.iter();
        let lines = |memory: &Memory| memory.bytes.len() / LINE as usize;
        self.there = memories.map(|memory| vec![0; lines(memory)]).collect();
        self.whole = false;
        self.interval = intervals.start;
        self.bring(intervals, &mut machine.state)?;
        self.enter(&mut machine.state)?;
        Ok(())
    }

    /// Loads the words that the machine needs next. The caller must call this before the machine
    /// executes a node.
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged.
    #[inline]
    pub fn advance(&mut self, machine: &mut Machine<'_>) -> Result<(), CheckpointError> {
        if self.whole || machine.time() < self.after {
            return Ok(());
        }
        self.interval += 1;
        if self.interval < self.checkpoints.intervals() {
            return self.enter(&mut machine.state);
        }
        self.need_all(&mut machine.state)
    }

    /// Prepares for executing the current interval.
    fn enter(&mut self, state: &mut State) -> Result<(), CheckpointError> {
        self.seen.get_mut().clear();
        (_, self.after) = self.checkpoints.times(self.interval)?;
        if self.interval < self.until {
            Ok(())
        } else {
            // A machine that has come this far is likely to continue, but may stop anywhere.
            let end = self.interval + (2 * self.at_once).clamp(1, MOST);
            let end = end.min(self.checkpoints.intervals());
            self.bring(self.interval..end, state)
        }
    }

    /// Loads the words that some intervals need. The first of these is the current interval.
    fn bring(&mut self, intervals: Range<u64>, state: &mut State) -> Result<(), CheckpointError> {
        self.until = intervals.end;
        self.at_once = intervals.end - intervals.start;
        let mut all = Set::default();
        for interval in intervals {
            let (_, _, parts) = self.checkpoints.parts(interval)?;
            // If only a part of a word is written, the rest of the word is needed, too.
            all.add(&parts.sets.written);
            all.add(&parts.sets.read);
        }
        self.load(&all, state)
    }

    /// Whether the current interval contains a later time. Returns `false` if all words are loaded.
    pub fn has(&self, time: u64) -> bool {
        !self.whole && time <= self.after
    }

    /// Loads the bytes of a range, as far as the memory extends, so that they can be read.
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged.
    pub fn need(
        &mut self,
        memory: u32,
        address: u64,
        length: u64,
        state: &mut State,
    ) -> Result<(), CheckpointError> {
        let Some(known) = state.memories.get(memory as usize).filter(|_| !self.whole) else {
            return Ok(());
        };
        let size = known.bytes.len() as u64;
        let first = address.min(size);
        let end = address.saturating_add(length).min(size);
        self.load(&spans(memory, first, end - first), state)
    }

    /// Loads all missing words.
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged.
    pub fn need_all(&mut self, state: &mut State) -> Result<(), CheckpointError> {
        for memory in 0..state.memories.len() {
            self.need(memory as u32, 0, u64::MAX, state)?;
        }
        self.whole = true;
        Ok(())
    }

    /// Reads some bytes of a memory in the current interval without loading anything. `state` is
    /// the machine's state. Returns `false` if some bytes do not exist.
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged.
    pub fn read(
        &self,
        memory: u32,
        address: u64,
        into: &mut [u8],
        state: &State,
    ) -> Result<bool, CheckpointError> {
        let known = state.memories.get(memory as usize);
        let Some((known, range)) = known.and_then(|known| {
            let range = known.range(address, into.len() as u64).ok()?;
            Some((known, range))
        }) else {
            return Ok(false);
        };
        into.copy_from_slice(&known.bytes[range]);
        if self.whole {
            return Ok(true);
        }
        let wanted = spans(memory, address, into.len() as u64);
        let lines = wanted.spans().iter().flat_map(|span| span.lines());
        let lines = lines.map(|(key, _)| (key, self.lacks(key)));
        let missing = Vec::from_iter(lines.filter(|&(_, mask)| mask != 0));
        let mut seen = self.seen.borrow_mut();
        let mut new = Set::default();
        for &(first, mask) in &missing {
            seen.entry(first).or_insert_with(|| {
                let count = 1;
                new.push(Span { first, count, mask });
                vec![0; LINE as usize]
            });
        }
        self.fetch(new, &mut *seen)?;
        for (key, mask) in missing {
            let (_, start) = place_of(key);
            let line = seen.get(&key).map_or(&[][..], Vec::as_slice);
            for at in bytes_of(mask).flatten() {
                let place = (start + at as u64).checked_sub(address);
                let place = place.and_then(|place| into.get_mut(place as usize));
                if let (Some(place), Some(byte)) = (place, line.get(at)) {
                    *place = *byte;
                }
            }
        }
        Ok(true)
    }

    /// Loads the wanted words that are missing.
    fn load(&mut self, wanted: &Set, state: &mut State) -> Result<(), CheckpointError> {
        let mut missing = Set::default();
        for span in wanted.spans() {
            let (memory, address) = place_of(span.first);
            // The lines that exist in the memory.
            let there = self.there.get_mut(memory as usize).map(Vec::as_mut_slice);
            let there = there.and_then(|lines| lines.get_mut((address / LINE) as usize..));
            let there = there.into_iter().flatten();
            for (first, there) in (span.first..span.end()).zip(there) {
                missing.push(Span {
                    first,
                    count: 1,
                    mask: span.mask & !*there,
                });
                *there |= span.mask;
            }
        }
        self.fetch(missing, state)
    }

    /// Loads words with their contents at the current interval's beginning. The machine has not
    /// written them since then.
    fn fetch(&self, words: Set, into: &mut impl Lines) -> Result<(), CheckpointError> {
        let mut found = newest(self.checkpoints, words, self.interval)?;
        found.sort_unstable_by_key(|(interval, _)| *interval);
        for (interval, words) in found {
            match interval {
                Some(interval) => self.load_written(interval, &words, into)?,
                None => self.load_first(&words, into),
            }
        }
        Ok(())
    }

    /// Returns the words of a line that exist in a memory but are not loaded.
    fn lacks(&self, key: Key) -> u16 {
        let (memory, address) = place_of(key);
        let lines = self.there.get(memory as usize);
        let there = lines.and_then(|lines| lines.get((address / LINE) as usize));
        there.map_or(0, |there| !there)
    }

    /// Loads the initial contents of words. Zeros need no loading.
    fn load_first(&self, words: &Set, into: &mut impl Lines) {
        for span in words.spans() {
            let (memory, address) = place_of(span.first);
            let behind = address + u64::from(span.count) * LINE;
            let pages = (memory, address / PAGE)..(memory, behind.div_ceil(PAGE));
            for (&(_, page), bytes) in self.first.range(pages) {
                for line in (0..PAGE).step_by(LINE as usize) {
                    let key = key_of(memory, page * PAGE + line);
                    if !(span.first..span.end()).contains(&key) {
                        continue;
                    }
                    let Some(place) = into.line(key) else {
                        continue;
                    };
                    let first = &bytes[line as usize..];
                    for word in bytes_of(span.mask) {
                        place[word.clone()].copy_from_slice(&first[word]);
                    }
                }
            }
        }
    }

    /// Loads words as an interval left them.
    fn load_written(
        &self,
        interval: u64,
        wanted: &Set,
        into: &mut impl Lines,
    ) -> Result<(), CheckpointError> {
        let (group, within, parts) = self.checkpoints.parts(interval)?;
        let first = group.intervals[within].first_kept;
        let mut stored = self.checkpoints.words(interval)?;
        let mut by_host = Set::default();
        let mut done = Ok(());
        let told = parts.kept(wanted, |span, host, kept| {
            by_host.push(Span { mask: host, ..span });
            let mask = span.mask & !host;
            let mut last = None;
            for key in (span.first..span.end()).take_while(|_| mask != 0) {
                let Some(place) = into.line(key) else {
                    continue;
                };
                for word in bits(mask) {
                    let found = match last {
                        Some(found) if kept.is_same() => found,
                        _ => {
                            let position = first + kept.position(key, word);
                            match stored.get(position) {
                                Ok(found) => found,
                                Err(error) => {
                                    done = Err(error);
                                    return;
                                }
                            }
                        }
                    };
                    last = Some(found);
                    let place = &mut place[word * WORD as usize..][..WORD as usize];
                    // Bytes that are already right are not written, because untouched pages of
                    // zeros take no memory.
                    if place != found {
                        place.copy_from_slice(&found);
                    }
                }
            }
        });
        done?;
        told.ok_or(CheckpointError::Damaged("the writes of an interval"))?;
        if by_host.is_empty() {
            return Ok(());
        }
        for write in self.checkpoints.host_writes(interval)?.iter() {
            let mut own = spans(write.memory, write.address, write.bytes.len() as u64);
            for span in own.take(&by_host).spans() {
                span.lines()
                    .for_each(|(key, mask)| put(into, key, mask, write));
            }
        }
        Ok(())
    }
}

/// The reason why a machine cannot be restored to a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The checkpoints cannot be read.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    /// The checkpoints do not fit the run.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Applies a write by the host to the given words of a line.
fn put(into: &mut impl Lines, key: Key, mask: u16, write: &HostWrite) {
    let (_, address) = place_of(key);
    let Some(place) = into.line(key) else {
        return;
    };
    for word in bytes_of(mask) {
        for (byte, at) in place[word.clone()].iter_mut().zip(word) {
            let offset = (address + at as u64).checked_sub(write.address);
            let found = offset.and_then(|offset| write.bytes.get(usize::try_from(offset).ok()?));
            if let Some(&found) = found {
                *byte = found;
            }
        }
    }
}

impl FileCheckpoints {
    /// Returns the host's writes in an interval.
    fn host_writes(&self, interval: u64) -> Result<Arc<Vec<HostWrite>>, CheckpointError> {
        if let Some(known) = self.host_writes.get(&interval) {
            return Ok(known);
        }
        let mut log = self.log()?;
        if let Some(checkpoint) = self.checkpoint(interval)? {
            log.go(checkpoint.log())?;
        }
        let end = if interval + 1 < self.intervals() {
            self.checkpoint(interval + 1)?
        } else {
            None
        };
        let end = end.map_or(u64::MAX, |checkpoint| checkpoint.log().events);
        let mut all = Vec::new();
        while log.events() < end {
            match log.next().transpose()? {
                Some(Event::HostCall { writes, .. }) => all.extend(writes),
                Some(_) => {}
                None => break,
            }
        }
        let all = Arc::new(all);
        self.host_writes.keep(interval, &all);
        Ok(all)
    }

    /// Returns the address and length of the host's last write to a byte in an interval. Returns
    /// `None` unless the last write to the byte's word covered the whole word and was the host's.
    ///
    /// # Errors
    /// Returns an error if the checkpoints or the log are damaged.
    pub fn host_write(
        &self,
        memory: u32,
        address: u64,
        interval: u64,
    ) -> Result<Option<(u64, u64)>, CheckpointError> {
        let (_, _, parts) = self.parts(interval)?;
        let by_host = parts.is_by_host(key_of(memory, address), address);
        if !by_host.ok_or(CheckpointError::Damaged("the writes of an interval"))? {
            return Ok(None);
        }
        let mut last = None;
        for write in self.host_writes(interval)?.iter() {
            let length = write.bytes.len() as u64;
            let within = address.checked_sub(write.address);
            if write.memory == memory && within.is_some_and(|within| within < length) {
                last = Some((write.address, length));
            }
        }
        Ok(last)
    }

    /// Returns the interval of the last write to a byte before an interval, and the time of the
    /// first block of the writing node. Returns `None` if the byte was not written.
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged.
    pub fn last_write(
        &self,
        memory: u32,
        address: u64,
        before: u64,
    ) -> Result<Option<(u64, u64)>, CheckpointError> {
        let mut before = before;
        let word = (key_of(memory, address), words(address, address));
        while let Some(interval) = last_before(self, What::Written, word, before)? {
            if let Some(time) = self.last_write_in(memory, address, interval)? {
                return Ok(Some((interval, time)));
            }
            // Only other bytes of the word were written in that interval.
            before = interval;
        }
        Ok(None)
    }

    /// Returns the time of the first block of the node that last wrote a byte in an interval.
    /// Returns `None` if the byte was not written.
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged.
    pub fn last_write_in(
        &self,
        memory: u32,
        address: u64,
        interval: u64,
    ) -> Result<Option<u64>, CheckpointError> {
        let damaged = || CheckpointError::Damaged("the time of a write");
        let (group, within, parts) = self.parts(interval)?;
        let key = key_of(memory, address);
        let after = parts.written(key, address).ok_or_else(damaged)?;
        if after == 0 {
            return Ok(None);
        }
        let time = group.intervals[within].before.checked_add(after);
        time.map(Some).ok_or_else(damaged)
    }

    /// Returns the sites that wrote the word of a byte in an interval, by node and then in the
    /// order of execution. The list is empty if there were too many sites to store.
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged, or the word was not written.
    pub fn sites(
        &self,
        memory: u32,
        address: u64,
        interval: u64,
    ) -> Result<Vec<Site>, CheckpointError> {
        let damaged = || CheckpointError::Damaged("the sites that wrote a word");
        let (group, _, parts) = self.parts(interval)?;
        let list = parts.list(key_of(memory, address), address);
        group.sites(list.ok_or_else(damaged)?).ok_or_else(damaged)
    }

    /// Returns the first interval, from a given interval on, that reads or writes the word of one
    /// of these bytes. `reads` selects the kind of access. The interval may access only other bytes
    /// of the word.
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged.
    pub fn first_touch(
        &self,
        memory: u32,
        (address, length): (u64, u64),
        from: u64,
        reads: bool,
    ) -> Result<Option<u64>, CheckpointError> {
        let what = if reads { What::Read } else { What::Written };
        let mut first: Option<u64> = None;
        let touched = spans(memory, address, length);
        for line in touched.spans().iter().flat_map(|span| span.lines()) {
            let found = first_from(self, what, line, from)?;
            first = match (first, found) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(first)
    }

    /// Returns the last interval before a given interval that reads or writes the word of one of
    /// these bytes, like [`first_touch`](Self::first_touch).
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged.
    pub fn last_touch(
        &self,
        memory: u32,
        (address, length): (u64, u64),
        before: u64,
        reads: bool,
    ) -> Result<Option<u64>, CheckpointError> {
        let what = if reads { What::Read } else { What::Written };
        let mut last = None;
        let touched = spans(memory, address, length);
        for line in touched.spans().iter().flat_map(|span| span.lines()) {
            last = last.max(last_before(self, what, line, before)?);
        }
        Ok(last)
    }
}
