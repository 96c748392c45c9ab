//! Tests the shadow and the patterns against slow, obvious versions.

use std::collections::HashMap;

use afterimage_machine::Range;
use afterimage_testkit::modules::SplitMix64;

use super::KEPT;
use super::buffers::{Column, Label, Labels, Room};
use super::patterns::{Pattern, Patterns};
use super::shadow::{Entry, Shadow};
use super::sites::{Def, HOST};

/// The size of the written memory in bytes. It has several pages of the shadow, and the last page
/// is partial.
const MEMORY: usize = 4096 * 3 + 100;
/// Room for one page with separate bytes, so that other pages are packed.
const ROOM: usize = 50_000;

/// A slow shadow with one entry per byte.
#[derive(Default)]
struct Bytes(HashMap<u64, Entry>);

impl Bytes {
    fn get(&self, address: u64) -> Entry {
        self.0.get(&address).copied().unwrap_or_default()
    }

    fn write(&mut self, address: u64, length: u64, entry: Entry) {
        for i in 0..length {
            let def = entry.def.at(i);
            self.0.insert(address + i, Entry { def, ..entry });
        }
    }

    /// Returns the entry of a range's first byte, if a single write wrote the range.
    fn single(&self, address: u64, length: u64) -> Option<Entry> {
        let first = self.get(address);
        let entries = Vec::from_iter((0..length).map(|i| self.get(address + i)));
        let mut whole = (0..).zip(&entries);
        let cost = entries.iter().map(|entry| entry.cost).max()?;
        let fits = first.def.fits(length) && whole.all(|(i, e)| e.def == first.def.at(i));
        fits.then_some(Entry { cost, ..first })
    }
}

/// Makes the same random write to both. Values have 1 to 16 bytes. Other writes cover whole pages,
/// or no bytes.
fn write(random: &mut SplitMix64, shadow: &mut Shadow, bytes: &mut Bytes) {
    let cost = random.below(usize::from(KEPT as u8)) as u8;
    let site = random.below(5) as u32;
    let execution = random.below(4) as u64;
    let (length, def) = match random.below(8) {
        0 => {
            let length = [0, 1, 3, 8, 4096, 5000][random.below(6)];
            (length, Def::other(site, execution))
        }
        1 => (random.below(40) as u64, Def::other(HOST, execution)),
        _ => (1 << random.below(5), Def::value(site + 2, execution)),
    };
    let mut address = random.below(MEMORY - length as usize) as u64;
    if random.below(2) == 0 {
        address -= address % length.max(1);
    }
    let entry = Entry { def, cost };
    shadow.write(address, length, entry);
    bytes.write(address, length, entry);
}

fn agree(random: &mut SplitMix64, shadow: &mut Shadow, bytes: &Bytes) {
    for _ in 0..20 {
        let length = 1 << random.below(5);
        let mut address = random.below(MEMORY) as u64;
        if random.below(2) == 0 {
            address -= address % length;
        }
        assert_eq!(shadow.byte(address), bytes.get(address), "{address}");
        let expected = bytes.single(address, length);
        assert_eq!(shadow.single(address, length), expected, "{address}");
    }
}

#[test]
fn the_shadow_knows_who_wrote_each_byte() {
    for seed in 0..30 {
        let random = &mut SplitMix64(seed);
        let (mut shadow, mut bytes) = (Shadow::new(ROOM), Bytes::default());
        for _ in 0..300 {
            write(random, &mut shadow, &mut bytes);
            agree(random, &mut shadow, &bytes);
        }
        for address in 0..MEMORY as u64 {
            assert_eq!(shadow.byte(address), bytes.get(address), "{address}");
        }
        shadow.keep();
        for address in 0..MEMORY as u64 {
            let entry = shadow.byte(address);
            assert_eq!(entry.def, bytes.get(address).def);
            assert!(u32::from(entry.cost) == KEPT || entry.def == Def::default());
        }
    }
}

