//! Tracks the last writer of each byte.

use std::collections::VecDeque;

use afterimage_machine::{Range, pack, unpack};

use super::KEPT;
use super::buffers::Run;
use super::sites::Def;

/// The number of bytes in a page of the shadow.
const PAGE: usize = 4096;
const PAGE_BITS: u32 = 12;
/// The number of bytes in a word.
const WORD: usize = 4;

/// The maximum number of parts of a page without entries for words.
const FEW: usize = 16;

/// For each byte of a memory, its last writer and the cost of computing the written value.
///
/// A page that one write filled has one entry. A page that few writes touched has a list of parts.
/// Other pages have an entry for each word. If the bytes of a word do not come in order from one
/// write, each byte has an entry. These entries take more memory than their page, so the oldest of
/// these pages are packed when there are many.
pub(super) struct Shadow {
    pages: Vec<Page>,
    /// Pages with entries for words, the oldest first. Some pages are listed twice, or no longer
    /// have entries for words.
    open: VecDeque<u32>,
    /// The size in bytes of all entries for words and bytes.
    taken: usize,
    /// The approximate limit on `taken`, in bytes.
    room: usize,
    /// The entry of unwritten bytes.
    first: Entry,
}

enum Page {
    /// One write without a value filled the page, or nothing wrote it.
    Whole(Entry),
    /// The parts of the page. The first part begins with the page, and each part ends where the
    /// next begins.
    Few(Vec<Part>),
    Each(Box<Each>),
    Packed(Packed),
}

/// A packed page with entries for words.
struct Packed {
    bytes: Box<[u8]>,
    /// Whether all values must be stored.
    kept: bool,
}

impl Default for Page {
    fn default() -> Self {
        Self::Whole(Entry::default())
    }
}

/// Bytes of a page that were written together, with the entry of the first byte.
#[derive(Clone, Copy)]
struct Part {
    start: u16,
    cost: u8,
    def: Def,
}

struct Each {
    defs: [u64; PAGE / WORD],
    costs: [u8; PAGE / WORD],
    /// The bytes of words marked [`APART`].
    bytes: Option<Box<Bytes>>,
}

struct Bytes {
    defs: [u64; PAGE],
    costs: [u8; PAGE],
}

/// Replaces the definition of a word whose bytes have separate entries. No word has this definition
/// itself, because a value cannot supply four bytes that begin with its last byte.
const APART: u64 = u64::MAX;

/// The writer of a byte, and the cost of computing its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub def: Def,
    pub cost: u8,
}

/// An optional entry as two numbers, which are returned in registers. Returning them through memory
/// would stall the processor.
#[derive(Clone, Copy)]
struct Answer(u64, u32);

impl Answer {
    const NONE: Self = Self(0, u32::MAX);

    fn new(def: Def, cost: u8) -> Self {
        Self(def.0, cost.into())
    }

    #[inline(always)]
    fn get(self) -> Option<Entry> {
        let cost = u8::try_from(self.1).ok()?;
        let def = Def(self.0);
        Some(Entry { def, cost })
    }
}

impl Part {
    fn new(start: usize, Entry { def, cost }: Entry) -> Self {
        let start = start as u16;
        Self { start, cost, def }
    }

    /// Returns the entry of a byte of the page.
    fn at(&self, within: usize) -> Entry {
        Entry {
            def: self.def.at((within - usize::from(self.start)) as u64),
            cost: self.cost,
        }
    }
}

impl Page {
    /// Returns the entry of a byte, and a number of bytes from there on that the same write wrote.
    /// The write may reach further, because only cheap checks are made.
    #[inline]
    fn piece(&self, within: usize) -> (Entry, usize) {
        match self {
            Self::Whole(entry) => (*entry, PAGE - within),
            Self::Few(parts) => {
                let next = parts.partition_point(|part| usize::from(part.start) <= within);
                let end = parts.get(next).map_or(PAGE, |part| part.start.into());
                (parts[next - 1].at(within), end - within)
            }
            Self::Each(page) => (page.byte(within), 1),
            Self::Packed(page) => (page.unpacked().byte(within), 1),
        }
    }

