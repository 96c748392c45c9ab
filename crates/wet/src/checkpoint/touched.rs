//! Tracks the words of memories that an interval reads and writes, with the times of the last
//! writes.

use afterimage_machine::Range;

use super::set::Span;
use super::sites::{NOBODY, Writers};
use super::{LINE, WORD, key_of, place_of, words};

/// The number of bytes in a page.
pub(super) const PAGE: usize = 4096;
/// The number of lines in a page.
const LINES: usize = PAGE / LINE as usize;
/// The number of words in a line.
const WORDS: usize = (LINE / WORD) as usize;

/// The maximum number of pages with separate words, both in an interval and kept for the next
/// interval. These pages take 25 MiB, or 60 MiB with times for bytes.
const MOST: usize = 1 << 11;

/// The accesses to memories in the current interval.
#[derive(Default)]
pub(super) struct Touched {
    memories: Vec<Vec<Page>>,
    /// The pages that have been accessed.
    pages: Vec<(u32, u32)>,
    /// The number of pages with separate words.
    apart: usize,
    /// The current time, relative to the interval's beginning. It is never 0.
    pub now: u32,
}

#[derive(Default)]
enum Page {
    /// The page was not accessed.
    #[default]
    Nothing,
    Whole(Whole),
    /// The words of the page are separate. If the page is not listed in `pages`, it was not
    /// accessed.
    Each(Box<Each>),
}

/// Accesses common to all words of a page.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Whole {
    read: bool,
    written: Option<Writes>,
    by_host: bool,
}

struct Each {
    listed: bool,
    read: [u16; LINES],
    written: [u16; LINES],
    /// The words that the host wrote last, in a write that covered the whole word.
    by_host: [u16; LINES],
    /// The writes to each word. Only entries of words in `written` are valid.
    words: Box<[Writes]>,
    /// The time of each byte's last write, if times per word do not suffice.
    times: Option<Box<[u32]>>,
}

/// The writes to a word in the interval.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Writes {
    /// The time of the last write, unless the page has times for bytes.
    time: u32,
    /// The sites that wrote the word, as the number of a list.
    list: u32,
    /// The last site that wrote the word. The list contains the site, unless the list is too long
    /// to be stored.
    site: u32,
}

/// Lines with the same accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    pub first: u64,
    pub count: u32,
    pub read: u16,
    pub written: u16,
    pub by_host: u16,
    /// The written words whose bytes were not all last written at the same time.
    pub mixed: u16,
    pub told: LineForm,
}

/// The stored form of the written words of some lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LineForm {
    /// A single line, with the time, the sites and the bytes of each word.
    #[default]
    Each,
    /// Whole lines, with one time, one list of sites, and the bytes of each word.
    Once,
    /// Whole lines, as for `Once`, but with the bytes of a single word, because all words are
    /// equal.
    Same,
}

impl Lines {
    /// Returns the words whose bytes are stored, which are the words last written by the guest.
    pub fn kept(&self) -> u16 {
        self.written & !self.by_host
    }

    pub fn written(&self) -> Span {
        Span {
            first: self.first,
            count: self.count,
            mask: self.written,
        }
    }

    pub fn read(&self) -> Span {
        Span {
            mask: self.read,
            ..self.written()
        }
    }
}

impl Writes {
    /// Records another write to the word by a site.
    #[inline(always)]
    fn again(&mut self, is_old: bool, now: u32, site: u32, writers: &mut Writers) {
        self.time = now;
        if !is_old || self.site != site {
            let before = if is_old { self.list } else { NOBODY };
            self.list = writers.then(before, site);
            self.site = site;
        }
    }
}

impl Each {
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

    fn of(whole: Whole) -> Box<Self> {
        let mut page = Self::new();
        page.listed = true;
        let all = |is: bool| if is { [u16::MAX; LINES] } else { [0; LINES] };
        page.read = all(whole.read);
        page.written = all(whole.written.is_some());
        page.by_host = all(whole.by_host);
        page.words.fill(whole.written.unwrap_or_default());
        page
    }

    /// Replaces times per word with times per byte.
    fn refine(&mut self) {
        let times = self.words.iter().map(|word| word.time);
        self.times = Some(times.flat_map(|time| [time; WORD as usize]).collect());
    }

    /// Returns the times of the last writes to the bytes of a word.
    fn times_of(&self, first: usize) -> [u32; WORD as usize] {
        match &self.times {
            Some(times) => times[first..].first_chunk().copied().unwrap_or_default(),
            None => [self.words[first / WORD as usize].time; WORD as usize],
        }
    }

    /// Records a write to a word.
    #[inline(always)]
    fn write_word(&mut self, word: usize, now: u32, site: u32, writers: &mut Writers) {
        let is_old = self.written[word / WORDS] >> (word % WORDS) & 1 == 1;
        self.words[word].again(is_old, now, site, writers);
    }