#[test]
fn runs_are_the_bytes_that_they_stand_for() {
    let mut repeated = 0;
    for seed in 100..140 {
        let random = &mut SplitMix64(seed);
        let (mut shadow, mut bytes) = (Shadow::new(ROOM), Bytes::default());
        for _ in 0..60 {
            write(random, &mut shadow, &mut bytes);
        }
        // One loop writes an array of elements.
        for i in 0..100 {
            let def = Def::value(3, 10 + i);
            let entry = Entry { def, cost: 1 };
            shadow.write(4000 + 8 * i, 8, entry);
            bytes.write(4000 + 8 * i, 8, entry);
        }
        for _ in 0..10 {
            let length = random.below(6000) as u64;
            let address = random.below(MEMORY - length as usize) as u64;
            let range = Range {
                memory: 0,
                address,
                length,
            };
            let mut runs = Vec::new();
            let dearest = shadow.runs(range, &mut runs);
            let mut expanded = Vec::new();
            for run in &runs {
                repeated += u64::from(run.count > 10);
                for element in 0..run.count {
                    let execution = run.execution + run.step * element;
                    for i in 0..run.length {
                        let place = Def::of_place(run.place).at(i).place();
                        expanded.push((place, execution));
                    }
                }
            }
            let all = (0..length).map(|i| bytes.get(address + i));
            let cost = all.clone().map(|entry| u32::from(entry.cost)).max();
            assert_eq!(dearest, cost.unwrap_or(0));
            let expected = all.map(|entry| (entry.def.place(), entry.def.execution()));
            assert_eq!(expanded, Vec::from_iter(expected));
        }
    }
    assert!(repeated > 100, "{repeated} runs with many elements");
}

#[test]
fn definitions_hold_what_they_are_made_of() {
    let random = &mut SplitMix64(5);
    for _ in 0..10_000 {
        let site = random.below(super::sites::MOST_SITES) as u32;
        let execution = random.next() & super::sites::MOST_EXECUTIONS;
        let value = Def::value(site, execution);
        for offset in 0..16 {
            let def = value.at(offset);
            let parts = (def.site(), def.offset(), def.execution());
            assert_eq!(parts, (site, offset as u8, execution));
            assert!(def.fits(16 - offset) && !def.fits(17 - offset));
        }
        let other = Def::other(site, execution);
        assert_eq!(other.at(1000), other);
        assert_eq!((other.site(), other.execution()), (site, execution));
        assert!(other.fits(u64::MAX));
        assert_ne!(other.place(), value.place());
    }
}

#[test]
fn labels_are_what_was_appended() {
    let random = &mut SplitMix64(8);
    for most in [1, 7, 8, 9, 5000] {
        // Several columns are filled at the same time, in the same memory.
        let mut labels = Labels::default();
        let mut columns = vec![(Room::default(), Column::default(), Vec::new()); 3];
        for _ in 0..most {
            let (room, column, expected) = &mut columns[random.below(3)];
            let before = expected.last().copied();
            let pattern = match before {
                Some(Label { pattern, .. }) if random.below(4) > 0 => pattern,
                _ => random.next() as u32 >> random.below(32),
            };
            let label = Label {
                pattern,
                execution: random.next() & super::sites::MOST_EXECUTIONS,
                age: random.next() >> random.below(64),
            };
            labels.push(label, room, &mut column.chunks);
            expected.push(label);
        }
        for (room, mut column, expected) in columns {
            column.end = room.filled();
            let mut found = Vec::new();
            labels.each(&column, |label| found.push(label));
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn patterns_are_told_apart() {
    let random = &mut SplitMix64(6);
    let mut patterns = Patterns::default();
    let mut known: HashMap<Vec<(u8, u32)>, u32> = HashMap::new();
    for _ in 0..2000 {
        let parts = (0..2 + random.below(3)).map(|_| {
            let length = 1 + random.below(3) as u8;
            (length, random.below(4) as u32)
        });
        let parts = Vec::from_iter(parts);
        let number = patterns.number(&parts);
        assert_eq!(*known.entry(parts).or_insert(number), number);
    }
    let numbers = known.values().collect::<std::collections::HashSet<_>>();
    assert_eq!(numbers.len(), known.len());
    for (parts, &number) in &known {
        assert!(matches!(patterns.get(number), Pattern::Parts(found) if found == parts));
    }
    let place = Def::value(super::sites::MOST_SITES as u32 - 1, 7).place();
    assert!(matches!(patterns.get(place), Pattern::One(found) if found == place));
}
