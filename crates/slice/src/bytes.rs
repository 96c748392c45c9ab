//! A set of the wanted bytes of all memories.

use afterimage_machine::Range;

use crate::reach::Reach;

/// The number of bytes in a page.
const PAGE: u64 = 4096;

/// The depths to which to follow the bytes of a page.
#[derive(Debug)]
enum Page {
    All(Reach),
    Each(Box<[Reach; PAGE as usize]>),
}

impl Default for Page {
    fn default() -> Self {
        Self::All(Reach::NONE)
    }
}

impl Page {
    fn each(&mut self) -> &mut [Reach] {
        if let Self::All(reach) = self {
            *self = Self::Each(Box::new([*reach; PAGE as usize]));
        }
        match self {
            Self::Each(bytes) => &mut bytes[..],
            Self::All(_) => &mut [],
        }
    }
}

/// The wanted bytes, each with the depth to which to follow it. O(1) per examined byte. A page
/// whose bytes all have the same depth needs only its entry.
#[derive(Debug, Default)]
pub(crate) struct ByteSet {
    memories: Vec<Vec<Page>>,
    count: u64,
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
        let behind = end.min((page + 1).saturating_mul(PAGE));
        let part = (page as usize, (at % PAGE) as usize, (behind - at) as usize);
        at = behind;
        Some(part)
    })
}

/// Returns the number of wanted bytes.
fn wanted(bytes: &[Reach]) -> u64 {
    bytes.iter().map(|byte| u64::from(byte.is_some())).sum()
}

impl ByteSet {
    /// Returns the number of wanted bytes.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether a byte of a range is wanted.
    #[inline]
    pub fn any(&self, range: Range) -> bool {
        let Some(pages) = self.memories.get(range.memory as usize) else {
            return false;
        };
        // Missing pages are skipped at once.
        let parts = parts(range).take_while(|(page, ..)| *page < pages.len());
        for (page, from, count) in parts {
            let any = match &pages[page] {
                Page::All(reach) => reach.is_some(),
                Page::Each(bytes) => match &bytes[from..from + count] {
                    [a, b, c, d] => a.max(b).max(c.max(d)).is_some(),
                    [byte] => byte.is_some(),
                    bytes => bytes.iter().fold(Reach::NONE, |a, b| a.max(*b)).is_some(),
                },
            };
            if any {
                return true;
            }
        }
        false
    }

    /// Marks the bytes of a range as wanted, at least this far.
    pub fn add(&mut self, range: Range, reach: Reach) {
        if reach.is_none() {
            return;
        }
        let memory = range.memory as usize;
        if self.memories.len() <= memory {
            self.memories.resize_with(memory + 1, Vec::new);
        }
        let pages = &mut self.memories[memory];
        for (page, from, count) in parts(range) {
            if pages.len() <= page {
                pages.resize_with(page + 1, Page::default);
            }
            let page = &mut pages[page];
            if let Page::All(before) = page
                && (count as u64 == PAGE || *before >= reach)
            {
                self.count += if before.is_some() { 0 } else { count as u64 };
                *before = reach.max(*before);
                continue;
            }
            let bytes = &mut page.each()[from..from + count];
            self.count += count as u64 - wanted(bytes);
            bytes.iter_mut().for_each(|byte| *byte = reach.max(*byte));
        }
    }

    /// Removes the bytes of a range. Returns how far the wanted bytes must be followed.
    #[inline]
    pub fn take(&mut self, range: Range) -> Reach {
        let Some(pages) = self.memories.get_mut(range.memory as usize) else {
            return Reach::NONE;
        };
        let mut farthest = Reach::NONE;
        let known = pages.len();
        for (page, from, count) in parts(range).take_while(|(page, ..)| *page < known) {
            let page = &mut pages[page];
            if let Page::All(before) = page
                && (count as u64 == PAGE || before.is_none())
            {
                self.count -= if before.is_some() { count as u64 } else { 0 };
                farthest = farthest.max(std::mem::take(before));
                continue;
            }
            let bytes = &mut page.each()[from..from + count];
            let reach = bytes.iter().fold(Reach::NONE, |a, b| a.max(*b));
            if reach.is_some() {
                farthest = farthest.max(reach);
                self.count -= wanted(bytes);
                bytes.fill(Reach::NONE);
            }
        }
        farthest
    }

