//! Tracks, for each byte of memory, the accesses that still make it available.

use afterimage_machine::{Labels, Range};

/// The upper bound of place numbers, exclusive.
pub(super) const MOST_PLACES: u32 = 1 << 26;
/// The maximum number of bytes of an access. Larger accesses are cut to this length, because no
/// load reads more.
const LONGEST: u64 = 16;
/// The number of bytes whose records are stored together.
const CHUNK: u64 = 256;
/// The number of chunks that are open at once. They cover 16 MiB of memory.
const OPEN: usize = if cfg!(test) { 4 } else { 1 << 16 };
/// The maximum number of records for a byte. There is at most one for each possible reach.
const LAYERS: usize = LONGEST as usize;

/// An access that makes a byte available: `when << 32 | place << 6 | reach << 1 | more`.
///
/// `reach` is the number of bytes of the access, from this byte on, that have not been written
/// since. It is at least 1. `more` is set if older accesses reach further. A record of zero means
/// no access.
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

/// An access from which a load could have taken its value.
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

/// For each byte of the memories, the latest access and the older accesses that reach further than
/// all later accesses. So the latest access that covers all bytes of a load is recorded at the
/// load's first byte. A byte nearly always has only one access.
///
/// Invariant: an access is recorded at each byte that it covered. So the longest reach of a byte is
/// at most one more than the longest reach of the next byte.
#[derive(Debug)]
pub(super) struct Shadow {
    /// The records. Each memory has one layer for the latest accesses and one for each older
    /// access.
    records: Labels,
    scratch: Vec<Record>,
}

impl Default for Shadow {
    fn default() -> Self {
        Self {
            records: Labels::new(OPEN),
            scratch: Vec::new(),
        }
    }
}

impl Shadow {
    /// Records a load of at most 16 bytes, which makes these bytes available. Returns the latest
    /// access from which the load could have taken its value.
    #[inline]
    pub fn load(&mut self, range: Range, place: u32, now: u32) -> Option<Available> {
        let (address, length) = (range.address, range.length);
        let at = (address % CHUNK) as usize;
        if at + length as usize > CHUNK as usize {
            return self.load_across(range, place, now);
        }
        let chunk = self.records.chunk(layer(range, 0), address / CHUNK);
        let records = &mut chunk[at..at + length as usize];
        let first = records[0];
        // In the usual case, each record reaches as far as this access, or has no older records.
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
        self.load_across(range, place, now)
    }

    #[cold]
    fn load_across(&mut self, range: Range, place: u32, now: u32) -> Option<Available> {
        let mut list = std::mem::take(&mut self.scratch);
        let mut found = None;
        for k in 0..range.length {
            let at = range.address + k;
            self.list(range, at, &mut list);
            if k == 0 {
                let mut list = list.iter();
                found = list.find(|&&known| reach(known) >= range.length).copied();
            }
            let new = record(now, place, range.length - k);
            list.retain(|&known| reach(known) > reach(new));
            list.insert(0, new);
            self.put(range, at, &list);
        }
        self.scratch = list;
        found.map(Available::of)
    }

    /// Records a store of at most 16 bytes. Afterwards these bytes are available only from this
    /// store.
    #[inline]
    pub fn store(&mut self, range: Range, place: u32, now: u32) {
        let (address, length) = (range.address, range.length);
        let at = (address % CHUNK) as usize;
        if at == 0 || at + length as usize > CHUNK as usize {
            return self.store_across(range, place, now);
        }
        let chunk = self.records.chunk(layer(range, 0), address / CHUNK);
        let records = &mut chunk[at - 1..at + length as usize];
        if records[0] & 1 == 1 || reach(records[0]) > 1 {
            return self.store_across(range, place, now);
        }
        for (k, known) in records[1..].iter_mut().enumerate() {
            *known = record(now, place, length - k as u64);
        }
    }

    #[cold]
    fn store_across(&mut self, range: Range, place: u32, now: u32) {
        self.write(range);
        for k in 0..range.length {
            let known = record(now, place, range.length - k);
            self.records.set(layer(range, 0), range.address + k, known);
        }
    }

    /// Records a write that cannot be a source. Afterwards no access makes the bytes available.
    pub fn write(&mut self, range: Range) {
        if range.length == 0 {
            return;
        }
        let (first, end) = (range.address, range.address + range.length);
        self.records.fill(layer(range, 0), first, end, 0);
        // Earlier accesses that reached into these bytes now end before them.
        for before in 1..LONGEST.min(first + 1) {
            if !self.shorten(range, first - before, before) {
                break;
            }
        }
    }

    /// Limits the reach of the accesses at this byte. Returns whether any of them reached further.
    fn shorten(&mut self, range: Range, at: u64, to: u64) -> bool {
        let limited = |known: Record| known & !(31 << 1) | reach(known).min(to) << 1;
        let mut list = std::mem::take(&mut self.scratch);
        self.list(range, at, &mut list);
        let any = list.iter().any(|&known| reach(known) > to);
        if any {
            list.iter_mut().for_each(|known| *known = limited(*known));
            list.dedup_by_key(|known| reach(*known));
            self.put(range, at, &list);
        }
        self.scratch = list;
        any
    }

    /// Puts the records of a byte into `list`, latest first. Each reaches further than the previous
    /// record.
    fn list(&mut self, range: Range, at: u64, list: &mut Vec<Record>) {
        list.clear();
        for older in 0..LAYERS {
            let known = self.records.get(layer(range, older), at);
            if known == 0 {
                break;
            }
            list.push(known & !1);
            if known & 1 == 0 {
                break;
            }
        }
    }

    /// Sets the records of a byte. Layers after the last record are ignored.
    fn put(&mut self, range: Range, at: u64, list: &[Record]) {
        for (older, &known) in list.iter().enumerate() {
            let more = u64::from(older + 1 < list.len());
            self.records.set(layer(range, older), at, known | more);
        }
    }

    /// Changes the time of each access.
    pub fn renumber(&mut self, new: impl Fn(u32) -> u32) {
        self.records.change(|known| match known {
            0 => 0,
            known => u64::from(new(when(known))) << 32 | known & u64::from(u32::MAX),
        });
    }
}

/// Returns the layer, in the memory of `range`, for the records that `older` newer records precede.
#[inline(always)]
fn layer(range: Range, older: usize) -> usize {
    range.memory as usize * LAYERS + older
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Available, CHUNK, Range, Shadow};

    #[derive(Clone, Copy, Debug)]
    enum Does {
        Load,
        Store,
        Write,
    }

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
        // Addresses around the boundaries of chunks, and at the beginning of memory.
        let first = prop_oneof![CHUNK - 20..CHUNK + 6, 0..8u64];
        (does, first, length, 0..40u64).prop_map(|(does, first, length, long)| Access {
            does,
            first,
            length: if let Does::Write = does { long } else { length },
        })
    }

    /// Finds the latest access that covers these bytes and was not followed by a write to any of
    /// them. Examines the accesses one by one, from the last.
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
                let range = Range { memory: 1, address: first, length };
                match does {
                    Does::Load => {
                        let found = shadow.load(range, place, now);
                        prop_assert_eq!(found, naive(&accesses[..k], access), "access {}", k);
                    }
                    Does::Store => shadow.store(range, place, now),
                    Does::Write => shadow.write(range),
                }
            }
        }
    }
}
