//! Memories as they were, as far as they are needed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use afterimage_machine::{Checkpoint, Machine, MachineError, Memory, State};
use afterimage_trace::{Event, HostWrite};

use super::group::bytes_of;
use super::set::Set;
use super::sites::Site;
use super::tree::{What, Words, first_from, last_before, newest};
use super::{CheckpointError, FileCheckpoints, Key, LINE, WORD, lines, place_of};

/// Lines of which words are brought in at once.
const AT_ONCE: usize = 1 << 16;
/// For so many intervals at most words are brought in before they are asked for.
const MOST: u64 = 32;

/// Takes a machine to checkpoints of a run, and gives its memories the words that it needs from there on: those that the intervals it goes through read or
/// write. Words that nobody needs are zeros.
#[derive(Debug)]
pub struct Image<'c> {
    checkpoints: &'c FileCheckpoints,
    /// Memories before the run.
    first: Vec<Vec<u8>>,
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
    /// Before anything is restored; `first` are the memories before the run.
    pub fn new(checkpoints: &'c FileCheckpoints, first: &[Memory]) -> Self {
        Self {
            checkpoints,
            first: first.iter().map(|memory| memory.bytes.clone()).collect(),
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
        match self.interval < self.until {
            true => Ok(()),
            false => {
                // Who goes on will go on further, but may stop anywhere.
                let end = self.interval + (2 * self.at_once).clamp(1, MOST);
                let end = end.min(self.checkpoints.intervals());
                self.bring(self.interval..end, state)
            }
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
        self.load(all.keys.into_iter().zip(all.masks).collect(), state)
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
        let mut words = lines(memory, first, end - first).peekable();
        while words.peek().is_some() {
            self.load(words.by_ref().take(AT_ONCE).collect(), state)?;
        }
        Ok(())
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
        let keys = lines(memory, address, into.len() as u64).map(|(key, _)| key);
        let missing = keys.map(|key| (key, self.lacks(key)));
        let missing = Vec::from_iter(missing.filter(|&(_, mask)| mask != 0));
        let mut seen = self.seen.borrow_mut();
        let is_new = |(key, _): &Words| !seen.contains_key(key);
        let new = Vec::from_iter(missing.iter().copied().filter(is_new));
        seen.extend(new.iter().map(|&(key, _)| (key, vec![0; LINE as usize])));
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

    /// Brings in those of some words, which ascend, that are missing.
    fn load(&mut self, mut words: Vec<Words>, state: &mut State) -> Result<(), CheckpointError> {
        words.retain_mut(|(key, mask)| {
            *mask = self.add((*key, *mask));
            *mask != 0
        });
        self.fetch(words, state)
    }

    /// Brings words, which ascend, to somewhere as they are at the interval's beginning: nothing has written them since.
    fn fetch(&self, words: Vec<Words>, into: &mut impl Lines) -> Result<(), CheckpointError> {
        let mut found = newest(self.checkpoints, &words, self.interval)?;
        found.sort_unstable();
        for of_one in found.chunk_by(|a, b| a.0 == b.0) {
            let words = of_one.iter().map(|&(_, words)| words);
            match of_one[0].0 {
                Some(interval) => self.load_written(interval, words, into)?,
                None => words.for_each(|words| self.load_first(words, into)),
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

    /// Marks words as there. Which of them are in a memory and were not.
    fn add(&mut self, (key, mask): Words) -> u16 {
        let (memory, address) = place_of(key);
        let lines = self.there.get_mut(memory as usize);
        let Some(there) = lines.and_then(|lines| lines.get_mut((address / LINE) as usize)) else {
            return 0;
        };
        let new = mask & !*there;
        *there |= mask;
        new
    }

    /// Brings in words that nobody has written.
    fn load_first(&self, (key, mask): Words, into: &mut impl Lines) {
        let (memory, address) = place_of(key);
        let first = self.first.get(memory as usize);
        let first = first.and_then(|first| first.get(address as usize..));
        if let (Some(first), Some(place)) = (first, into.line(key)) {
            for word in bytes_of(mask) {
                if let Some(first) = first.get(word.clone()) {
                    place[word].copy_from_slice(first);
                }
            }
        }
    }

    /// Brings in words as an interval left them.
    fn load_written(
        &self,
        interval: u64,
        words: impl Iterator<Item = Words>,
        into: &mut impl Lines,
    ) -> Result<(), CheckpointError> {
        let (group, within, parts) = self.checkpoints.parts(interval)?;
        let first = group.intervals[within].first_kept;
        let mut by_host = HashMap::new();
        for (key, mask) in words {
            let mut others = mask;
            for (word, position) in parts.kept(key, mask) {
                others &= !word;
                let found = self.checkpoints.word(interval, first + position)?;
                if let Some(place) = into.line(key) {
                    let start = word.trailing_zeros() as usize * WORD as usize;
                    place[start..start + WORD as usize].copy_from_slice(&found);
                }
            }
            if others != 0 {
                by_host.insert(key, others);
            }
        }
        if by_host.is_empty() {
            return Ok(());
        }
        for write in self.checkpoints.host_writes(interval)?.iter() {
            for (key, _) in lines(write.memory, write.address, write.bytes.len() as u64) {
                if let Some(&mask) = by_host.get(&key) {
                    put(into, key, mask, write);
                }
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
    fn host_writes(&self, interval: u64) -> Result<Rc<Vec<HostWrite>>, CheckpointError> {
        if let Some(known) = self.host_writes.get(&interval) {
            return Ok(known);
        }
        let mut log = self.log()?;
        if let Some(checkpoint) = self.checkpoint(interval)? {
            log.go(checkpoint.log())?;
        }
        let end = match interval + 1 < self.intervals() {
            true => self.checkpoint(interval + 1)?,
            false => None,
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
        let all = Rc::new(all);
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
        let key = super::key_of(memory, address);
        let Ok(line) = parts.sets.written.keys.binary_search(&key) else {
            return Ok(None);
        };
        if parts.by_host[line] & super::words(address, address) == 0 {
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
        while let Some((key, mask)) = lines(memory, address, 1).next() {
            let Some(interval) = last_before(self, What::Written, (key, mask), before)? else {
                return Ok(None);
            };
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
        let key = super::key_of(memory, address);
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
        let list = parts.list(super::key_of(memory, address), address);
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
        for line in lines(memory, address, length) {
            let found = first_from(self, what, line, from)?;
            first = match (first, found) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(first)
    }
}