    /// Appends the wanted parts of a range to `found`, ascending. Each part has a single reach.
    pub fn parts(&self, range: Range, found: &mut Vec<(Range, Reach)>) {
        let pages = self.memories.get(range.memory as usize);
        let pages = pages.map_or(&[][..], Vec::as_slice);
        let mut open: Option<(Range, Reach)> = None;
        for (page, from, count) in parts(range).take_while(|(page, ..)| *page < pages.len()) {
            let start = page as u64 * PAGE + from as u64;
            let (all, each) = match &pages[page] {
                Page::All(reach) => (Some((count, *reach)), &[][..]),
                Page::Each(bytes) => (None, &bytes[from..from + count]),
            };
            let each = each.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0]));
            let mut at = start;
            for (length, reach) in all.into_iter().chain(each) {
                let length = length as u64;
                match &mut open {
                    Some((before, of)) if *of == reach && before.address + before.length == at => {
                        before.length += length;
                    }
                    _ => {
                        found.extend(open.take());
                        open = reach.is_some().then_some((
                            Range {
                                address: at,
                                length,
                                ..range
                            },
                            reach,
                        ));
                    }
                }
                at += length;
            }
        }
        found.extend(open);
    }

    /// Returns all wanted bytes, as ranges.
    pub fn all(&self) -> Vec<Range> {
        let mut found = Vec::new();
        for (memory, pages) in (0..).zip(&self.memories) {
            let whole = Range {
                memory,
                address: 0,
                length: pages.len() as u64 * PAGE,
            };
            self.parts(whole, &mut found);
        }
        let mut joined: Vec<Range> = Vec::new();
        for (range, _) in found {
            match joined.last_mut() {
                Some(last)
                    if last.memory == range.memory
                        && last.address + last.length == range.address =>
                {
                    last.length += range.length;
                }
                _ => joined.push(range),
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn range(address: u64, length: u64) -> Range {
        Range {
            memory: 1,
            address,
            length,
        }
    }

    #[test]
    fn it_is_a_map() {
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
            (seed >> 33) % below
        };
        let (mut set, mut naive) = (ByteSet::default(), BTreeMap::new());
        for _ in 0..20_000 {
            let length = match random(4) {
                0 => random(10_000),
                1 => random(200),
                _ => random(17),
            };
            let range = range(random(30_000), length);
            let bytes = range.address..range.address + length;
            assert_eq!(set.any(range), naive.range(bytes.clone()).next().is_some());
            match random(5) {
                0 | 1 => {
                    let reach = Reach::of_depth(random(3) as u8).expect("not deep");
                    set.add(range, reach);
                    for byte in bytes {
                        let known = naive.entry(byte).or_insert(reach);
                        *known = reach.max(*known);
                    }
                }
                2 => {
                    let mut parts = Vec::new();
                    set.parts(range, &mut parts);
                    let found = parts.iter().flat_map(|(part, reach)| {
                        (part.address..part.address + part.length).map(|byte| (byte, *reach))
                    });
                    let expected = naive.range(bytes).map(|(byte, reach)| (*byte, *reach));
                    assert!(found.eq(expected), "{range:?}");
                    let apart = |pair: &[(Range, Reach)]| {
                        let [(a, of_a), (b, of_b)] = pair else {
                            return true;
                        };
                        a.address + a.length < b.address || of_a != of_b
                    };
                    assert!(parts.windows(2).all(apart), "{parts:?}");
                }
                _ => {
                    let there = naive.range(bytes.clone()).map(|(_, reach)| *reach).max();
                    assert_eq!(set.take(range), there.unwrap_or_default());
                    bytes.for_each(|byte| {
                        naive.remove(&byte);
                    });
                }
            }
            assert_eq!(set.len(), naive.len() as u64);
        }
        let all = set.all();
        let apart = |pair: &[Range]| pair[0].address + pair[0].length < pair[1].address;
        assert!(all.windows(2).all(apart), "{all:?}");
        let all = all.iter().flat_map(|p| p.address..p.address + p.length);
        assert!(all.eq(naive.keys().copied()));
        assert!(!set.any(Range {
            memory: 7,
            ..range(0, 9)
        }));
    }
}
