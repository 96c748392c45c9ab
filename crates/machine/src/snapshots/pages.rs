//! Tracks the pages of memory that a run writes.

use super::SNAPSHOT_PAGE;
use crate::image::Memory;
use crate::observe::{Observer, Range};

/// A page, given by its memory and its position in the memory.
pub type Page = (u32, u64);

/// Marks the pages that a run writes.
#[derive(Clone, Debug, Default)]
pub struct WrittenPages {
    /// A bit for each page of each memory. Pages beyond the end are unmarked.
    memories: Vec<Vec<u64>>,
}

impl WrittenPages {
    /// Marks the pages of a range. Time: O(pages).
    #[inline]
    pub fn mark(&mut self, range: Range) {
        let Some(last) = range.length.checked_sub(1) else {
            return;
        };
        let first = range.address / SNAPSHOT_PAGE;
        let last = range.address.saturating_add(last) / SNAPSHOT_PAGE;
        for page in first..=last {
            let memory = self.memories.get_mut(range.memory as usize);
            match memory.and_then(|memory| memory.get_mut((page / 64) as usize)) {
                Some(bits) => *bits |= 1 << (page % 64),
                None => self.mark_new(range.memory, page),
            }
        }
    }

    #[cold]
    fn mark_new(&mut self, memory: u32, page: u64) {
        let memory = memory as usize;
        if self.memories.len() <= memory {
            self.memories.resize(memory + 1, Vec::new());
        }
        let (word, memory) = ((page / 64) as usize, &mut self.memories[memory]);
        if memory.len() <= word {
            memory.resize(word + 1, 0);
        }
        memory[word] |= 1 << (page % 64);
    }

    /// Marks the pages of memories that differ from the same pages of `others`. A page that is
    /// missing in `others` counts as zeros.
    pub fn mark_others(&mut self, memories: &[Memory], others: &[Memory]) {
        let size = SNAPSHOT_PAGE as usize;
        for (number, memory) in (0..).zip(memories) {
            let other = others.get(number as usize);
            let other = other.map_or(&[][..], |other| &other.bytes[..]);
            for (page, bytes) in (0..).zip(memory.bytes.chunks(size)) {
                let before = other.get(page as usize * size..).unwrap_or_default();
                let before = before.get(..bytes.len());
                let is_same = before.map_or_else(
                    || bytes.iter().all(|byte| *byte == 0),
                    |before| before == bytes,
                );
                if !is_same {
                    self.mark_new(number, page);
                }
            }
        }
    }

    /// Returns the marked pages, ascending, and removes the marks.
    pub fn take(&mut self) -> Vec<Page> {
        let mut pages = Vec::new();
        for (memory, words) in (0..).zip(&mut self.memories) {
            for (word, bits) in (0u64..).zip(words) {
                while *bits != 0 {
                    let bit = u64::from(bits.trailing_zeros());
                    pages.push((memory, 64 * word + bit));
                    *bits &= *bits - 1;
                }
            }
        }
        pages
    }
}

/// Returns the bytes of a page, if the memory has the page.
pub(super) fn page_of(memories: &[Memory], (memory, page): Page) -> Option<&[u8]> {
    let memory = memories.get(memory as usize)?;
    let range = memory.range(page.checked_mul(SNAPSHOT_PAGE)?, SNAPSHOT_PAGE);
    memory.bytes.get(range.ok()?)
}

impl Observer for WrittenPages {
    const REGISTERS: bool = false;

    #[inline(always)]
    fn write(&mut self, _: usize, range: Range) {
        self.mark(range);
    }

    fn copy(&mut self, _: usize, _: Range, to: Range) {
        self.mark(to);
    }

    fn host_write(&mut self, range: Range) {
        self.mark(range);
    }
}