    /// Returns the size of the page's entries for words and bytes, in bytes.
    fn taken(&self) -> usize {
        match self {
            Self::Each(page) => {
                size_of::<Each>() + page.bytes.as_ref().map_or(0, |_| size_of::<Bytes>())
            }
            _ => 0,
        }
    }

    /// Records a write within the page. `entry` is the entry of the first byte.
    fn write(&mut self, within: usize, length: usize, entry: Entry) {
        match self {
            Self::Each(page) if length < PAGE || entry.def.is_value() => {
                return page.write(within, length, entry.def, entry.cost);
            }
            _ if length == PAGE => {
                *self = Self::Whole(entry);
                return;
            }
            Self::Whole(before) => *self = Self::Few(vec![Part::new(0, *before)]),
            _ => {}
        }
        let Self::Few(parts) = self else { return };
        put(parts, within, within + length, entry);
        if parts.len() > FEW {
            let mut page = Each::new();
            let ends = parts.iter().skip(1).map(|part| usize::from(part.start));
            for (part, end) in parts.iter().zip(ends.chain([PAGE])) {
                let start = usize::from(part.start);
                page.write(start, end - start, part.def, part.cost);
            }
            *self = Self::Each(page);
        }
    }
}

/// Replaces the parts that a new part overlaps.
fn put(parts: &mut Vec<Part>, start: usize, end: usize, entry: Entry) {
    let first = parts.partition_point(|part| usize::from(part.start) < start);
    let behind = parts.partition_point(|part| usize::from(part.start) < end);
    // A part that the new part splits continues after it.
    let goes_on = end < PAGE
        && parts
            .get(behind)
            .is_none_or(|part| usize::from(part.start) > end);
    let rest = goes_on.then(|| Part::new(end, parts[behind - 1].at(end)));
    let new = Part::new(start, entry);
    parts.splice(first..behind, [new].into_iter().chain(rest));
}

impl Each {
    fn new() -> Box<Self> {
        Box::new(Self {
            defs: [0; PAGE / WORD],
            costs: [0; PAGE / WORD],
            bytes: None,
        })
    }

    #[inline]
    fn byte(&self, within: usize) -> Entry {
        let word = within / WORD;
        match (self.defs[word], &self.bytes) {
            (APART, Some(bytes)) => Entry {
                def: Def(bytes.defs[within]),
                cost: bytes.costs[within],
            },
            (def, _) => Entry {
                def: Def(def).at((within % WORD) as u64),
                cost: self.costs[word],
            },
        }
    }

    /// Packs the page. The definitions of words come first, then the definitions of separate bytes.
    /// The bytes are grouped by their position in the word, because a loop writes the same byte of
    /// each word. Costs are packed in the same way.
    fn packed(&self) -> Packed {
        let apart = Vec::from_iter((0..PAGE / WORD).filter(|word| self.defs[*word] == APART));
        let (mut defs, mut costs) = (Vec::new(), Vec::from(self.costs.map(u64::from)));
        if let Some(bytes) = &self.bytes {
            for at in places(&apart) {
                defs.push(bytes.defs[at]);
                costs.push(u64::from(bytes.costs[at]));
            }
        }
        let mut bytes = Vec::new();
        for numbers in [&self.defs, &*defs, &*costs] {
            pack(numbers, &mut bytes);
        }
        Packed {
            bytes: bytes.into(),
            kept: false,
        }
    }

    fn keep(&mut self) {
        self.costs.fill(KEPT as u8);
        if let Some(bytes) = &mut self.bytes {
            bytes.costs.fill(KEPT as u8);
        }
    }

