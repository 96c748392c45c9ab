//! Which words of memories were read and written in an interval, and when they were written last.

use afterimage_machine::Range;

use super::sites::{NOBODY, Writers};
use super::{LINE, WORD, key_of, place_of, words};

/// Bytes of a page.
const PAGE: usize = 4096;
/// Lines of a page.
const LINES: usize = PAGE / LINE as usize;
/// Words of a line.
const WORDS: usize = (LINE / WORD) as usize;

/// What happened to the memories in the interval at hand.
#[derive(Default)]
pub(super) struct Touched {
    memories: Vec<Vec<Option<Box<Page>>>>,
    /// The pages that something happened to.
    pages: Vec<(u32, u32)>,
    /// The time, less that of the interval's beginning; never 0.
    pub now: u32,
}

struct Page {
    listed: bool,
    read: [u16; LINES],
    written: [u16; LINES],
    /// The written words that the host wrote last, wholly.
    by_host: [u16; LINES],
    /// When each word, or if `fine` each byte, was written last. It holds for words that are `written`.
    times: Box<[u32]>,
    fine: bool,
    /// Which sites wrote each word: a list of them. It holds for words that are `written`.
    lists: Box<[u32]>,
}

/// A line that something happened to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub key: u64,
    pub read: u16,
    pub written: u16,
    pub by_host: u16,
    /// The written words whose bytes were not all written last at the same time.
    pub mixed: u16,
}

impl Line {
    /// The words whose bytes are kept: those that the host did not write last.
    pub fn kept(&self) -> u16 {
        self.written & !self.by_host
    }
}

impl Page {
    fn new() -> Box<Self> {
        Box::new(Self {
            listed: false,
            read: [0; LINES],
            written: [0; LINES],
            by_host: [0; LINES],
            times: vec![0; PAGE / WORD as usize].into(),
            fine: false,
            lists: vec![0; PAGE / WORD as usize].into(),
        })
    }

    /// From a time for each word to one for each byte.
    fn refine(&mut self) {
        let times = self.times.iter();
        self.times = times.flat_map(|&time| [time; WORD as usize]).collect();
        self.fine = true;
    }

    /// Bytes that are all in one line were written.
    fn write(
        &mut self,
        (address, length): (u64, u64),
        now: u32,
        (site, by_host): (u32, bool),
        writers: &mut Writers,
    ) {
        let within = address as usize % PAGE;
        let (line, mask) = (within / LINE as usize, words(address, address + length - 1));
        let whole = address.is_multiple_of(WORD) && length.is_multiple_of(WORD);
        if !whole && !self.fine {
            self.refine();
        }
        if self.fine {
            if !whole {
                // Bytes of these words that are not written now were not written in this interval.
                for word in bits(mask & !self.written[line]) {
                    let first = line * LINE as usize + word * WORD as usize;
                    self.times[first..first + WORD as usize].fill(0);
                }
            }
            self.times[within..within + length as usize].fill(now);
        } else {
            let word = WORD as usize;
            self.times[within / word..(within + length as usize) / word].fill(now);
        }
        let words = within / WORD as usize..(within + length as usize).div_ceil(WORD as usize);
        let mut is_old = self.written[line] >> (words.start % WORDS);
        for list in &mut self.lists[words] {
            let before = if is_old & 1 == 1 { *list } else { NOBODY };
            *list = writers.then(before, site);
            is_old >>= 1;
        }
        self.written[line] |= mask;
        self.by_host[line] = match by_host && whole {
            true => self.by_host[line] | mask,
            false => self.by_host[line] & !mask,
        };
    }
}

impl Touched {
    #[inline]
    fn page(&mut self, memory: u32, page: usize) -> &mut Page {
        let memories = &mut self.memories;
        if memories.len() <= memory as usize {
            memories.resize_with(memory as usize + 1, Vec::new);
        }
        let pages = &mut memories[memory as usize];
        if pages.len() <= page {
            pages.resize_with(page + 1, || None);
        }
        let known = pages[page].get_or_insert_with(Page::new);
        if !known.listed {
            known.listed = true;
            self.pages.push((memory, page as u32));
        }
        known
    }

