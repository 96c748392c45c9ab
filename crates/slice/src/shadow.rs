//! Stores a label for each byte of the memories.

use afterimage_machine::Range;

/// The number of bytes in a page.
const PAGE: u64 = 4096;

/// A label for each byte. A page with bytes that all received the same label at once needs only its
/// entry.
#[derive(Debug)]
pub(crate) struct Shadow<L> {
    memories: Vec<Vec<Page<L>>>,
}

#[derive(Clone, Debug)]
enum Page<L> {
    All(L),
    Each(Box<[L]>),
}

impl<L> Default for Shadow<L> {
    fn default() -> Self {
        Self {
            memories: Vec::new(),
        }
    }
}

/// Splits a range at page boundaries. Each part is given by the page's number, the first byte in
/// the page, and the length.
fn parts(range: Range) -> impl Iterator<Item = (usize, usize, usize)> {
    let end = range.address.saturating_add(range.length);
    let mut at = range.address;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let page = at / PAGE;
        let behind = end.min((page + 1) * PAGE);
        let part = (page as usize, (at % PAGE) as usize, (behind - at) as usize);
        at = behind;
        Some(part)
    })
}

impl<L: Copy + Default + PartialEq> Shadow<L> {
    /// Whether any byte may have a label.
    #[inline]
    pub fn is_used(&self) -> bool {
        !self.memories.is_empty()
    }

    /// Sets the label of all bytes of a range.
    pub fn set(&mut self, range: Range, label: L) {
        let memory = range.memory as usize;
        let none = label == L::default();
        if self.memories.len() <= memory {
            if none {
                return;
            }
            self.memories.resize_with(memory + 1, Vec::new);
        }
        let pages = &mut self.memories[memory];
        for (page, from, count) in parts(range) {
            if pages.len() <= page {
                if none {
                    return;
                }
                pages.resize_with(page + 1, || Page::All(L::default()));
            }
            let known = &mut pages[page];
            match known {
                Page::All(all) if *all == label => {}
                _ if count == PAGE as usize => *known = Page::All(label),
                Page::All(all) => {
                    let mut labels = vec![*all; PAGE as usize];
                    labels[from..from + count].fill(label);
                    *known = Page::Each(labels.into());
                }
                Page::Each(labels) => labels[from..from + count].fill(label),
            }
        }
    }

    /// Passes the labels of a range to `see`, in order, as runs of bytes with equal labels.
    pub fn each(&self, range: Range, mut see: impl FnMut(u64, L)) {
        let pages = self.memories.get(range.memory as usize);
        let pages = pages.map_or(&[][..], Vec::as_slice);
        for (page, from, count) in parts(range) {
            match pages.get(page) {
                // Pages after the last page have no labels.
                None => {
                    see(count as u64, L::default());
                }
                Some(Page::All(label)) => see(count as u64, *label),
                Some(Page::Each(labels)) => {
                    for run in labels[from..from + count].chunk_by(|a, b| a == b) {
                        see(run.len() as u64, run[0]);
                    }
                }
            }
        }
    }

    /// Whether any byte of a range has a label other than the default.
    #[inline]
    pub fn any(&self, range: Range) -> bool {
        let Some(pages) = self.memories.get(range.memory as usize) else {
            return false;
        };
        let parts = parts(range).take_while(|(page, ..)| *page < pages.len());
        for (page, from, count) in parts {
            let any = match &pages[page] {
                Page::All(label) => *label != L::default(),
                Page::Each(labels) => {
                    let mut labels = labels[from..from + count].iter();
                    labels.any(|label| *label != L::default())
                }
            };
            if any {
                return true;
            }
        }
        false
    }
}
