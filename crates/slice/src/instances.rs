//! Stores a set of executions of instructions.

use std::collections::BTreeMap;

/// A set of executions of instructions in a part of a run. It has one bit for each instruction
/// executed in that part, and one bit for the end of each node's execution.
///
/// The set is filled forward, stretch by stretch. A backward walk over stretches with the same
/// beginnings finds the bits by the times of these beginnings.
#[derive(Clone, Debug, Default)]
pub struct Instances {
    words: Vec<u64>,
    /// The position of each stretch's bits, by the time of its first node.
    stretches: BTreeMap<u64, u64>,
    /// The position of the next execution's bits.
    next: u64,
    /// The position of the current execution's bits.
    base: u64,
}

impl Instances {
    /// Returns the time at which the first node of the part began.
    pub fn first(&self) -> Option<u64> {
        self.stretches.first_key_value().map(|(&start, _)| start)
    }

    /// Begins a stretch whose first node begins at this time.
    pub(crate) fn stretch(&mut self, start: u64) {
        self.stretches.insert(start, self.next);
    }

    /// Begins an execution of a node with this many instructions.
    #[inline]
    pub(crate) fn begin(&mut self, insts: usize) {
        self.base = self.next;
        self.next += insts as u64 + 1;
        let words = self.next.div_ceil(64) as usize;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    /// Adds an instruction of the current execution. The end counts as one more instruction after
    /// the last.
    #[inline]
    pub(crate) fn add(&mut self, inst: usize) {
        let bit = self.base + inst as u64;
        self.words[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    /// Returns the position of a stretch's bits. Returns `None` if no stretch of the set begins at
    /// this time.
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
