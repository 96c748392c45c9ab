//! The uncoded data of a stretch of the run, grouped by input.

use rustc_hash::FxHashMap;

use super::patterns::Patterns;
use super::sites::EXECUTION_BITS;

/// The executions that labels name, both as absolute numbers and as ages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Executions {
    /// The numbers of the executions.
    pub absolute: Vec<u64>,
    /// The number of later executions of the same node, for each execution.
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

/// The writer of the data that one execution reads, as a pattern of origins and the execution of
/// the pattern's first part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub pattern: u32,
    /// The number of the execution.
    pub execution: u64,
    /// The number of later executions of the same node so far.
    pub age: u64,
}

/// The stored data for an input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    /// The number of the input, among the inputs of all nodes.
    pub input: u32,
    /// For a read, the node's execution that has the first label. Each later execution also has a
    /// label.
    pub first: u64,
    /// The position of each chunk of labels.
    pub chunks: Vec<u32>,
    /// The end of the last chunk.
    pub end: u32,
    /// The executions of each part of the pattern, from the second part on.
    pub parts: Vec<Executions>,
    /// For a variable, the executions of the node at which the variable's distant definition
    /// changes.
    pub far_at: Vec<u64>,
    /// The nodes of these definitions.
    pub far_nodes: Vec<u32>,
    /// The executions of these nodes.
    pub far: Executions,
    /// The executions at which the value itself is stored.
    pub cut_at: Vec<u64>,
    /// The values at these executions.
    pub cut: Vec<u64>,
    /// The upper halves of these values, if they are vectors.
    pub cut_high: Vec<u64>,
}

/// A run of elements of equal size, which is part of the data of one memory copy. One write stored
/// the elements, in one execution or in executions at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The number of bytes in an element.
    pub length: u64,
    /// The number of elements.
    pub count: u64,
    /// The origin of the first element, as a place.
    pub place: u32,
    /// The execution that wrote the first element.
    pub execution: u64,
    /// The difference between the execution numbers of consecutive elements.
    pub step: u64,
}

/// The copies made by one instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    /// The site of the copying write.
    pub site: u32,
    /// The executions of the node that copied elements.
    pub at: Vec<u64>,
    /// The number of runs in each of these executions.
    pub counts: Vec<u64>,
    pub runs: Vec<Run>,
}

/// The labels of a stretch. A column consists of chunks, so its labels do not move when the column
/// grows.
///
/// Most labels have the same pattern as the previous label, and take one word.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    words: Vec<u64>,
    used: usize,
}

/// The position of a column's next label.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    next: u32,
    end: u32,
    /// The pattern of the column's last label.
    pattern: u32,
}

impl Room {
    /// Returns the position after the last label.
    pub(crate) fn filled(self) -> u32 {
        self.next
    }
}

impl Labels {
    /// The number of words reserved in advance, enough for a typical epoch. Unused words take no
    /// memory, and labels need not move.
    const ROOM: usize = 3 << 21;
    /// Marks a label, whose age and execution are in the upper bits.
    const LABEL: u64 = 1;
    /// Marks the execution of a label whose age follows in the next word.
    const OLD: u64 = 2;
    /// The number of bits of a label's age.
    const AGE: u32 = u64::BITS - EXECUTION_BITS - 1;

    /// Appends a label to a column.
    #[cfg(test)]
    pub(crate) fn push(&mut self, label: Label, room: &mut Room, chunks: &mut Vec<u32>) {
        if !self.fits(label, room) {
            self.append(label, room, chunks);
        }
    }

    /// Appends a label if it takes one word and the chunk has room. Otherwise, returns `false`.
    #[inline(always)]
    pub(crate) fn fits(&mut self, label: Label, room: &mut Room) -> bool {
        let fits = label.age >> Self::AGE == 0 && label.pattern == room.pattern;
        if fits && room.next != room.end {
            let above = label.execution << Self::AGE | label.age;
            self.words[room.next as usize] = above << 1 | Self::LABEL;
            room.next += 1;
            return true;
        }
        false
    }

    /// Appends a label, with two words if necessary.
    #[inline(never)]
    pub(crate) fn append(&mut self, label: Label, room: &mut Room, chunks: &mut Vec<u32>) {
        if label.pattern != room.pattern || chunks.is_empty() {
            self.word(u64::from(label.pattern) << 2, room, chunks);
            room.pattern = label.pattern;
        }
        if label.age >> Self::AGE == 0 {
            let above = label.execution << Self::AGE | label.age;
            self.word(above << 1 | Self::LABEL, room, chunks);
        } else {
            self.word(label.execution << 2 | Self::OLD, room, chunks);
            self.word(label.age, room, chunks);
        }
    }

    fn word(&mut self, word: u64, room: &mut Room, chunks: &mut Vec<u32>) {
        if room.next == room.end {
            let start = self.used;
            self.used += Self::length(chunks.len());
            if self.used > self.words.len() {
                let most = self.used.max(2 * self.words.len()).max(Self::ROOM);
                if self.words.is_empty() {
                    self.words = vec![0; most];
                } else {
                    self.words.resize(most, 0);
                }
            }
            chunks.push(start as u32);
            (room.next, room.end) = (start as u32, self.used as u32);
        }
        self.words[room.next as usize] = word;
        room.next += 1;
    }

    /// Returns the length, in words, of a column's next chunk after `before` chunks. The first
    /// chunks are short, because most columns are short.
    fn length(before: usize) -> usize {
        8 << (2 * before.min(3))
    }

    /// Returns the number of words that a column's labels take. Time: O(chunks).
    pub(crate) fn words_of(column: &Column) -> usize {
        match column.chunks.split_last() {
            Some((&last, before)) => {
                let before: usize = (0..before.len()).map(Self::length).sum();
                before + (column.end - last) as usize
            }
            None => 0,
        }
    }

    /// Passes a column's labels to `tell`, in order.
    #[inline]
    pub(crate) fn each(&self, column: &Column, mut tell: impl FnMut(Label)) {
        let last = column.chunks.len().wrapping_sub(1);
        let chunks = column.chunks.iter().enumerate();
        let words = chunks.flat_map(|(i, &start)| {
            let start = start as usize;
            let end = if i == last {
                column.end as usize
            } else {
                start + Self::length(i)
            };
            &self.words[start..end]
        });
        let mut pattern = 0;
        // An execution whose age follows in the next word.
        let mut old = None;
        for &word in words {
            if let Some(execution) = old.take() {
                let age = word;
                tell(Label {
                    pattern,
                    execution,
                    age,
                });
            } else if word & Self::LABEL != 0 {
                let above = word >> 1;
                tell(Label {
                    pattern,
                    execution: above >> Self::AGE,
                    age: above & ((1 << Self::AGE) - 1),
                });
            } else if word & Self::OLD != 0 {
                old = Some(word >> 2);
            } else {
                pattern = (word >> 2) as u32;
            }
        }
    }
}

/// All data of a stretch.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub columns: Vec<Column>,
    pub labels: Labels,
    pub copies: Vec<Copies>,
    /// The position of each copying site in `copies`.
    pub of_site: FxHashMap<u32, usize>,
    /// The patterns that labels name.
    pub patterns: Patterns,
    /// The count of numbers stored so far.
    pub size: usize,
}

impl Buffers {
    /// Clears the data, but keeps the memory for labels.
    pub(crate) fn emptied(self) -> Self {
        let mut labels = self.labels;
        labels.used = 0;
        Self {
            labels,
            ..Self::default()
        }
    }
}