    /// Records a write to one or two words by an instruction. Returns `false`, and records nothing,
    /// if the write is not of this kind or the page has times for bytes.
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

    /// Records a write within one line.
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
                // The other bytes of these words were not written in this interval.
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
        self.by_host[line] = if by_host && whole {
            self.by_host[line] | mask
        } else {
            self.by_host[line] & !mask
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
            pages.resize_with(page + 1, Page::default);
        }
        &mut pages[page]
    }

    /// Returns a page with separate words. Separates the words if necessary.
    #[inline]
    fn each(&mut self, memory: u32, page: usize) -> &mut Each {
        if !matches!(self.page(memory, page), Page::Each(known) if known.listed) {
            self.tell_apart(memory, page);
        }
        match self.page(memory, page) {
            Page::Each(known) => known,
            _ => unreachable!("its words are told apart"),
        }
    }

    #[cold]
    fn tell_apart(&mut self, memory: u32, page: usize) {
        let known = self.page(memory, page);
        let (is_listed, is_new) = match known {
            Page::Each(each) => (std::mem::replace(&mut each.listed, true), false),
            Page::Whole(whole) => {
                *known = Page::Each(Each::of(*whole));
                (true, true)
            }
            Page::Nothing => {
                let mut each = Each::new();
                each.listed = true;
                *known = Page::Each(each);
                (false, true)
            }
        };
        self.apart += usize::from(is_new);
        if !is_listed {
            self.pages.push((memory, page as u32));
        }
    }

    /// Returns the accesses to a page that is read or written entirely, or `None` if the words of
    /// the page are separate.
    fn whole(&mut self, memory: u32, page: usize) -> Option<&mut Whole> {
        let known = self.page(memory, page);
        let is_new = match known {
            Page::Each(each) if each.listed => return None,
            Page::Each(_) => {
                *known = Page::Whole(Whole::default());
                self.apart -= 1;
                true
            }
            Page::Nothing => {
                *known = Page::Whole(Whole::default());
                true
            }
            Page::Whole(_) => false,
        };
        if is_new {
            self.pages.push((memory, page as u32));
        }
        match self.page(memory, page) {
            Page::Whole(whole) => Some(whole),
            _ => None,
        }
    }

    /// Whether the interval should end because too many pages were accessed.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.pages.len() > MOST && self.apart > MOST
    }

    #[inline]
    pub fn read(&mut self, range: Range) {
        let Range {
            memory,
            address,
            length,
        } = range;
        // Most accesses lie within one line.
        if length.wrapping_sub(1) < LINE && address % LINE + length <= LINE {
            let page = self.each(memory, address as usize / PAGE);
            page.read[address as usize % PAGE / LINE as usize] |=
                words(address, address + length - 1);
            return;
        }
        each_part(range, PAGE as u64, |address, length| {
            let page = address as usize / PAGE;
            if length == PAGE as u64
                && let Some(whole) = self.whole(memory, page)
            {
                whole.read = true;
                return;
            }
            let page = self.each(memory, page);
            let range = Range {
                memory,
                address,
                length,
            };
            each_part(range, LINE, |address, length| {
                page.read[address as usize % PAGE / LINE as usize] |=
                    words(address, address + length - 1);
            });
        });
    }

    /// Records a write by a site, which may be the host.
    #[inline]
    pub fn write(&mut self, range: Range, by: (u32, bool), writers: &mut Writers) {
        let now = self.now;
        let (site, by_host) = by;
        if !by_host && range.length > 0 {
            let page = self.page(range.memory, range.address as usize / PAGE);
            if let Page::Each(page) = page
                && page.listed
                && page.write_words(range.address, range.length, (now, site), writers)
            {
                return;
            }
        }
        each_part(range, PAGE as u64, |address, length| {
            let page = address as usize / PAGE;
            if length == PAGE as u64
                && let Some(whole) = self.whole(range.memory, page)
            {
                let is_old = whole.written.is_some();
                let writes = whole.written.get_or_insert_default();
                writes.again(is_old, now, site, writers);
                whole.by_host = by_host;
                return;
            }
            let page = self.each(range.memory, page);
            let part = Range {
                address,
                length,
                ..range
            };
            each_part(part, LINE, |address, length| {
                page.write((address, length), now, by, writers);
            });
        });
    }

    /// Returns the accessed lines, ascending. `same` returns the word that fills a page, if all its
    /// words are equal.
    pub fn lines(&mut self, mut same: impl FnMut(u32, u64) -> Option<[u8; 4]>) -> Vec<Lines> {
        self.pages.sort_unstable();
        let mut all: Vec<Lines> = Vec::new();
        // The last lines so far, if they are whole pages.
        let mut last: Option<(Whole, Option<[u8; 4]>)> = None;
        for &(memory, number) in &self.pages {
            let address = u64::from(number) * PAGE as u64;
            let first = key_of(memory, address);
            match &self.memories[memory as usize][number as usize] {
                Page::Nothing => {}
                Page::Whole(whole) => {
                    let is_kept = whole.written.is_some() && !whole.by_host;
                    let word = is_kept.then(|| same(memory, address)).flatten();
                    let this = Some((*whole, word));
                    if let Some(before) = all.last_mut()
                        && last == this
                        && before.written().end() == first
                    {
                        before.count += LINES as u32;
                        continue;
                    }
                    last = this;
                    let mask = |is: bool| if is { u16::MAX } else { 0 };
                    all.push(Lines {
                        first,
                        count: LINES as u32,
                        read: mask(whole.read),
                        written: mask(whole.written.is_some()),
                        by_host: mask(whole.by_host),
                        mixed: 0,
                        told: match word {
                            Some(_) => LineForm::Same,
                            None => LineForm::Once,
                        },
                    });
                }
                Page::Each(page) => {
                    last = None;
                    page.lines(first, &mut all);
                }
            }
        }
        all
    }

    fn found(&self, lines: &Lines) -> (&Page, usize) {
        let (memory, address) = place_of(lines.first);
        let page = &self.memories[memory as usize][address as usize / PAGE];
        (page, address as usize % PAGE)
    }

    /// Appends the times of the last writes to the written words of some lines: one time per word
    /// or, for a word with mixed times, one per byte. Unwritten bytes have time 0. Whole pages have
    /// a single time.
    pub fn times(&self, lines: &Lines, times: &mut Vec<u64>) {
        let (page, first) = match self.found(lines) {
            (Page::Each(page), first) => (page, first),
            (Page::Whole(whole), _) => {
                times.extend(whole.written.map(|writes| u64::from(writes.time)));
                return;
            }
            (Page::Nothing, _) => return,
        };
        for word in bits(lines.written) {
            let at = first + word * WORD as usize;
            let of_bytes = page.times_of(at);
            let told = match lines.mixed >> word & 1 {
                1 => of_bytes.len(),
                _ => 1,
            };
            times.extend(of_bytes[..told].iter().map(|&time| u64::from(time)));
        }
    }

    /// Appends the sites that wrote the written words of some lines, as one list per word, or a
    /// single list for whole pages.
    pub fn lists(&self, lines: &Lines, lists: &mut Vec<u32>) {
        match self.found(lines) {
            (Page::Each(page), first) => {
                let first = first / WORD as usize;
                lists.extend(bits(lines.written).map(|word| page.words[first + word].list));
            }
            (Page::Whole(whole), _) => lists.extend(whole.written.map(|writes| writes.list)),
            (Page::Nothing, _) => {}
        }
    }

    /// Begins the next interval.
    pub fn clear(&mut self) {
        for (memory, number) in self.pages.drain(..) {
            let page = &mut self.memories[memory as usize][number as usize];
            match page {
                Page::Each(each) if self.apart <= MOST => {
                    each.listed = false;
                    each.read = [0; LINES];
                    each.written = [0; LINES];
                    each.by_host = [0; LINES];
                }
                Page::Each(_) => {
                    *page = Page::Nothing;
                    self.apart -= 1;
                }
                _ => *page = Page::Nothing,
            }
        }
    }
}

