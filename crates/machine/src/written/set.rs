//! Sets of lines of memories.

use super::LINE;
use crate::observe::Range;

/// Consecutive lines of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineRun {
    /// The memory that contains the lines.
    pub memory: u32,
    /// The number of the first line in the memory.
    pub first: u32,
    /// The number of lines in the run.
    pub count: u32,
}

impl LineRun {
    /// Returns the bytes of the lines.
    pub fn range(self) -> Range {
        Range {
            memory: self.memory,
            address: u64::from(self.first) * LINE,
            length: u64::from(self.count) * LINE,
        }
    }
}

/// A set of lines of memories.
#[derive(Clone, Debug, Default)]
pub struct LineSet {
    /// A bit for each line of each memory. Lines beyond the end are absent.
    memories: Vec<Vec<u64>>,
}

impl LineSet {
    /// Adds the lines of a range. Time: O(lines).
    pub fn mark(&mut self, range: Range) {
        let Some(last) = range.length.checked_sub(1) else {
            return;
        };
        let first = range.address / LINE;
        let last = range.address.saturating_add(last) / LINE;
        for line in first..=last {
            self.add(range.memory, (line / 64) as usize, 1 << (line % 64));
        }
    }

    /// Adds some of the 64 lines from 64 · `word` on. Bit i represents the i-th of these lines.
    #[inline]
    pub fn add(&mut self, memory: u32, word: usize, bits: u64) {
        if bits == 0 {
            return;
        }
        let memory = memory as usize;
        if self.memories.len() <= memory {
            self.memories.resize(memory + 1, Vec::new());
        }
        let words = &mut self.memories[memory];
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= bits;
    }

    /// Whether this set contains all lines of another set.
    pub fn has_all(&self, other: &Self) -> bool {
        let mut memories = other.memories.iter().enumerate();
        memories.all(|(memory, words)| {
            let own = self.memories.get(memory).map_or(&[][..], |own| own);
            let mut words = words.iter().enumerate();
            words.all(|(word, bits)| bits & !own.get(word).copied().unwrap_or(0) == 0)
        })
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        for words in &mut self.memories {
            words.fill(0);
        }
    }

    /// Adds the lines of another set.
    pub(super) fn add_all(&mut self, other: &Self) {
        for (memory, words) in (0..).zip(&other.memories) {
            for (word, &bits) in words.iter().enumerate() {
                self.add(memory, word, bits);
            }
        }
    }

    /// Returns the lines as ascending runs that do not touch.
    pub fn runs(&self) -> impl Iterator<Item = LineRun> + '_ {
        (0..).zip(&self.memories).flat_map(|(memory, words)| {
            let mut at = 0;
            std::iter::from_fn(move || {
                let first = next(words, at, 0)?;
                let end = next(words, first, u64::MAX).unwrap_or(64 * words.len() as u64);
                at = end;
                Some(LineRun {
                    memory,
                    first: first as u32,
                    count: (end - first) as u32,
                })
            })
        })
    }
}

/// Returns the first set bit from `from` on or, if `flip` is all ones, the first bit that is not
/// set.
fn next(words: &[u64], from: u64, flip: u64) -> Option<u64> {
    let first = (from / 64) as usize;
    let mut bits = (words.get(first)? ^ flip) & (u64::MAX << (from % 64));
    let mut word = first;
    while bits == 0 {
        word += 1;
        bits = words.get(word)? ^ flip;
    }
    Some(64 * word as u64 + u64::from(bits.trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{LineRun, LineSet};
    use crate::observe::Range;

    #[test]
    fn runs_are_the_lines_that_were_added() {
        let mut random = 1u64;
        let mut below = |most: u64| {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (random >> 33) % most
        };
        let (mut set, mut more) = (LineSet::default(), LineSet::default());
        for round in 0..200 {
            let mut known = BTreeSet::new();
            set.clear();
            more.clear();
            for which in 0..below(30) {
                let range = Range {
                    memory: 2 * below(2) as u32,
                    address: below(60_000),
                    length: below(if round % 2 == 0 { 3 } else { 9000 }),
                };
                if which % 3 == 0 {
                    more.mark(range);
                } else {
                    set.mark(range);
                }
                for address in range.address..range.address + range.length {
                    known.insert((range.memory, (address / 64) as u32));
                }
            }
            set.add_all(&more);
            let runs = Vec::from_iter(set.runs());
            let touch = |pair: &[LineRun]| {
                let [one, next] = pair else { return true };
                one.memory > next.memory
                    || one.memory == next.memory && one.first + one.count >= next.first
            };
            assert!(!runs.windows(2).any(touch), "{runs:?}");
            let lines = runs
                .iter()
                .flat_map(|run| (run.first..run.first + run.count).map(|line| (run.memory, line)));
            assert_eq!(Vec::from_iter(lines), Vec::from_iter(known));
        }
    }
}
