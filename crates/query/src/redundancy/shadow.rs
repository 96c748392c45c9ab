//! What is known of each byte of memory: which accesses it is still available from.

use rustc_hash::FxHashMap;

/// Places have smaller numbers than this.
pub(super) const MOST_PLACES: u32 = 1 << 26;
/// An access of more bytes counts as one of so many: no load reads more.
const LONGEST: u64 = 16;
/// Bytes of memory that have their records together.
const PAGE: u64 = 1 << 16;

/// An access that a byte is available from: `when << 32 | place << 6 | reach << 1 | more`.
///
/// `reach` says how many bytes, from this one on, the access covered that were not written since: at least 1. `more` says that there are older ones which reach further.
/// Zero: none.
type Record = u64;

#[inline(always)]
fn record(when: u32, place: u32, reach: u64) -> Record {
    u64::from(when) << 32 | u64::from(place) << 6 | reach << 1
}

#[inline(always)]
fn reach(record: Record) -> u64 {
    record >> 1 & 31
}

#[inline(always)]
fn when(record: Record) -> u32 {
    (record >> 32) as u32
}

/// An access that a load could have had its value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Available {
    pub place: u32,
    pub when: u32,
}

impl Available {
    fn of(record: Record) -> Self {
        Self {
            place: (record >> 6) as u32 & (MOST_PLACES - 1),
            when: when(record),
        }
    }
}

/// One memory. For each byte it has the latest access, and of older ones those that reach further than all that are later: so whatever a load reads, the latest access that covered
/// it all is among those of its first byte. Nearly always there is one.
///
/// Invariant: what an access covered is available from it at each byte that it covered, so a byte's longest reach is at most one more than that of the next byte.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    pages: Vec<Option<Box<[Record]>>>,
    /// By the byte's address, the older ones, the latest last: each reaches further than those behind it.
    older: FxHashMap<u64, Vec<Record>>,
}

impl Shadow {
    #[inline(always)]
    fn page(&mut self, page: usize) -> &mut [Record] {
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        // Zeroed by the system, and not there before it is touched.
        self.pages[page].get_or_insert_with(|| vec![0; PAGE as usize].into())
    }

    /// A load of so many bytes, 16 at most: what it could have had its value from, the latest. Then the bytes are available from it.
    #[inline]
    pub fn load(&mut self, address: u64, length: u64, place: u32, now: u32) -> Option<Available> {
        let at = (address % PAGE) as usize;
        if at + length as usize > PAGE as usize {
            return self.load_across(address, length, place, now);
        }
        let records = &mut self.page((address / PAGE) as usize)[at..at + length as usize];
        let first = records[0];
        // The usual case: what was there reaches as far as this, or less far and there is nothing older.
        let mut plain = true;
        for (k, &known) in records.iter().enumerate() {
            let (here, new) = (reach(known), length - k as u64);
            plain &= here == new || known & 1 == 0 && here < new;
        }
        if plain {
            for (k, known) in records.iter_mut().enumerate() {
                *known = record(now, place, length - k as u64) | *known & 1;
            }
            return (reach(first) >= length).then(|| Available::of(first));
        }
        self.load_across(address, length, place, now)
    }

    #[cold]
    fn load_across(
        &mut self,
        address: u64,
        length: u64,
        place: u32,
        now: u32,
    ) -> Option<Available> {
        let first = self.get(address);
        let mut found = Some(first);
        if reach(first) < length {
            let older = self.older.get(&address).filter(|_| first & 1 == 1);
            let older = older.into_iter().flatten().rev();
            found = older.copied().find(|&known| reach(known) >= length);
        }
        for k in 0..length {
            let (at, new) = (address + k, record(now, place, length - k));
            let known = self.get(at);
            let mut more = known & 1;
            if reach(known) > reach(new) {
                self.older.entry(at).or_default().push(known & !1);
                more = 1;
            } else if more == 1 {
                more = self.drop_older(at, |known| reach(known) > reach(new));
            }
            self.set(at, new | more);
        }
        found.map(Available::of)
    }

    /// A store of so many bytes, 16 at most: only from it they are available.
    #[inline]
    pub fn store(&mut self, address: u64, length: u64, place: u32, now: u32) {
        let at = (address % PAGE) as usize;
        if at == 0 || at + length as usize > PAGE as usize {
            return self.store_across(address, length, place, now);
        }
        let records = &mut self.page((address / PAGE) as usize)[at - 1..at + length as usize];
        let more = records.iter().fold(0, |more, &known| more | known & 1);
        if more == 1 || reach(records[0]) > 1 {
            return self.store_across(address, length, place, now);
        }
        for (k, known) in records[1..].iter_mut().enumerate() {
            *known = record(now, place, length - k as u64);
        }
    }

    #[cold]
    fn store_across(&mut self, address: u64, length: u64, place: u32, now: u32) {
        self.write(address, length);
        for k in 0..length {
            self.set(address + k, record(now, place, length - k));
        }
    }