    /// Gives the bytes of a word separate entries.
    #[inline]
    fn apart(&mut self, word: usize) -> &mut Bytes {
        let bytes = self.bytes.get_or_insert_with(Bytes::new);
        let def = std::mem::replace(&mut self.defs[word], APART);
        if def != APART {
            for i in 0..WORD {
                bytes.defs[word * WORD + i] = Def(def).at(i as u64).0;
                bytes.costs[word * WORD + i] = self.costs[word];
            }
        }
        bytes
    }

    /// Records a write within the page. `def` is the definition of the first byte.
    fn write(&mut self, within: usize, length: usize, def: Def, cost: u8) {
        let end = within + length;
        let mut at = within;
        while at < end {
            let word = at / WORD;
            let next = ((word + 1) * WORD).min(end);
            if next - at == WORD {
                self.defs[word] = def.at((at - within) as u64).0;
                self.costs[word] = cost;
            } else {
                let bytes = self.apart(word);
                for i in at..next {
                    bytes.defs[i] = def.at((i - within) as u64).0;
                    bytes.costs[i] = cost;
                }
            }
            at = next;
        }
    }
}

/// Returns the positions of the bytes of some words: all first bytes, then all second bytes, and so
/// on.
fn places(words: &[usize]) -> impl Iterator<Item = usize> {
    (0..WORD).flat_map(move |byte| words.iter().map(move |word| word * WORD + byte))
}

impl Packed {
    fn unpacked(&self) -> Box<Each> {
        let mut page = Each::new();
        let mut from = 0;
        let mut next = |numbers: &mut [u64]| from += unpack(&self.bytes[from..], numbers);
        next(&mut page.defs);
        let apart = (0..PAGE / WORD).filter(|word| page.defs[*word] == APART);
        let apart = Vec::from_iter(apart);
        let mut defs = vec![0; apart.len() * WORD];
        next(&mut defs);
        let mut costs = vec![0; PAGE / WORD + defs.len()];
        next(&mut costs);
        for (cost, &packed) in page.costs.iter_mut().zip(&costs) {
            *cost = packed as u8;
        }
        if !apart.is_empty() {
            let bytes = page.bytes.insert(Bytes::new());
            let each = defs.iter().zip(&costs[PAGE / WORD..]);
            for (at, (&def, &cost)) in places(&apart).zip(each) {
                (bytes.defs[at], bytes.costs[at]) = (def, cost as u8);
            }
        }
        if self.kept {
            page.keep();
        }
        page
    }
}

impl Bytes {
    fn new() -> Box<Self> {
        Box::new(Self {
            defs: [0; PAGE],
            costs: [0; PAGE],
        })
    }
}

impl Shadow {
    /// Returns the shadow of an unwritten memory. `room` is the approximate limit for entries of
    /// words and bytes, in bytes.
    pub(super) fn new(room: usize) -> Self {
        Self {
            pages: Vec::new(),
            open: VecDeque::new(),
            taken: 0,
            room,
            first: Entry::default(),
        }
    }

    /// Updates the total size after a change to a page that took `before` bytes.
    fn changed(&mut self, page: usize, before: usize) {
        let after = self.pages[page].taken();
        self.taken = self.taken + after - before;
        if after == 0 || before == after {
            return;
        }
        if before == 0 {
            self.open.push_back(page as u32);
            if self.open.len() > 2 * self.pages.len() {
                let mut seen = vec![false; self.pages.len()];
                self.open
                    .retain(|&page| !std::mem::replace(&mut seen[page as usize], true));
            }
        }
        while self.taken > self.room
            && let Some(oldest) = self.open.pop_front()
        {
            if oldest as usize == page {
                self.open.push_back(oldest);
                if self.open.len() == 1 {
                    break;
                }
                continue;
            }
            let oldest = &mut self.pages[oldest as usize];
            let taken = oldest.taken();
            if let Page::Each(each) = oldest {
                *oldest = Page::Packed(each.packed());
                self.taken -= taken;
            }
        }
    }

