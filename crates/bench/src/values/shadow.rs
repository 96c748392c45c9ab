//! Computes the size of the builder's shadow of the guest's memory.

use afterimage_machine::Range;

const PAGE: u64 = 4096;
const WORD: u64 = 4;
/// The size of an entry, which is a definition and a cost, in bytes.
const ENTRY: u64 = 9;

/// The pages of a memory that were written, and whether only by aligned words. Pages that were also
/// written in other ways have entries for bytes as well.
#[derive(Debug, Default)]
pub(crate) struct Pages(Vec<Written>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Written {
    #[default]
    Never,
    InWords,
    InBytes,
}

impl Pages {
    pub(crate) fn write(&mut self, range: Range) {
        let mut at = range.address;
        let end = range.address + range.length;
        while at < end {
            let next = (at / PAGE + 1) * PAGE;
            let page = (at / PAGE) as usize;
            if self.0.len() <= page {
                self.0.resize(page + 1, Written::Never);
            }
            let page = &mut self.0[page];
            if !at.is_multiple_of(WORD) || !end.min(next).is_multiple_of(WORD) {
                *page = Written::InBytes;
            } else if *page == Written::Never {
                *page = Written::InWords;
            }
            at = next;
        }
    }

    /// Returns the size of the shadow in bytes.
    pub(crate) fn shadow(&self) -> u64 {
        let pages = self.0.iter().map(|written| match written {
            Written::Never => 0,
            Written::InWords => PAGE / WORD * ENTRY,
            Written::InBytes => (PAGE / WORD + PAGE) * ENTRY,
        });
        pages.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{ENTRY, PAGE, Pages, Range, WORD};

    fn shadow(writes: &[(u64, u64)]) -> u64 {
        let mut pages = Pages::default();
        for &(address, length) in writes {
            pages.write(Range {
                memory: 0,
                address,
                length,
            });
        }
        pages.shadow()
    }

    #[test]
    fn a_page_has_an_entry_per_word_until_something_else_is_written() {
        let words = PAGE / WORD * ENTRY;
        let bytes = words + PAGE * ENTRY;
        assert_eq!(shadow(&[]), 0);
        assert_eq!(shadow(&[(8, 4), (12, 8)]), words);
        assert_eq!(shadow(&[(8, 4), (13, 1), (16, 4)]), bytes);
        // The write crosses the edge of a page, and only the second part is unaligned.
        assert_eq!(shadow(&[(PAGE - 4, 7)]), words + bytes);
        assert_eq!(shadow(&[(0, 3 * PAGE)]), 3 * words);
    }
}