    #[inline]
    pub fn read(&mut self, range: Range) {
        each_line(range, |address, length| {
            let page = self.page(range.memory, address as usize / PAGE);
            page.read[address as usize % PAGE / LINE as usize] |=
                words(address, address + length - 1);
        });
    }

    /// By a site, which may be the host.
    #[inline]
    pub fn write(&mut self, range: Range, by: (u32, bool), writers: &mut Writers) {
        let now = self.now;
        each_line(range, |address, length| {
            let page = self.page(range.memory, address as usize / PAGE);
            page.write((address, length), now, by, writers);
        });
    }

    /// The lines that something happened to, ascending.
    pub fn lines(&mut self) -> Vec<Line> {
        self.pages.sort_unstable();
        let mut lines = Vec::new();
        for &(memory, number) in &self.pages {
            let Some(page) = self.memories[memory as usize][number as usize].as_deref() else {
                continue;
            };
            for line in 0..LINES {
                let (read, written) = (page.read[line], page.written[line]);
                if read | written == 0 {
                    continue;
                }
                let is_mixed = |word: &usize| {
                    let first = line * LINE as usize + word * WORD as usize;
                    let times = &page.times[first..first + WORD as usize];
                    times.iter().any(|time| *time != times[0])
                };
                let mixed = match page.fine {
                    true => bits(written).filter(is_mixed).map(|word| 1 << word).sum(),
                    false => 0,
                };
                lines.push(Line {
                    key: key_of(memory, u64::from(number) * PAGE as u64 + line as u64 * LINE),
                    read,
                    written,
                    by_host: page.by_host[line],
                    mixed,
                });
            }
        }
        lines
    }

    /// When the written words of a line were written last, each once, or of a mixed one each byte: 0 for those that were not.
    pub fn times(&self, line: &Line, times: &mut Vec<u64>) {
        let (memory, address) = place_of(line.key);
        let page = self.memories[memory as usize].get(address as usize / PAGE);
        let Some(Some(page)) = page else {
            return;
        };
        let first = address as usize % PAGE;
        for word in bits(line.written) {
            let at = first + word * WORD as usize;
            if line.mixed >> word & 1 == 1 {
                let of_bytes = &page.times[at..at + WORD as usize];
                times.extend(of_bytes.iter().map(|&time| u64::from(time)));
            } else {
                let at = if page.fine { at } else { at / WORD as usize };
                times.push(page.times[at].into());
            }
        }
    }

    /// Which sites wrote the written words of a line, each once.
    pub fn lists(&self, line: &Line, lists: &mut Vec<u32>) {
        let (memory, address) = place_of(line.key);
        let page = self.memories[memory as usize].get(address as usize / PAGE);
        let Some(Some(page)) = page else {
            return;
        };
        let first = address as usize % PAGE / WORD as usize;
        lists.extend(bits(line.written).map(|word| page.lists[first + word]));
    }

    /// The next interval begins.
    pub fn clear(&mut self) {
        for (memory, number) in self.pages.drain(..) {
            if let Some(page) = &mut self.memories[memory as usize][number as usize] {
                page.listed = false;
                page.read = [0; LINES];
                page.written = [0; LINES];
                page.by_host = [0; LINES];
            }
        }
    }
}

/// The positions of the bits that are set, ascending.
pub(super) fn bits(mask: u16) -> impl Iterator<Item = usize> {
    (0..WORDS).filter(move |word| mask >> word & 1 == 1)
}

/// The parts of a range that are in one line each.
#[inline]
fn each_line(range: Range, mut part: impl FnMut(u64, u64)) {
    let Range {
        mut address,
        mut length,
        ..
    } = range;
    while length > 0 {
        let count = length.min(LINE - address % LINE);
        part(address, count);
        address += count;
        length -= count;
    }
}
