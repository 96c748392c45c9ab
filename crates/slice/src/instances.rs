//! A set of executions of instructions.

use std::collections::BTreeMap;

/// A set of executions of instructions in a part of a run: one bit for each that was executed there, and for each node's end.
///
/// It is filled forward, stretch by stretch. One who goes back over stretches that begin where those began finds it by the times.
#[derive(Clone, Debug, Default)]
pub struct Instances {
    words: Vec<u64>,
    /// Where the bits of a stretch begin, by the time of its first node.
    stretches: BTreeMap<u64, u64>,
    /// Where the bits of the next execution begin.
    next: u64,
    /// Where those of the one at hand do.
    base: u64,
}

impl Instances {
    /// When the first node of it began.
    pub fn first(&self) -> Option<u64> {
        self.stretches.first_key_value().map(|(&start, _)| start)
    }

    /// A stretch begins with a node at this time.
    pub(crate) fn stretch(&mut self, start: u64) {
        self.stretches.insert(start, self.next);
    }

    /// An execution of a node with so many instructions begins.
    #[inline]
    pub(crate) fn begin(&mut self, insts: usize) {
        self.base = self.next;
        self.next += insts as u64 + 1;
        let words = self.next.div_ceil(64) as usize;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    /// An instruction of the execution at hand belongs to it; the end is the one behind the last.
    #[inline]
    pub(crate) fn add(&mut self, inst: usize) {
        let bit = self.base + inst as u64;
        self.words[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    /// Where the bits of a stretch begin. `None` if it is not of the part, or begins elsewhere than those did.
    pub(crate) fn of_stretch(&self, start: u64) -> Option<u64> {
        self.stretches.get(&start).copied()
    }

    /// Whether a bit is set.
    #[inline]
    pub(crate) fn has(&self, bit: u64) -> bool {
        let word = self.words.get((bit / 64) as usize);
        word.is_some_and(|word| word & 1 << (bit % 64) != 0)
    }
}
