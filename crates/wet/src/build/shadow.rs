//! Who wrote each byte last.

use afterimage_machine::Range;

use super::KEPT;
use super::buffers::Run;
use super::sites::Def;

/// Bytes of a page of the shadow.
const PAGE: usize = 4096;
const PAGE_BITS: u32 = 12;
/// Bytes of a word.
const WORD: usize = 4;

/// Per byte of a memory, who wrote it last, and how much work it is to compute what was written.
///
/// Where everything was written in aligned words, one entry per word is kept, else one per byte.
#[derive(Default)]
pub(super) struct Shadow {
    pages: Vec<Option<Page>>,
}

struct Page {
    defs: Box<[u64]>,
    costs: Box<[u8]>,
    /// One entry per byte.
    fine: bool,
}

impl Page {
    fn new() -> Self {
        Self {
            defs: vec![0; PAGE / WORD].into(),
            costs: vec![0; PAGE / WORD].into(),
            fine: false,
        }
    }

    /// From one entry per word to one per byte.
    fn refine(&mut self) {
        let defs = self.defs.iter();
        self.defs = defs
            .flat_map(|&def| (0..WORD as u64).map(move |i| Def(def).at(i).0))
            .collect();
        self.costs = self.costs.iter().flat_map(|&cost| [cost; WORD]).collect();
        self.fine = true;
    }
}

impl Page {
    /// See [`Shadow::single`]: the bytes from `within` on, with one entry per byte.
    #[inline(never)]
    fn single_fine(&self, within: usize, length: u64) -> Answer {
        let places = within..within + length as usize;
        let (defs, costs) = (&self.defs[places.clone()], &self.costs[places]);
        let first = Def(defs[0]);
        if !first.fits(length) {
            return Answer::NONE;
        }
        let step = first.step();
        let mut expected = first.0;
        for &def in defs {
            if def != expected {
                return Answer::NONE;
            }
            expected = expected.wrapping_add(step);
        }
        let cost = costs.iter().max();
        Answer::new(first, cost.copied().unwrap_or(0))
    }

    /// See [`Shadow::single`]: the bytes from `within` on, with one entry per word.
    #[inline(never)]
    fn single_coarse(&self, within: usize, length: u64) -> Answer {
        let places = within / WORD..(within + length as usize).div_ceil(WORD);
        let (defs, costs) = (&self.defs[places.clone()], &self.costs[places]);
        let first = Def(defs[0]);
        let offset = (within % WORD) as u64;
        if !first.fits(offset + length) {
            return Answer::NONE;
        }
        let step = first.step().wrapping_mul(WORD as u64);
        let mut expected = first.0;
        for &def in defs {
            if def != expected {
                return Answer::NONE;
            }
            expected = expected.wrapping_add(step);
        }
        let cost = costs.iter().max();
        Answer::new(first.at(offset), cost.copied().unwrap_or(0))
    }
}

/// Who wrote a byte, and what it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub def: Def,
    pub cost: u8,
}

/// An entry or none, as two numbers: what is returned through memory is waited for.
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

impl Shadow {
    /// The entry of one byte.
    #[inline]
    pub(super) fn byte(&self, address: u64) -> Entry {
        let within = address as usize % PAGE;
        match self.pages.get((address >> PAGE_BITS) as usize) {
            Some(Some(page)) if page.fine => Entry {
                def: Def(page.defs[within]),
                cost: page.costs[within],
            },
            Some(Some(page)) => Entry {
                def: Def(page.defs[within / WORD]).at(address % WORD as u64),
                cost: page.costs[within / WORD],
            },
            _ => Entry::default(),
        }
    }

    /// The entry of all bytes of a range, if they were written by one write and lie as it wrote them.
    #[inline(always)]
    pub(super) fn single(&self, address: u64, length: u64) -> Option<Entry> {
        let within = address as usize % PAGE;
        let page = match self.pages.get((address >> PAGE_BITS) as usize) {
            Some(Some(page)) if within + length as usize <= PAGE => page,
            _ => return self.single_slowly(address, length).get(),
        };
        if page.fine {
            return page.single_fine(within, length).get();
        }
        let word = within / WORD;
        let offset = within % WORD;
        let first = Entry {
            def: Def(page.defs[word]).at(offset as u64),
            cost: page.costs[word],
        };
        if offset + length as usize <= WORD {
            return Some(first);
        }
        page.single_coarse(within, length).get()
    }

    #[inline(never)]
    fn single_slowly(&self, address: u64, length: u64) -> Answer {
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

    /// A range was written. With `stepping`, byte i of it is byte i of a value.
    #[inline]
    pub(super) fn write(&mut self, address: u64, length: u64, entry: Entry) {
        // Most are a word.
        let within = address as usize % PAGE;
        if length == WORD as u64
            && within.is_multiple_of(WORD)
            && let Some(Some(page)) = self.pages.get_mut((address >> PAGE_BITS) as usize)
            && !page.fine
        {
            page.defs[within / WORD] = entry.def.0;
            page.costs[within / WORD] = entry.cost;
            return;
        }
        self.write_slowly(address, length, entry);
    }

    fn write_slowly(&mut self, address: u64, length: u64, entry: Entry) {
        let mut done = 0;
        while done < length {
            let at = address.wrapping_add(done);
            let within = at as usize % PAGE;
            let count = (length - done).min((PAGE - within) as u64) as usize;
            let page = self.page((at >> PAGE_BITS) as usize);
            let words = within.is_multiple_of(WORD) && count.is_multiple_of(WORD);
            if !page.fine && !words {
                page.refine();
            }
            let unit = if page.fine { 1 } else { WORD };
            let places = within / unit..(within + count) / unit;
            page.costs[places.clone()].fill(entry.cost);
            let first = entry.def.at(done).0;
            let step = entry.def.step().wrapping_mul(unit as u64);
            for (i, def) in page.defs[places].iter_mut().enumerate() {
                *def = first.wrapping_add(step.wrapping_mul(i as u64));
            }
            done += count as u64;
        }
    }

    /// What was written is not to be computed any more.
    pub(super) fn keep(&mut self) {
        for page in self.pages.iter_mut().flatten() {
            page.costs.fill(KEPT as u8);
        }
    }

    fn page(&mut self, page: usize) -> &mut Page {
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        self.pages[page].get_or_insert_with(Page::new)
    }
}

impl Shadow {
    /// Adds the runs that a range consists of. The answer is the largest of their costs.
    pub(super) fn runs(&self, range: Range, runs: &mut Vec<Run>) -> u32 {
        let first_run = runs.len();
        let mut dearest = 0;
        let mut at = 0;
        while at < range.length {
            // An element: what one write wrote, as far as it lies there in one piece.
            let first = self.byte(range.address + at);
            dearest = dearest.max(u32::from(first.cost));
            let mut length = 1;
            while at + length < range.length
                && first.def.fits(length + 1)
                && self.byte(range.address + at + length).def == first.def.at(length)
            {
                length += 1;
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
