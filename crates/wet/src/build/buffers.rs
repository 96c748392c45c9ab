//! What is to be written of a stretch of the run, input by input, before it is coded.

use rustc_hash::FxHashMap;

use super::patterns::Patterns;
use super::sites::{EXECUTION_BITS, MOST_EXECUTIONS};

/// Which execution of which node a label names, once absolutely and once by how many executions ago it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Executions {
    /// The number of the execution.
    pub absolute: Vec<u64>,
    /// How many executions of that node have begun since, it not included.
    pub ages: Vec<u64>,
}

impl Executions {
    #[inline]
    pub(crate) fn push(&mut self, execution: u64, count: u64) {
        self.absolute.push(execution);
        self.ages.push(count.wrapping_sub(execution));
    }
}

/// Who wrote the first byte of what is read at one execution: a pattern, and of its first part which execution that was.
///
/// Two words, because labels are what there is most of: the execution's number, and how many executions ago it was, with the pattern above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label([u64; 2]);

impl Label {
    /// Bits of the pattern beside the execution.
    const BESIDE: u32 = u64::BITS - EXECUTION_BITS;
    /// Where the others begin.
    const REST: u32 = u64::BITS - (u32::BITS - Self::BESIDE);

    /// `count` is how often the execution's node was executed so far.
    #[inline]
    pub(crate) fn new(pattern: u32, execution: u64, count: u64) -> Self {
        let age = count.wrapping_sub(execution) & ((1 << Self::REST) - 1);
        Self([
            u64::from(pattern) << EXECUTION_BITS | execution,
            u64::from(pattern >> Self::BESIDE) << Self::REST | age,
        ])
    }

    pub(crate) fn pattern(self) -> u32 {
        let rest = (self.0[1] >> Self::REST) as u32;
        rest << Self::BESIDE | (self.0[0] >> EXECUTION_BITS) as u32
    }

    /// The number of the execution.
    pub(crate) fn execution(self) -> u64 {
        self.0[0] & MOST_EXECUTIONS
    }

    /// How many executions of that node have begun since, it not included.
    pub(crate) fn age(self) -> u64 {
        self.0[1] & ((1 << Self::REST) - 1)
    }
}

/// What is told of an input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    /// Which input of all nodes.
    pub input: u32,
    /// For a read: the execution of the node that the first of its labels belongs to; one for each execution follows.
    pub first: u64,
    /// These.
    pub labels: Vec<Label>,
    /// By part of the pattern, from the second one on: which executions these were.
    pub parts: Vec<Executions>,
    /// For a variable: the executions at which its definition, which is far away, becomes another one.
    pub far_at: Vec<u64>,
    /// The nodes of these definitions.
    pub far_nodes: Vec<u32>,
    /// Their executions.
    pub far: Executions,
    /// The executions at which the value itself is kept.
    pub cut_at: Vec<u64>,
    /// These values.
    pub cut: Vec<u64>,
    /// Their upper halves, if they are vectors.
    pub cut_high: Vec<u64>,
}

/// What is told of one copy from memory to memory: runs of bytes that come from elements of the same size, written by the same write in
/// executions that are the same or one apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// How many bytes an element has.
    pub length: u64,
    /// How many elements.
    pub count: u64,
    /// Where the first comes from, as a place.
    pub place: u32,
    /// The first one's execution.
    pub execution: u64,
    /// What is added to the execution from one element to the next.
    pub step: u64,
}

/// The copies of one instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    /// The write, as a site.
    pub site: u32,
    /// The executions of the node.
    pub at: Vec<u64>,
    /// How many runs each has.
    pub counts: Vec<u64>,
    pub runs: Vec<Run>,
}

/// All of a stretch.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub columns: Vec<Column>,
    pub copies: Vec<Copies>,
    /// Where a copying site is in `copies`.
    pub of_site: FxHashMap<u32, usize>,
    /// The patterns that labels name.
    pub patterns: Patterns,
    /// How many numbers are kept.
    pub size: usize,
}
