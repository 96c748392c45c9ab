//! How much memory the builder's shadow of the guest's memory takes.

use afterimage_machine::Range;

const PAGE: u64 = 4096;
const WORD: u64 = 4;
/// An entry is a definition and a cost.
const ENTRY: u64 = 9;

/// Which pages of a memory were written, and which of them not in aligned words only: these have an entry per byte.
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

    /// How many bytes the shadow has.
    pub(crate) fn shadow(&self) -> u64 {
        let pages = self.0.iter().map(|written| match written {
            Written::Never => 0,
            Written::InWords => PAGE / WORD * ENTRY,
            Written::InBytes => PAGE * ENTRY,
        });
        pages.sum()
    }
}
