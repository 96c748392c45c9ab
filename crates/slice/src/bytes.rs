//! Sets of bytes of memories.

use afterimage_machine::Range;

/// Words of a page: one bit per byte.
const WORDS: usize = 64;
/// Bytes of a page.
const PAGE: u64 = 64 * WORDS as u64;

/// A set of bytes. O(1) per word of 64 bytes that is looked at; pages without a byte cost nothing but their place.
#[derive(Debug, Default)]
pub(crate) struct ByteSet {
    memories: Vec<Vec<Option<Box<[u64; WORDS]>>>>,
    count: u64,
}

/// The words that a range touches: number of the page, of the word in it, and which bits.
fn words(range: Range) -> impl DoubleEndedIterator<Item = (usize, usize, u64)> {
    let end = range.address.saturating_add(range.length);
    let last = if range.length == 0 {
        0
    } else {
        end.div_ceil(64)
    };
    (range.address / 64..last).map(move |word| {
        let from = range.address.saturating_sub(word * 64).min(63);
        let to = (end - word * 64).min(64);
        let mask = (u64::MAX << from) & (u64::MAX >> (64 - to));
        let page = word / WORDS as u64;
        (page as usize, (word % WORDS as u64) as usize, mask)
    })
}

impl ByteSet {
    /// How many bytes are in it.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether a byte of a range is in it.
    #[inline]
    pub fn any(&self, range: Range) -> bool {
        let Some(pages) = self.memories.get(range.memory as usize) else {
            return false;
        };
        let offset = range.address % 64;
        if offset + range.length <= 64 && range.length > 0 {
            let Some(Some(page)) = pages.get((range.address / PAGE) as usize) else {
                return false;
            };
            let word = page[(range.address / 64) as usize % WORDS];
            return (word >> offset) & (u64::MAX >> (64 - range.length)) != 0;
        }
        // Pages that are not there are passed at once.
        let end = range.address.saturating_add(range.length);
        let behind = (end.div_ceil(PAGE)).min(pages.len() as u64);
        (range.address / PAGE..behind).any(|number| {
            let Some(page) = &pages[number as usize] else {
                return false;
            };
            let from = range.address.max(number * PAGE);
            let part = Range {
                address: from,
                length: end.min((number + 1) * PAGE) - from,
                ..range
            };
            words(part).any(|(_, word, mask)| page[word] & mask != 0)
        })
    }

    /// Adds the bytes of a range.
    pub fn add(&mut self, range: Range) {
        let memory = range.memory as usize;
        if self.memories.len() <= memory {
            self.memories.resize_with(memory + 1, Vec::new);
        }
        let pages = &mut self.memories[memory];
        for (page, word, mask) in words(range) {
            if pages.len() <= page {
                pages.resize_with(page + 1, || None);
            }
            let page = pages[page].get_or_insert_with(|| Box::new([0; WORDS]));
            self.count += u64::from((mask & !page[word]).count_ones());
            page[word] |= mask;
        }
    }

    /// Takes the bytes of a range out. Whether there were any.
    pub fn take(&mut self, range: Range) -> bool {
        if !self.any(range) {
            return false;
        }
        let mut parts = Vec::new();
        self.parts(range, &mut parts);
        let pages = &mut self.memories[range.memory as usize];
        for part in parts {
            for (page, word, mask) in words(part) {
                if let Some(Some(page)) = pages.get_mut(page) {
                    self.count -= u64::from((mask & page[word]).count_ones());
                    page[word] &= !mask;
                }
            }
        }
        true
    }

    /// The parts of a range that are in it, ascending and as long as possible.
    pub fn parts(&self, range: Range, found: &mut Vec<Range>) {
        let Some(pages) = self.memories.get(range.memory as usize) else {
            return;
        };
        let end = range.address.saturating_add(range.length);
        let behind = end.min(pages.len() as u64 * PAGE);
        let mut open: Option<u64> = None;
        let mut at = range.address;
        while at < behind {
            let Some(page) = &pages[(at / PAGE) as usize] else {
                if let Some(from) = open.take() {
                    found.push(part(range, from, at));
                }
                at = (at / PAGE + 1) * PAGE;
                continue;
            };
            let word = page[(at / 64) as usize % WORDS] >> (at % 64);
            let rest = 64 - at % 64;
            match open {
                // The next byte that is in it.
                None => {
                    let skip = u64::from(word.trailing_zeros()).min(rest);
                    at += skip;
                    if skip < rest && at < behind {
                        open = Some(at);
                    }
                }
                // The next byte that is not.
                Some(from) => {
                    let run = u64::from(word.trailing_ones()).min(rest);
                    at += run;
                    if run < rest || at >= behind {
                        let to = at.min(behind);
                        found.push(part(range, from, to));
                        open = None;
                    }
                }
            }
        }
        if let Some(from) = open {
            found.push(part(range, from, behind));
        }
    }

    /// All of it, as ranges.
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
        found
    }
}

fn part(range: Range, from: u64, to: u64) -> Range {
    Range {
        address: from,
        length: to - from,
        ..range
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn range(address: u64, length: u64) -> Range {
        Range {
            memory: 1,
            address,
            length,
        }
    }

    #[test]
    fn it_is_a_set() {
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
            (seed >> 33) % below
        };
        let (mut set, mut naive) = (ByteSet::default(), BTreeSet::new());
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
                    set.add(range);
                    naive.extend(bytes);
                }
                2 => {
                    let mut parts = Vec::new();
                    set.parts(range, &mut parts);
                    let found = parts.iter().flat_map(|p| p.address..p.address + p.length);
                    assert!(found.eq(naive.range(bytes).copied()), "{range:?}");
                    let apart = |pair: &[Range]| pair[0].address + pair[0].length < pair[1].address;
                    assert!(parts.windows(2).all(apart), "{parts:?}");
                }
                _ => {
                    let there = naive.range(bytes.clone()).next().is_some();
                    assert_eq!(set.take(range), there);
                    bytes.for_each(|byte| {
                        naive.remove(&byte);
                    });
                }
            }
            assert_eq!(set.len(), naive.len() as u64);
        }
        let all = set.all();
        let all = all.iter().flat_map(|p| p.address..p.address + p.length);
        assert!(all.eq(naive.iter().copied()));
        assert!(!set.any(Range {
            memory: 7,
            ..range(0, 9)
        }));
    }
}
