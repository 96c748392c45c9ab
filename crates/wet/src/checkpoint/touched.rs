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
    /// How each word was written. It holds for words that are `written`.
    words: Box<[Writes]>,
    /// When each byte was written last, if words do not tell.
    times: Option<Box<[u32]>>,
}

/// How a word was written in the interval.
#[derive(Clone, Copy, Default)]
struct Writes {
    /// When last, unless the page knows that of bytes.
    time: u32,
    /// By which sites: a list of them.
    list: u32,
    /// By which site last: the list has it, or tells nothing.
    site: u32,
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
            words: vec![Writes::default(); PAGE / WORD as usize].into(),
            times: None,
        })
    }

    /// From a time for each word to one for each byte.
    fn refine(&mut self) {
        let times = self.words.iter().map(|word| word.time);
        self.times = Some(times.flat_map(|time| [time; WORD as usize]).collect());
    }

    /// When the bytes of a word were written last.
    fn times_of(&self, first: usize) -> [u32; WORD as usize] {
        match &self.times {
            Some(times) => times[first..].first_chunk().copied().unwrap_or_default(),
            None => [self.words[first / WORD as usize].time; WORD as usize],
        }
    }

    /// A word was written.
    #[inline(always)]
    fn write_word(&mut self, word: usize, now: u32, site: u32, writers: &mut Writers) {
        let is_old = self.written[word / WORDS] >> (word % WORDS) & 1 == 1;
        let writes = &mut self.words[word];
        writes.time = now;
        if !is_old || writes.site != site {
            let before = if is_old { writes.list } else { NOBODY };
            writes.list = writers.then(before, site);
            writes.site = site;
        }
    }

    /// One or two words were written, by an instruction: whether that was all.
    #[inline(always)]
    fn write_words(
        &mut self,
        address: u64,
        length: u64,
        (now, site): (u32, u32),
        writers: &mut Writers,
    ) -> bool {
        let whole = length == WORD || length == 2 * WORD;
        if !whole || !address.is_multiple_of(length) || self.times.is_some() {
            return false;
        }
        let first = address as usize % PAGE / WORD as usize;
        let count = (length / WORD) as usize;
        for word in first..first + count {
            self.write_word(word, now, site, writers);
        }
        let mask = ((1 << count) - 1) << (first % WORDS);
        self.written[first / WORDS] |= mask;
        self.by_host[first / WORDS] &= !mask;
        true
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
        if !whole && self.times.is_none() {
            self.refine();
        }
        if let Some(times) = &mut self.times {
            if !whole {
                // Bytes of these words that are not written now were not written in this interval.
                for word in bits(mask & !self.written[line]) {
                    let first = line * LINE as usize + word * WORD as usize;
                    times[first..first + WORD as usize].fill(0);
                }
            }
            times[within..within + length as usize].fill(now);
        }
        let words = within / WORD as usize..(within + length as usize).div_ceil(WORD as usize);
        for word in words {
            self.write_word(word, now, site, writers);
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
        let Range {
            memory,
            address,
            length,
        } = range;
        // Most are in one line.
        if length.wrapping_sub(1) < LINE && address % LINE + length <= LINE {
            let page = self.page(memory, address as usize / PAGE);
            page.read[address as usize % PAGE / LINE as usize] |=
                words(address, address + length - 1);
            return;
        }
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
        if !by.1 && range.length > 0 {
            let (site, _) = by;
            let page = self.page(range.memory, range.address as usize / PAGE);
            if page.write_words(range.address, range.length, (now, site), writers) {
                return;
            }
        }
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
                    let times = page.times_of(line * LINE as usize + word * WORD as usize);
                    times.iter().any(|time| *time != times[0])
                };
                let mixed = match page.times.is_some() {
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
            let of_bytes = page.times_of(at);
            let told = match line.mixed >> word & 1 {
                1 => of_bytes.len(),
                _ => 1,
            };
            times.extend(of_bytes[..told].iter().map(|&time| u64::from(time)));
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
        lists.extend(bits(line.written).map(|word| page.words[first + word].list));
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