impl Each {
    /// Appends the accessed lines of the page.
    fn lines(&self, first: u64, all: &mut Vec<Lines>) {
        for line in 0..LINES {
            let (read, written) = (self.read[line], self.written[line]);
            if read | written == 0 {
                continue;
            }
            let is_mixed = |word: &usize| {
                let times = self.times_of(line * LINE as usize + word * WORD as usize);
                times.iter().any(|time| *time != times[0])
            };
            let mixed = if self.times.is_some() {
                bits(written).filter(is_mixed).map(|word| 1 << word).sum()
            } else {
                0
            };
            all.push(Lines {
                first: first + line as u64,
                count: 1,
                read,
                written,
                by_host: self.by_host[line],
                mixed,
                told: LineForm::Each,
            });
        }
    }
}

/// Returns the positions of the bits that are set, ascending.
pub(super) fn bits(mask: u16) -> impl Iterator<Item = usize> {
    (0..WORDS).filter(move |word| mask >> word & 1 == 1)
}

/// Splits a range at multiples of `piece` bytes.
#[inline]
fn each_part(range: Range, piece: u64, mut part: impl FnMut(u64, u64)) {
    let Range {
        mut address,
        mut length,
        ..
    } = range;
    while length > 0 {
        let count = length.min(piece - address % piece);
        part(address, count);
        address += count;
        length -= count;
    }
}
