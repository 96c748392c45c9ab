//! What is to be written of a stretch of the run, input by input, before it is coded.

use std::ops::Range;

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
    pub(crate) fn clear(&mut self) {
        self.absolute.clear();
        self.ages.clear();
    }

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
pub(crate) struct Label(pub [u64; 2]);

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
    /// Where these are, chunk by chunk.
    pub chunks: Vec<u32>,
    /// Where the last chunk ends.
    pub end: u32,
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

/// The labels of a stretch: of each column in chunks, one after the other, so that no column has to be moved when it grows.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    room: Vec<[u64; 2]>,
    used: usize,
}

impl Labels {
    /// Room that is taken at once: it costs nothing before it is used.
    const ROOM: usize = 1 << 20;

    /// How many labels the chunk of a column has that comes behind so many: few at first, because most columns are short.
    pub(crate) fn length(before: usize) -> usize {
        8 << (2 * before.min(3))
    }

    /// Room for the chunk of a column that comes behind so many.
    pub(crate) fn chunk(&mut self, before: usize) -> Range<u32> {
        let start = self.used;
        self.used += Self::length(before);
        if self.used > self.room.len() {
            let room = self.used.max(2 * self.room.len()).max(Self::ROOM);
            if self.room.is_empty() {
                self.room = vec![[0; 2]; room];
            } else {
                self.room.resize(room, [0; 2]);
            }
        }
        start as u32..self.used as u32
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, place: u32, label: Label) {
        self.room[place as usize] = label.0;
    }

    /// A column's labels, chunk by chunk.
    pub(crate) fn of<'l>(&'l self, column: &'l Column) -> impl Iterator<Item = &'l [[u64; 2]]> {
        let last = column.chunks.len().wrapping_sub(1);
        let chunks = column.chunks.iter().enumerate();
        chunks.map(move |(i, &start)| {
            let start = start as usize;
            let end = match i == last {
                true => column.end as usize,
                false => start + Self::length(i),
            };
            &self.room[start..end]
        })
    }
}

/// All of a stretch.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub columns: Vec<Column>,
    pub labels: Labels,
    pub copies: Vec<Copies>,
    /// Where a copying site is in `copies`.
    pub of_site: FxHashMap<u32, usize>,
    /// The patterns that labels name.
    pub patterns: Patterns,
    /// How many numbers are kept.
    pub size: usize,
}

impl Buffers {
    /// Without what it holds, but with the room for labels.
    pub(crate) fn emptied(self) -> Self {
        let mut labels = self.labels;
        labels.used = 0;
        Self {
            labels,
            ..Self::default()
        }
    }
}
