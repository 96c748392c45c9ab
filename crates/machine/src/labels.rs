//! Stores a number for each unit of memory, such as information about each byte or word of a guest.
//!
//! The units of a memory are grouped in chunks. Recently used chunks are open, as plain numbers.
//! All other chunks are packed. Loops leave regular patterns, which pack well. A chunk with a
//! single touched byte takes 32 bytes. So the total size is a fixed number of bytes, plus a few
//! bytes for each touched chunk with regular numbers.

mod arena;
mod packed;

use arena::Arena;
pub use packed::{pack, unpack};

/// The associativity of the set of open chunks.
const WAYS: usize = 2;

/// A number for each unit of memories, initially 0.
///
/// Invariant: the newest numbers of an open chunk are in its line, and the chunk has no slot.
#[derive(Debug)]
pub struct Labels<const CHUNK: usize = 256, const CHUNKS: usize = 256> {
    memories: Vec<Vec<Folder<CHUNKS>>>,
    /// The open chunks of each set, as the key of each chunk plus 1. An unused way has 0.
    tags: Vec<[u64; WAYS]>,
    /// The way of each set that is replaced next.
    next: Vec<u8>,
    /// The numbers of open chunks. The system zeroes them, and they take no memory before they are
    /// used.
    lines: Vec<u64>,
    arena: Arena,
    scratch: Vec<u8>,
}

/// A group of chunks, which are stored together.
#[derive(Debug)]
enum Folder<const CHUNKS: usize> {
    /// All units of the folder have this number.
    All(u64),
    Each(Box<Each<CHUNKS>>),
}

#[derive(Debug)]
struct Each<const CHUNKS: usize> {
    /// The common number of all units in chunks without a slot.
    base: u64,
    /// The positions of packed chunks, or 0 for none.
    slots: [u32; CHUNKS],
}

fn key(memory: usize, chunk: u64) -> u64 {
    (memory as u64) << 44 | chunk
}

impl<const CHUNK: usize, const CHUNKS: usize> Labels<CHUNK, CHUNKS> {
    /// The number of units in a folder.
    pub const TOGETHER: u64 = (CHUNK * CHUNKS) as u64;

    /// Creates labels with at most `open` open chunks, which must be a power of two.
    pub fn new(open: usize) -> Self {
        let sets = (open / WAYS).next_power_of_two();
        Self {
            memories: Vec::new(),
            tags: vec![[0; WAYS]; sets],
            next: vec![0; sets],
            lines: vec![0; sets * WAYS * CHUNK],
            arena: Arena::new(CHUNK * 8),
            scratch: Vec::new(),
        }
    }

