//! Memories as they were, as far as they are needed.

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

/// Bytes of a page of what the memories begin with.
const PAGE: u64 = 4096;
/// For so many intervals at most words are brought in before they are asked for.
const MOST: u64 = 32;

/// Takes a machine to checkpoints of a run, and gives its memories the words that it needs from there on: those that the intervals it goes through read or
/// write. Words that nobody needs are zeros.
#[derive(Debug)]
pub struct Image<'c> {
    checkpoints: &'c FileCheckpoints,
    /// What the memories have before the run where segments are, by memory and page; elsewhere they are zeros.
    first: BTreeMap<(u32, u64), Box<[u8]>>,
    /// The words that are there, by memory and line.
    there: Vec<Vec<u16>>,
    /// The interval in which the machine is.
    interval: u64,
    /// How many blocks are executed at its end.
    after: u64,
    /// What the intervals before this one need is there.
    until: u64,
    /// For how many intervals that was brought in at once.
    at_once: u64,
    /// There is no need for words any more: all are there.
    whole: bool,
    /// Lines of which something is not there and was looked at: that part of them, as it is throughout the interval.
    seen: RefCell<HashMap<Key, Vec<u8>>>,
}

/// What lines are brought into.
trait Lines {
    /// The bytes of a line; of one that it does not have, none.
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
    /// Before anything is restored. `memories` are those before the run, and `initial` tells what is in them. O(bytes of segments).
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

    /// Takes a machine to the beginning of the first of some intervals, of which this is the checkpoint; the nodes that it names must be compiled. What they all need is brought in
    /// at once: most of it was written in the same intervals before, whatever needs it. It can go on behind them.
    ///
    /// # Errors
    /// If the checkpoints are damaged or of another run.
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

    /// The machine is to execute a node: brings in what is needed from here on.
    ///
    /// # Errors
    /// If the checkpoints are damaged.
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

    /// Begins with the interval at hand.
    fn enter(&mut self, state: &mut State) -> Result<(), CheckpointError> {
        self.seen.get_mut().clear();
        (_, self.after) = self.checkpoints.times(self.interval)?;
        if self.interval < self.until {
            Ok(())
        } else {
            // Who goes on will go on further, but may stop anywhere.
            let end = self.interval + (2 * self.at_once).clamp(1, MOST);
            let end = end.min(self.checkpoints.intervals());
            self.bring(self.interval..end, state)
        }
    }

    /// Brings in what intervals need, of which the first is the one at hand.
    fn bring(&mut self, intervals: Range<u64>, state: &mut State) -> Result<(), CheckpointError> {
        self.until = intervals.end;
        self.at_once = intervals.end - intervals.start;
        let mut all = Set::default();
        for interval in intervals {
            let (_, _, parts) = self.checkpoints.parts(interval)?;
            // Of a word that is written in part the rest is needed, too.
            all.add(&parts.sets.written);
            all.add(&parts.sets.read);
        }
        self.load(&all, state)
    }

    /// Brings in some bytes of a memory, as far as it has them, so that they can be looked at.
    ///
    /// # Errors
    /// If the checkpoints are damaged.
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

    /// Brings in all that is missing.
    ///
    /// # Errors
    /// If the checkpoints are damaged.
    pub fn need_all(&mut self, state: &mut State) -> Result<(), CheckpointError> {
        for memory in 0..state.memories.len() {
            self.need(memory as u32, 0, u64::MAX, state)?;
        }
        self.whole = true;
        Ok(())
    }

    /// Reads some bytes of a memory in the interval at hand, in which the machine with this state is, and brings nothing in. `false` if the memory does not have them all.
    ///
    /// # Errors
    /// If the checkpoints are damaged.
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

    /// Brings in those of some words that are missing.
    fn load(&mut self, wanted: &Set, state: &mut State) -> Result<(), CheckpointError> {
        let mut missing = Set::default();
        for span in wanted.spans() {
            let (memory, address) = place_of(span.first);
            // Those that the memory has.
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

    /// Brings words to somewhere as they are at the interval's beginning: nothing has written them since.
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

    /// Which words of a line that a memory has are not there.
    fn lacks(&self, key: Key) -> u16 {
        let (memory, address) = place_of(key);
        let lines = self.there.get(memory as usize);
        let there = lines.and_then(|lines| lines.get((address / LINE) as usize));
        there.map_or(0, |there| !there)
    }

    /// Brings in words that nobody has written. What is zeros is so already.
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

    /// Brings in words as an interval left them.
    fn load_written(
        &self,
        interval: u64,
        wanted: &Set,
        into: &mut impl Lines,
    ) -> Result<(), CheckpointError> {
        let (group, within, parts) = self.checkpoints.parts(interval)?;
        let first = group.intervals[within].first_kept;
        let mut by_host = Set::default();
        let mut done = Ok(());
        parts.kept(wanted, |span, host, kept| {
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
                            match self.checkpoints.word(interval, position) {
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
                    // What is as it should be is not touched: pages of zeros take no memory.
                    if place != found {
                        place.copy_from_slice(&found);
                    }
                }
            }
        });
        done?;
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

/// Why a machine cannot be taken to a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The checkpoints.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    /// They do not fit the run.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Writes what the host wrote to those words of a line.
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
    /// What the host wrote in an interval.
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

    /// If the host wrote the word of a byte last in an interval, the address and the length of what it wrote.
    ///
    /// # Errors
    /// If the checkpoints or the log are damaged.
    pub fn host_write(
        &self,
        memory: u32,
        address: u64,
        interval: u64,
    ) -> Result<Option<(u64, u64)>, CheckpointError> {
        let (_, _, parts) = self.parts(interval)?;
        if !parts.is_by_host(key_of(memory, address), address) {
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

    /// When a byte was written last before an interval: the interval, and the time of the node's first block. `None` if it was not.
    ///
    /// # Errors
    /// If the checkpoints are damaged.
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
            // Other bytes of the word were written.
            before = interval;
        }
        Ok(None)
    }

    /// When a byte was written last in an interval: the time of the node's first block. `None` if it was not.
    ///
    /// # Errors
    /// If the checkpoints are damaged.
    pub fn last_write_in(
        &self,
        memory: u32,
        address: u64,
        interval: u64,
    ) -> Result<Option<u64>, CheckpointError> {
        let damaged = || CheckpointError::Damaged("when something was written");
        let (group, within, parts) = self.parts(interval)?;
        let key = key_of(memory, address);
        let after = parts.written(key, address).ok_or_else(damaged)?;
        if after == 0 {
            return Ok(None);
        }
        let time = group.intervals[within].before.checked_add(after);
        time.map(Some).ok_or_else(damaged)
    }

    /// The sites that wrote the word of a byte in an interval, by node and then in the order of execution; none if there are too many to be told.
    ///
    /// # Errors
    /// If the checkpoints are damaged, or the word was not written.
    pub fn sites(
        &self,
        memory: u32,
        address: u64,
        interval: u64,
    ) -> Result<Vec<Site>, CheckpointError> {
        let damaged = || CheckpointError::Damaged("who wrote something");
        let (group, _, parts) = self.parts(interval)?;
        let list = parts.list(key_of(memory, address), address);
        group.sites(list.ok_or_else(damaged)?).ok_or_else(damaged)
    }

    /// The first interval from one on that reads (or else writes) a byte's word. It may read other bytes of it only.
    ///
    /// # Errors
    /// If the checkpoints are damaged.
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
}