    /// Unpacks a page, if it is packed.
    #[inline]
    fn unpack(&mut self, address: u64) {
        let page = (address >> PAGE_BITS) as usize;
        if let Some(Page::Packed(_)) = self.pages.get(page) {
            self.unpack_page(page);
        }
    }

    #[cold]
    fn unpack_page(&mut self, page: usize) {
        if let Page::Packed(packed) = &self.pages[page] {
            self.pages[page] = Page::Each(packed.unpacked());
            self.changed(page, 0);
        }
    }

    #[inline(always)]
    fn at(&self, address: u64) -> Option<&Each> {
        match self.pages.get((address >> PAGE_BITS) as usize) {
            Some(Page::Each(page)) => Some(page),
            _ => None,
        }
    }

    /// Returns the entry of a byte, and a number of bytes from there on that the same write wrote.
    /// The write may reach further, because only cheap checks are made.
    #[inline]
    fn piece(&mut self, address: u64) -> (Entry, usize) {
        self.unpack(address);
        let within = address as usize % PAGE;
        match self.pages.get((address >> PAGE_BITS) as usize) {
            Some(page) => page.piece(within),
            None => (self.first, PAGE - within),
        }
    }

    /// Returns the entry of one byte.
    #[inline]
    pub(super) fn byte(&mut self, address: u64) -> Entry {
        self.piece(address).0
    }

    /// Returns the common entry of the bytes of a range, if one write wrote them in this order.
    #[inline(always)]
    pub(super) fn single(&mut self, address: u64, length: u64) -> Option<Entry> {
        let within = address as usize % PAGE;
        let (word, offset) = (within / WORD, within % WORD);
        let Some(page) = self.at(address) else {
            return self.single_slowly(address, length).get();
        };
        let (first, cost) = (page.defs[word], page.costs[word]);
        if offset + length as usize <= WORD {
            if first != APART {
                let def = Def(first).at(offset as u64);
                return Some(Entry { def, cost });
            }
            if length == 1 {
                return Some(page.byte(within));
            }
        } else if offset == 0
            && length == 2 * WORD as u64
            && let Some(&second) = page.defs.get(word + 1)
            && let Some(&other) = page.costs.get(word + 1)
            && first != APART
        {
            let def = Def(first);
            let one = def.fits(length) && second == def.at(WORD as u64).0;
            if one || second != APART {
                let cost = cost.max(other);
                return one.then_some(Entry { def, cost });
            }
        }
        self.single_slowly(address, length).get()
    }

    #[inline(never)]
    fn single_slowly(&mut self, address: u64, length: u64) -> Answer {
        let first = self.byte(address);
        if !first.def.fits(length) {
            return Answer::NONE;
        }
        let mut cost = first.cost;
        for i in 1..length {
            let entry = self.byte(address.wrapping_add(i));
            if entry.def != first.def.at(i) {
                return Answer::NONE;
            }
            cost = cost.max(entry.cost);
        }
        Answer::new(first.def, cost)
    }

    /// Records a write to a range. With a stepping entry, byte i of the range is byte i of a value.
    #[inline(always)]
    pub(super) fn write(&mut self, address: u64, length: u64, entry: Entry) {
        // Most writes cover one or two words.
        let within = address as usize % PAGE;
        let word = within / WORD;
        if within.is_multiple_of(WORD)
            && let Some(Page::Each(page)) = self.pages.get_mut((address >> PAGE_BITS) as usize)
        {
            if length == WORD as u64 {
                page.defs[word] = entry.def.0;
                page.costs[word] = entry.cost;
                return;
            }
            if length == 2 * WORD as u64 && word + 1 < PAGE / WORD {
                page.defs[word] = entry.def.0;
                page.costs[word] = entry.cost;
                page.defs[word + 1] = entry.def.at(WORD as u64).0;
                page.costs[word + 1] = entry.cost;
                return;
            }
        }
        self.write_slowly(address, length, entry);
    }

