//! Records the statements that wrote the inputs of other statements.

use afterimage_machine::{Labels, Range};
use rustc_hash::FxHashMap;

/// The number of words in a chunk, the number of chunks stored together, and the number of chunks
/// open at once. The open chunks cover 16 MiB of memory. Tests have few words, so they use small
/// numbers.
const CHUNK: usize = if cfg!(test) { 2 } else { 256 };
const CHUNKS: usize = if cfg!(test) { 2 } else { 256 };
const OPEN: usize = if cfg!(test) { 2 } else { 1 << 14 };
/// The maximum number of writers to keep for one reader.
const KEPT: usize = 16;

type Words = Labels<CHUNK, CHUNKS>;

/// Tracks the last writer of each word of the first memory while a run is followed. For each
/// statement, also keeps the writers of the first word of each of its reads. One word is enough
/// evidence for a match.
#[derive(Debug)]
pub(super) struct Written {
    /// The number of the statement that last wrote each word, plus one. It is 0 if no statement
    /// did.
    words: Words,
    /// For each statement, the latest writer found, plus one, and all writers found.
    of: Vec<(u32, Vec<u32>)>,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            words: Labels::new(OPEN),
            of: Vec::new(),
        }
    }
}

impl Written {
    /// Records a write. `None` means that the host wrote.
    #[inline(always)]
    pub fn write(&mut self, statement: Option<u32>, range: Range) {
        if range.memory != 0 || range.length == 0 {
            return;
        }
        let by = statement.map_or(0, |statement| statement + 1);
        let (first, last) = (range.address / 4, (range.address + range.length - 1) / 4);
        if first == last {
            self.words.set(0, first, by.into())
        } else {
            self.words.fill(0, first, last + 1, by.into())
        }
    }

    /// Records a read by a statement.
    #[inline(always)]
    pub fn read(&mut self, statement: u32, range: Range) {
        if range.memory != 0 || range.length == 0 {
            return;
        }
        let by = self.words.get(0, range.address / 4) as u32;
        let at = statement as usize;
        if at >= self.of.len() {
            self.of.resize(at + 1, (0, Vec::new()));
        }
        let (last, all) = &mut self.of[at];
        if *last == by || by == 0 {
            return;
        }
        *last = by;
        if all.len() < KEPT && !all.contains(&(by - 1)) {
            all.push(by - 1);
        }
    }

    /// Copies words with their writers.
    pub fn copy(&mut self, from: Range, to: Range) {
        if from.memory != 0 {
            return self.write(None, to);
        }
        if to.memory != 0 || to.length == 0 {
            return;
        }
        let (first, last) = (to.address / 4, (to.address + to.length - 1) / 4);
        // The first byte of the copied word determines its writer.
        let source = |word: u64| {
            let inside = (4 * word).max(to.address) - to.address;
            (from.address + inside) / 4
        };
        let together = Words::TOGETHER;
        let mut of_folder = |folder: u64| {
            let start = first.max(folder * together);
            let end = last.min((folder + 1) * together - 1);
            if end - start == together - 1
                && let Some(by) = self.words.common(0, source(start), source(end))
            {
                return self.words.fill(0, start, end + 1, by);
            }
            let mut one = |word: u64| {
                let by = self.words.get(0, source(word));
                self.words.set(0, word, by);
            };
            if from.address < to.address {
                (start..=end).rev().for_each(&mut one)
            } else {
                (start..=end).for_each(&mut one)
            }
        };
        let folders = first / together..=last / together;
        if from.address < to.address {
            folders.rev().for_each(&mut of_folder)
        } else {
            folders.for_each(&mut of_folder)
        }
    }

    /// Returns the writers by reader. Writers and readers are renumbered.
    pub fn by_number(&self, numbers: &FxHashMap<u32, u32>) -> FxHashMap<u32, Vec<u32>> {
        let of = (0..).zip(&self.of);
        let of = of.filter_map(|(statement, (_, all))| {
            let all = all.iter().filter_map(|by| numbers.get(by).copied());
            let all = Vec::from_iter(all);
            Some((*numbers.get(&statement)?, all)).filter(|(_, all)| !all.is_empty())
        });
        of.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Write(u32, u64, u64),
        Host(u64, u64),
        Read(u32, u64),
        Copy(u64, u64, u64),
        CopyFromElsewhere(u64, u64),
    }

    fn range(address: u64, length: u64) -> Range {
        Range {
            memory: 0,
            address,
            length,
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        // Addresses, including some near the boundary of a group of chunks.
        let at = || (0u64..160).prop_map(|byte| byte + 4 * Words::TOGETHER.saturating_sub(20));
        prop_oneof![
            (0u32..9, at(), 1u64..12).prop_map(|(by, at, length)| Step::Write(by, at, length)),
            (at(), 1u64..12).prop_map(|(at, length)| Step::Host(at, length)),
            (0u32..9, at()).prop_map(|(by, at)| Step::Read(by, at)),
            (at(), at(), 1u64..60).prop_map(|(from, to, length)| Step::Copy(from, to, length)),
            (at(), 1u64..60).prop_map(|(to, length)| Step::CopyFromElsewhere(to, length)),
        ]
    }

    proptest! {
        #[test]
        fn who_wrote_a_word_last_is_known(steps in prop::collection::vec(step(), 0..200)) {
            let mut written = Written::default();
            let mut words: BTreeMap<u64, u32> = BTreeMap::new();
            let mut expected: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
            let within = |at: u64, length: u64| at / 4..=(at + length - 1) / 4;
            for step in steps {
                match step {
                    Step::Write(by, at, length) => {
                        written.write(Some(by), range(at, length));
                        words.extend(within(at, length).map(|word| (word, by)));
                    }
                    Step::Host(at, length) => {
                        written.write(None, range(at, length));
                        within(at, length).for_each(|word| {
                            words.remove(&word);
                        });
                    }
                    Step::Read(by, at) => {
                        written.read(by, range(at, 1));
                        if let Some(&writer) = words.get(&(at / 4)) {
                            expected.entry(by).or_default().insert(writer);
                        }
                    }
                    Step::Copy(from, to, length) => {
                        written.copy(range(from, length), range(to, length));
                        let before = words.clone();
                        // Copies byte by byte, from the last to the first. A word gets the writer
                        // of the byte from which its first byte is copied.
                        for byte in (0..length).rev() {
                            let word = (to + byte) / 4;
                            match before.get(&((from + byte) / 4)) {
                                Some(&by) => words.insert(word, by),
                                None => words.remove(&word),
                            };
                        }
                    }
                    Step::CopyFromElsewhere(to, length) => {
                        let from = Range { memory: 1, ..range(0, length) };
                        written.copy(from, range(to, length));
                        within(to, length).for_each(|word| {
                            words.remove(&word);
                        });
                    }
                }
            }
            let numbers = (0..9).map(|number| (number, number)).collect();
            let found = written.by_number(&numbers).into_iter();
            let found = found.map(|(read, by)| (read, BTreeSet::from_iter(by)));
            prop_assert_eq!(BTreeMap::from_iter(found), expected);
        }
    }
}