    /// Bytes are written that no load or store had: they are available from nothing.
    pub fn write(&mut self, address: u64, length: u64) {
        if length == 0 {
            return;
        }
        let end = address + length;
        let mut at = address;
        while at < end {
            let next = end.min((at / PAGE + 1) * PAGE);
            if let Some(Some(page)) = self.pages.get_mut((at / PAGE) as usize) {
                let own = (at % PAGE) as usize..=((next - 1) % PAGE) as usize;
                for (at, known) in (at..next).zip(&mut page[own]) {
                    if *known & 1 == 1 {
                        self.older.remove(&at);
                    }
                    *known = 0;
                }
            }
            at = next;
        }
        // What reached into them from before reaches them no more.
        for before in 1..LONGEST.min(address + 1) {
            if !self.shorten(address - before, before) {
                break;
            }
        }
    }

    /// Nothing reaches further from this byte than so far. Whether something did.
    fn shorten(&mut self, at: u64, to: u64) -> bool {
        let known = self.get(at);
        let limited = |known: Record| known & !(31 << 1) | reach(known).min(to) << 1;
        if known & 1 == 0 {
            if reach(known) <= to {
                return false;
            }
            self.set(at, limited(known));
            return true;
        }
        let older = self.older.get_mut(&at);
        let mut kept: Vec<Record> = Vec::new();
        let mut any = reach(known) > to;
        let mut longest = reach(known).min(to);
        for &old in older.iter().flat_map(|older| older.iter().rev()) {
            any |= reach(old) > to;
            if reach(old).min(to) > longest {
                longest = reach(old).min(to);
                kept.push(limited(old));
            }
        }
        kept.reverse();
        let more = u64::from(!kept.is_empty());
        match kept.is_empty() {
            true => drop(self.older.remove(&at)),
            false => drop(self.older.insert(at, kept)),
        }
        self.set(at, limited(known) & !1 | more);
        any
    }

    /// Keeps some of the older accesses of a byte. 1 if any is left.
    fn drop_older(&mut self, at: u64, keep: impl Fn(Record) -> bool) -> u64 {
        let Some(older) = self.older.get_mut(&at) else {
            return 0;
        };
        older.retain(|&known| keep(known));
        if older.is_empty() {
            self.older.remove(&at);
            return 0;
        }
        1
    }

    #[inline]
    fn get(&self, at: u64) -> Record {
        let page = self.pages.get((at / PAGE) as usize);
        page.and_then(Option::as_ref)
            .map_or(0, |page| page[(at % PAGE) as usize])
    }

    fn set(&mut self, at: u64, known: Record) {
        self.page((at / PAGE) as usize)[(at % PAGE) as usize] = known;
    }

    /// Changes when each access happened.
    pub fn renumber(&mut self, new: impl Fn(u32) -> u32) {
        let renumbered =
            |known: Record| u64::from(new(when(known))) << 32 | known & u64::from(u32::MAX);
        for page in self.pages.iter_mut().flatten() {
            for known in page.iter_mut().filter(|known| **known != 0) {
                *known = renumbered(*known);
            }
        }
        for known in self.older.values_mut().flatten() {
            *known = renumbered(*known);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Available, PAGE, Shadow};

    #[derive(Clone, Copy, Debug)]
    enum Does {
        Load,
        Store,
        Write,
    }

    /// An access.
    #[derive(Clone, Copy, Debug)]
    struct Access {
        does: Does,
        first: u64,
        length: u64,
    }

    fn access() -> impl Strategy<Value = Access> {
        let does =
            prop_oneof![4 => Just(Does::Load), 3 => Just(Does::Store), 1 => Just(Does::Write)];
        let length = prop_oneof![Just(1u64), Just(2), Just(4), Just(4), Just(8), Just(16)];
        // Around where pages meet, and at the beginning of memory.
        let first = prop_oneof![PAGE - 20..PAGE + 6, 0..8u64];
        (does, first, length, 0..40u64).prop_map(|(does, first, length, long)| Access {
            does,
            first,
            length: if let Does::Write = does { long } else { length },
        })
    }

    /// The latest access that covers these bytes and after which none of them was written: by looking at all of them.
    fn naive(before: &[Access], of: Access) -> Option<Available> {
        let end = of.first + of.length;
        for (k, access) in before.iter().enumerate().rev() {
            let covers = access.first <= of.first && access.first + access.length >= end;
            if covers && !matches!(access.does, Does::Write) {
                return Some(Available {
                    place: k as u32 % 5,
                    when: k as u32 + 1,
                });
            }
            let overlaps =
                access.length > 0 && access.first < end && of.first < access.first + access.length;
            if overlaps && !matches!(access.does, Does::Load) {
                return None;
            }
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(800))]

        #[test]
        fn loads_are_available_from_what_a_search_finds(
            accesses in proptest::collection::vec(access(), 1..120),
        ) {
            let mut shadow = Shadow::default();
            for (k, &access) in accesses.iter().enumerate() {
                let Access { does, first, length } = access;
                let (place, now) = (k as u32 % 5, k as u32 + 1);
                match does {
                    Does::Load => {
                        let found = shadow.load(first, length, place, now);
                        prop_assert_eq!(found, naive(&accesses[..k], access), "access {}", k);
                    }
                    Does::Store => shadow.store(first, length, place, now),
                    Does::Write => shadow.write(first, length),
                }
            }
        }
    }
}