    #[inline(never)]
    fn write_slowly(&mut self, address: u64, length: u64, entry: Entry) {
        let mut done = 0;
        while done < length {
            let at = address.wrapping_add(done);
            let within = at as usize % PAGE;
            let count = (length - done).min((PAGE - within) as u64) as usize;
            let (def, cost) = (entry.def.at(done), entry.cost);
            if count < PAGE || def.is_value() {
                self.unpack(at);
            }
            let number = (at >> PAGE_BITS) as usize;
            let page = self.page(number);
            let before = page.taken();
            page.write(within, count, Entry { def, cost });
            self.changed(number, before);
            done += count as u64;
        }
    }

    /// Marks the values of all writes as kept, so that they are no longer computed.
    pub(super) fn keep(&mut self) {
        for page in &mut self.pages {
            match page {
                Page::Whole(entry) if *entry == Entry::default() => {}
                Page::Whole(entry) => entry.cost = KEPT as u8,
                Page::Few(parts) => parts.iter_mut().for_each(|part| part.cost = KEPT as u8),
                Page::Each(page) => page.keep(),
                Page::Packed(page) => page.kept = true,
            }
        }
    }

    /// Replaces the limit for entries. Marks unwritten bytes as written before the stretch, so that
    /// they are never computed.
    pub(super) fn resume(&mut self, room: usize) {
        self.room = room;
        self.first.cost = KEPT as u8;
    }

    /// Packs all pages.
    pub(super) fn pack(&mut self) {
        for page in &mut self.pages {
            if let Page::Each(each) = page {
                *page = Page::Packed(each.packed());
            }
        }
        self.open = VecDeque::new();
        self.taken = 0;
    }

    /// Returns the memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        let pages = self.pages.iter().map(|page| match page {
            Page::Whole(_) => 0,
            Page::Few(parts) => parts.capacity() * size_of::<Part>(),
            Page::Each(_) => page.taken(),
            Page::Packed(page) => page.bytes.len(),
        });
        pages.sum::<usize>() + self.pages.capacity() * size_of::<Page>()
    }

    /// Returns the entry of a byte whose page may be packed. Time: O(page).
    pub(super) fn look(&self, address: u64) -> Entry {
        match self.pages.get((address >> PAGE_BITS) as usize) {
            Some(page) => page.piece(address as usize % PAGE).0,
            None => self.first,
        }
    }

    fn page(&mut self, page: usize) -> &mut Page {
        if page >= self.pages.len() {
            let first = self.first;
            self.pages.resize_with(page + 1, || Page::Whole(first));
        }
        &mut self.pages[page]
    }
}

impl Shadow {
    /// Appends the runs that describe a range. Returns the largest cost.
    pub(super) fn runs(&mut self, range: Range, runs: &mut Vec<Run>) -> u32 {
        let first_run = runs.len();
        let mut dearest = 0;
        let mut at = 0;
        while at < range.length {
            // An element is a contiguous part of one write.
            let first = self.byte(range.address + at);
            dearest = dearest.max(u32::from(first.cost));
            let mut length = 1;
            while at + length < range.length && first.def.fits(length + 1) {
                let (next, together) = self.piece(range.address + at + length);
                if next.def != first.def.at(length) {
                    break;
                }
                // The byte after the end of a value does not belong to the value.
                let together = if first.def.is_value() {
                    1
                } else {
                    together as u64
                };
                length += together.min(range.length - at - length);
            }
            at += length;
            let (place, execution) = (first.def.place(), first.def.execution());
            if let Some(run) = runs[first_run..].last_mut()
                && run.place == place
                && run.length == length
            {
                let step = execution.wrapping_sub(run.execution);
                if run.count == 1 && step <= 1 {
                    run.step = step;
                }
                if execution == run.execution.wrapping_add(run.step.wrapping_mul(run.count)) {
                    run.count += 1;
                    continue;
                }
            }
            runs.push(Run {
                length,
                count: 1,
                place,
                execution,
                step: 0,
            });
        }
        dearest
    }
}