    #[inline]
    fn set_of(&self, key: u64) -> usize {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.tags.len() - 1)
    }

    #[inline]
    fn open(&self, key: u64) -> Option<usize> {
        let set = self.set_of(key);
        let [first, second] = self.tags[set];
        if first == key + 1 {
            Some(set * WAYS)
        } else if second == key + 1 {
            Some(set * WAYS + 1)
        } else {
            None
        }
    }

    /// Returns the numbers of a chunk.
    #[inline]
    pub fn chunk(&mut self, memory: usize, chunk: u64) -> &mut [u64; CHUNK] {
        let line = match self.open(key(memory, chunk)) {
            Some(line) => line,
            None => self.bring(memory, chunk),
        };
        self.line(line)
    }

    #[inline]
    fn line(&mut self, line: usize) -> &mut [u64; CHUNK] {
        &mut self.lines.as_chunks_mut().0[line]
    }

    /// Opens a chunk and returns its line.
    #[cold]
    fn bring(&mut self, memory: usize, chunk: u64) -> usize {
        let key = key(memory, chunk);
        let set = self.set_of(key);
        let way = usize::from(self.next[set]);
        self.next[set] = (way as u8 + 1) % WAYS as u8;
        let line = set * WAYS + way;
        if let Some(before) = self.tags[set][way].checked_sub(1) {
            self.close(before, line);
        }
        self.tags[set][way] = key + 1;
        let each = self.each(memory, chunk);
        let base = each.base;
        let slot = std::mem::take(&mut each.slots[(chunk % CHUNKS as u64) as usize]);
        match slot {
            0 => self.line(line).fill(base),
            slot => {
                let lines = self.lines.as_chunks_mut::<CHUNK>().0;
                self.arena.get(slot, &mut lines[line]);
                self.arena.free(slot);
            }
        }
        line
    }

    /// Packs the chunk that a line contains.
    fn close(&mut self, key: u64, line: usize) {
        let (memory, chunk) = ((key >> 44) as usize, key & ((1 << 44) - 1));
        let base = self.each(memory, chunk).base;
        let numbers = &self.lines.as_chunks::<CHUNK>().0[line];
        let slot = if numbers.iter().all(|&number| number == base) {
            0
        } else {
            self.arena.put(numbers, &mut self.scratch)
        };
        self.each(memory, chunk).slots[(chunk % CHUNKS as u64) as usize] = slot;
    }

    fn folder(&mut self, memory: usize, folder: u64) -> &mut Folder<CHUNKS> {
        if memory >= self.memories.len() {
            self.memories.resize_with(memory + 1, Vec::new);
        }
        let folders = &mut self.memories[memory];
        let folder = folder as usize;
        if folder >= folders.len() {
            folders.resize_with(folder + 1, || Folder::All(0));
        }
        &mut folders[folder]
    }

    fn each(&mut self, memory: usize, chunk: u64) -> &mut Each<CHUNKS> {
        let folder = self.folder(memory, chunk / CHUNKS as u64);
        if let Folder::All(base) = *folder {
            let slots = [0; CHUNKS];
            *folder = Folder::Each(Box::new(Each { base, slots }));
        }
        match folder {
            Folder::Each(each) => each,
            Folder::All(_) => unreachable!("it was replaced above"),
        }
    }

    /// Returns the number of a unit.
    #[inline]
    pub fn get(&mut self, memory: usize, at: u64) -> u64 {
        let (chunk, within) = (at / CHUNK as u64, (at % CHUNK as u64) as usize);
        if let Some(line) = self.open(key(memory, chunk)) {
            return self.lines[line * CHUNK + within];
        }
        match self.plain(memory, chunk) {
            Some(number) => number,
            None => self.chunk(memory, chunk)[within],
        }
    }

    /// Returns the common number of all units of a closed chunk, or `None` if the numbers may
    /// differ.
    fn plain(&self, memory: usize, chunk: u64) -> Option<u64> {
        let folders = self.memories.get(memory).map_or(&[][..], Vec::as_slice);
        match folders.get((chunk / CHUNKS as u64) as usize) {
            None => Some(0),
            Some(Folder::All(number)) => Some(*number),
            Some(Folder::Each(each)) => {
                (each.slots[(chunk % CHUNKS as u64) as usize] == 0).then_some(each.base)
            }
        }
    }

    /// Sets the number of a unit.
    #[inline]
    pub fn set(&mut self, memory: usize, at: u64, number: u64) {
        self.chunk(memory, at / CHUNK as u64)[(at % CHUNK as u64) as usize] = number;
    }

    /// Sets the number of each unit in `first..end`. Folders that are filled entirely are not
    /// expanded.
    pub fn fill(&mut self, memory: usize, first: u64, end: u64, number: u64) {
        let (chunk, folder) = (CHUNK as u64, Self::TOGETHER);
        let mut at = first;
        while at < end {
            let known = self.memories.get(memory).map_or(0, Vec::len) as u64;
            if number == 0 && at / folder >= known {
                return;
            }
            let next = (at / folder + 1) * folder;
            let rest = end.min(next);
            if let Folder::All(all) = self.folder(memory, at / folder)
                && *all == number
            {
                at = rest;
            } else if at.is_multiple_of(folder) && end >= next {
                self.fill_folder(memory, at / folder, number);
                at = next;
            } else if at.is_multiple_of(chunk) && rest - at >= chunk {
                self.fill_chunk(memory, at / chunk, number);
                at += chunk;
            } else {
                let until = rest.min((at / chunk + 1) * chunk);
                let within = (at % chunk) as usize..;
                let line = &mut self.chunk(memory, at / chunk)[within];
                line[..(until - at) as usize].fill(number);
                at = until;
            }
        }
    }

    fn fill_folder(&mut self, memory: usize, folder: u64, number: u64) {
        let before = std::mem::replace(self.folder(memory, folder), Folder::All(number));
        let Folder::Each(each) = before else { return };
        for (k, &slot) in (0..).zip(&each.slots) {
            match slot {
                0 => self.forget(key(memory, folder * CHUNKS as u64 + k)),
                slot => self.arena.free(slot),
            }
        }
    }

    /// Closes a chunk and discards its numbers.
    fn forget(&mut self, key: u64) {
        if let Some(line) = self.open(key) {
            self.tags[line / WAYS][line % WAYS] = 0;
        }
    }

    fn fill_chunk(&mut self, memory: usize, chunk: u64, number: u64) {
        if let Some(line) = self.open(key(memory, chunk)) {
            self.line(line).fill(number);
            return;
        }
        let each = self.each(memory, chunk);
        let is_base = each.base == number;
        let slot = &mut each.slots[(chunk % CHUNKS as u64) as usize];
        let before = std::mem::take(slot);
        if before != 0 {
            self.arena.free(before);
        }
        if !is_base {
            let slot = self.arena.put(&[number; CHUNK], &mut self.scratch);
            self.each(memory, chunk).slots[(chunk % CHUNKS as u64) as usize] = slot;
        }
    }

    /// Returns the number that all units in the folders of `first` and `last` share, or `None` if
    /// there is no such number.
    pub fn common(&self, memory: usize, first: u64, last: u64) -> Option<u64> {
        let folders = self.memories.get(memory).map_or(&[][..], Vec::as_slice);
        let of = |at: u64| match folders.get((at / Self::TOGETHER) as usize) {
            None => Some(0),
            Some(Folder::All(number)) => Some(*number),
            Some(Folder::Each(_)) => None,
        };
        of(first).filter(|number| of(last) == Some(*number))
    }

    /// Replaces every number with the result of `new`. Takes time proportional to the number of
    /// units that are stored individually.
    pub fn change(&mut self, new: impl Fn(u64) -> u64) {
        let lines = self.lines.chunks_exact_mut(CHUNK);
        for (_, line) in self
            .tags
            .iter()
            .flatten()
            .zip(lines)
            .filter(|(tag, _)| **tag != 0)
        {
            line.iter_mut().for_each(|number| *number = new(*number));
        }
        let mut numbers = [0; CHUNK];
        for folder in self.memories.iter_mut().flatten() {
            match folder {
                Folder::All(number) => *number = new(*number),
                Folder::Each(each) => {
                    each.base = new(each.base);
                    for slot in each.slots.iter_mut().filter(|slot| **slot != 0) {
                        self.arena.get(*slot, &mut numbers);
                        self.arena.free(*slot);
                        numbers.iter_mut().for_each(|number| *number = new(*number));
                        *slot = self.arena.put(&numbers, &mut self.scratch);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::Labels;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Set(usize, u64, u64),
        Get(usize, u64),
        Fill(usize, u64, u64, u64),
        Change(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        // The test uses five folders of four chunks of four units.
        let number = || prop_oneof![0..4u64, any::<u64>()];
        prop_oneof![
            6 => (0..3usize, 0..80u64, number()).prop_map(|(m, at, n)| Step::Set(m, at, n)),
            6 => (0..3usize, 0..90u64).prop_map(|(m, at)| Step::Get(m, at)),
            2 => (0..3usize, 0..80u64, 0..50u64, number())
                .prop_map(|(m, at, length, n)| Step::Fill(m, at, at + length, n)),
            1 => (0..9u64).prop_map(Step::Change),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn each_unit_has_what_it_was_given_last(steps in prop::collection::vec(step(), 0..120)) {
            let mut labels = Labels::<4, 4>::new(4);
            let mut naive: BTreeMap<(usize, u64), u64> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Set(memory, at, number) => {
                        labels.set(memory, at, number);
                        naive.insert((memory, at), number);
                    }
                    Step::Get(memory, at) => {
                        let expected = naive.get(&(memory, at)).copied().unwrap_or(0);
                        if let Some(common) = labels.common(memory, at, at) {
                            prop_assert_eq!(common, expected);
                        }
                        prop_assert_eq!(labels.get(memory, at), expected);
                    }
                    Step::Fill(memory, first, end, number) => {
                        labels.fill(memory, first, end, number);
                        naive.extend((first..end).map(|at| ((memory, at), number)));
                    }
                    Step::Change(by) => {
                        let new = |number: u64| if number == 0 { 0 } else { number ^ by };
                        labels.change(new);
                        naive.values_mut().for_each(|number| *number = new(*number));
                    }
                }
            }
            for memory in 0..3 {
                for at in 0..140 {
                    let expected = naive.get(&(memory, at)).copied().unwrap_or(0);
                    prop_assert_eq!(labels.get(memory, at), expected);
                }
            }
        }
    }
}
