//! Tests parts of checkpoints against slow versions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use afterimage_ids::{NodeId, PrimaryMap};
use afterimage_machine::{Body, Code, NodeCode, Range as Bytes, compile};
use afterimage_program::Program;
use afterimage_testkit::modules::SplitMix64;

use super::group::{Group, Parts, Recorded, Sets, encode};
use super::set::{Set, Span};
use super::sites::{Site, SiteAddresses, Writers};
use super::touched::{LineForm, Lines, Touched, bits};
use super::tree::{Tree, What, first_from, last_before, newest};
use super::{CHILDREN, CheckpointError, LINE, WORD, key_of, place_of, spans, words};

/// Generates lines with words, including long runs of lines with the same words.
fn set(random: &mut SplitMix64) -> (Set, BTreeMap<u64, u16>) {
    let mut naive = BTreeMap::new();
    for _ in 0..random.below(30) {
        let key = random.below(60) as u64 + ((random.below(3) as u64) << 32);
        naive.insert(key, 1 + random.below(0xffff) as u16);
    }
    for _ in 0..random.below(3) {
        let first = random.below(60) as u64;
        let mask = [u16::MAX, 1][random.below(2)];
        naive.extend((first..first + random.below(40) as u64).map(|key| (key, mask)));
    }
    (of_map(&naive), naive)
}

fn of_map(naive: &BTreeMap<u64, u16>) -> Set {
    let spans = naive.iter().map(|(&first, &mask)| {
        let count = 1;
        Span { first, count, mask }
    });
    spans.collect()
}

/// Returns the lines of a set, each with its words.
fn all(set: &Set) -> BTreeMap<u64, u16> {
    let lines = set.spans().iter().flat_map(|span| span.lines());
    lines.collect()
}

#[test]
fn sets_are_those_of_a_map() {
    let mut random = SplitMix64(1);
    for _ in 0..300 {
        let (mut a, mut naive) = set(&mut random);
        let (b, other) = set(&mut random);
        let mut left = a.clone();
        let taken = left.take(&b);
        let common = |(key, mask): (&u64, &u16)| (*key, mask & other.get(key).unwrap_or(&0));
        let mut both: BTreeMap<u64, u16> = naive.iter().map(common).collect();
        both.retain(|_, mask| *mask != 0);
        assert_eq!(all(&taken), both);
        let without = |(key, mask): (&u64, &u16)| (*key, mask & !other.get(key).unwrap_or(&0));
        let mut rest: BTreeMap<u64, u16> = naive.iter().map(without).collect();
        rest.retain(|_, mask| *mask != 0);
        assert_eq!(all(&left), rest);
        for (key, mask) in other {
            *naive.entry(key).or_insert(0) |= mask;
        }
        a.add(&b);
        assert_eq!(all(&a), naive);
        let merged = |pair: &[Span]| pair[0].end() < pair[1].first || pair[0].mask != pair[1].mask;
        for set in [&a, &left, &taken] {
            assert!(
                set.spans().windows(2).all(merged),
                "neighbouring spans with the same mask were not merged"
            );
        }
        assert!((0..200).all(|key| a.get(key) == naive.get(&key).copied().unwrap_or(0)));
        let mut bytes = Vec::new();
        a.encode(&mut bytes);
        let mut input = &bytes[..];
        assert_eq!(Set::decode(&mut input), Some(a));
        assert!(input.is_empty());
    }
}

#[test]
fn ranges_are_cut_into_lines_and_words() {
    let mut random = SplitMix64(2);
    for _ in 0..2000 {
        let (memory, address) = (random.below(3) as u32, random.below(300) as u64);
        let length = random.below(400) as u64;
        let mut naive: BTreeMap<u64, u16> = BTreeMap::new();
        for byte in address..address + length {
            *naive.entry(key_of(memory, byte)).or_insert(0) |= 1 << (byte % LINE / WORD);
        }
        let found = spans(memory, address, length);
        assert_eq!(all(&found), naive);
        assert!(found.spans().len() <= 3);
        assert_eq!(
            place_of(key_of(memory, address)),
            (memory, address & !(LINE - 1))
        );
        assert_eq!(words(address, address), 1 << (address % LINE / WORD));
    }
}

/// The time of each byte's last write, and whether the host made it, by memory and address.
type Naive = BTreeMap<(u32, u64), (u32, bool)>;

/// Writes and reads at random, in several intervals. The encoded groups must agree with a map of
/// bytes.
#[test]
fn groups_tell_of_every_byte() {
    let mut random = SplitMix64(3);
    let codes = codes();
    for _ in 0..60 {
        let mut touched = Touched::default();
        let mut writers = Writers::new();
        let mut known = Known::default();
        let mut intervals = Vec::new();
        let mut expected = Vec::new();
        for number in 0..1 + random.below(4) as u64 {
            let (mut written, mut read) = (Naive::new(), BTreeSet::new());
            for now in 1..40 {
                touched.now = now;
                let aligned = random.below(2) == 0;
                let mut address = 4000 + random.below(400) as u64;
                let mut length = match random.below(6) {
                    // Write whole pages.
                    0 => 8192 + random.below(9000) as u64,
                    _ => random.below(90) as u64,
                };
                if aligned {
                    (address, length) = (address & !3, length & !3);
                }
                let memory = random.below(2) as u32;
                let node = NodeId::from_u32(random.below(codes.len()) as u32);
                let all = (0..codes[node].insts.len()).filter(|&inst| writes(&codes[node], inst));
                let insts = Vec::from_iter(all);
                let write = random.below(insts.len());
                let inst = insts[write];
                writers.node(node, &codes[node]);
                let range = Bytes {
                    memory,
                    address,
                    length,
                };
                match random.below(4) {
                    0 => {
                        touched.read(range);
                        read.extend((address..address + length).map(|at| (memory, at / WORD)));
                    }
                    1 => {
                        let site = writers.write(None, range);
                        touched.write(range, (site, true), &mut writers);
                        note(&mut written, range, now, true);
                        known.note((number, node, None), range);
                    }
                    _ => {
                        let mut range = range;
                        if let Code::Store(bytes) = codes[node].insts[inst].code {
                            range.length = bytes.into();
                            if write == 1 {
                                range.address = 4100;
                            }
                        }
                        let site = writers.write(Some(inst), range);
                        touched.write(range, (site, false), &mut writers);
                        note(&mut written, range, now, false);
                        known.note((number, node, Some(write as u32)), range);
                    }
                }
            }
            let same = |_, page: u64| page.is_multiple_of(8192).then_some([1; 4]);
            let lines = touched.lines(same);
            let (mut times, mut lists) = (Vec::new(), Vec::new());
            for line in lines.iter().filter(|line| line.written != 0) {
                touched.times(line, &mut times);
                touched.lists(line, &mut lists);
            }
            touched.clear();
            intervals.push(Recorded {
                after: 100 * (number + 1),
                state: vec![number as u8; number as usize],
                lines,
                times,
                lists,
            });
            expected.push((written, read));
        }
        let mut lists = Vec::new();
        let used = intervals.iter_mut().map(|interval| &mut interval.lists[..]);
        writers.close(used, &codes, &mut lists);
        let (bytes, units) = encode(7, &intervals, &lists);
        let group = Group::decode(bytes.clone(), 7).expect("a group");
        assert!(units.iter().map(Vec::len).eq(group.units.iter().copied()));
        let parts_of = |at: usize| parts(&group, at, &units).expect("sound parts");
        assert_eq!(group.intervals.len(), intervals.len());
        let mut first_word = 0;
        for (at, (written, read)) in expected.iter().enumerate() {
            assert_eq!(group.intervals[at].after, 100 * (at as u64 + 1));
            assert_eq!(group.intervals[at].first_kept, first_word);
            assert_eq!(group.state(at), Some(&intervals[at].state[..]));
            let parts = parts_of(at);
            assert_eq!(*parts.sets, intervals[at].sets());
            for memory in 0..2 {
                for address in (3990..4500).chain((4500..22_000).step_by(61)) {
                    let key = key_of(memory, address);
                    let time = written.get(&(memory, address)).map_or(0, |found| found.0);
                    let found = parts.written(key, address);
                    assert_eq!(found, Some(time.into()), "{memory} {address}");
                    let bit = words(address, address);
                    let sites = parts.list(key, address).map(|list| group.sites(list));
                    let sites = sites.map(|sites| sites.expect("a list"));
                    let expected = known.sites(at as u64, memory, address);
                    assert_eq!(sites.unwrap_or_default(), expected, "{memory} {address}");
                    let is_read = parts.sets.read.get(key) & bit != 0;
                    assert_eq!(is_read, read.contains(&(memory, address / WORD)));
                    let by_host = parts.is_by_host(key, address).unwrap();
                    let first = address & !(WORD - 1);
                    let mut word = (first..first + WORD).map(|at| written.get(&(memory, at)));
                    let whole = word.all(|found| found.is_some_and(|found| found.1));
                    assert!(!by_host || whole, "the guest wrote it");
                }
            }
            // Words are stored in order. A page with one repeated word stores it once.
            let mut wanted = parts.sets.written.clone();
            if random.below(2) == 0 {
                wanted = wanted.take(&spans(0, 4100, random.below(9000) as u64));
            }
            let everything = wanted == parts.sets.written;
            let (mut seen, mut positions) = (Set::default(), BTreeSet::new());
            let told = parts.kept(&wanted, |span, host, kept| {
                seen.push(span);
                for (key, mask) in span.lines() {
                    for word in bits(mask) {
                        let (_, start) = place_of(key);
                        let by_host = parts.is_by_host(key, start + word as u64 * WORD).unwrap();
                        assert_eq!(host >> word & 1 == 1, by_host);
                        let position = kept.position(key, word);
                        if !by_host {
                            let is_new = positions.insert(position);
                            assert!(is_new || kept.is_same(), "two words at one place");
                            assert!(!kept.is_same() || start / 4096 % 2 == 0);
                        }
                    }
                }
            });
            told.unwrap();
            assert_eq!(all(&seen), all(&wanted));
            let next = group.intervals.get(at + 1);
            let count = next.map(|next| next.first_kept - first_word);
            if everything && let Some(count) = count {
                assert!(positions.into_iter().eq(0..count));
            }
            first_word += count.unwrap_or(0);
        }
        damage((&bytes, &units), &mut random);
    }
}

/// Returns nodes with stores of different lengths and with writes of variable length. The last
/// store always has the same address.
fn codes() -> PrimaryMap<NodeId, NodeCode> {
    let module = wat::parse_str(
        "(module (memory 1) (func (param i32)
            (i32.store8 (local.get 0) (i32.const 1))
            (drop (select (i32.load (local.get 0)) (i32.const 2) (local.get 0)))
            (i64.store (local.get 0) (i64.const 1))
            (memory.fill (local.get 0) (i32.const 1) (i32.const 3))))",
    );
    let module = module.expect("a module");
    let program = Program::parse(&module).expect("a program");
    let function = &program.functions[0];
    let body = Body::read(&program, &module, function).expect("a body");
    let blocks = Vec::from_iter(function.cfg.blocks.keys().take(1));
    let code = compile(&program, &body, &blocks, None).expect("code");
    (0..3).map(|_| code.clone()).collect()
}

fn writes(code: &NodeCode, inst: usize) -> bool {
    matches!(code.insts[inst].code, Code::Store(_) | Code::MemoryFill)
}

/// The writes of each site, by interval, node and write.
#[derive(Default)]
struct Known(BTreeMap<(u64, NodeId, Option<u32>), Vec<Bytes>>);

impl Known {
    fn note(&mut self, site: (u64, NodeId, Option<u32>), range: Bytes) {
        self.0.entry(site).or_default().push(range);
    }

    /// Returns the sites that wrote a byte's word in an interval.
    fn sites(&self, interval: u64, memory: u32, address: u64) -> Vec<Site> {
        let word = address / WORD;
        let has = |range: &Bytes| {
            let last = range.address + range.length.max(1) - 1;
            range.memory == memory
                && range.length > 0
                && (range.address / WORD..=last / WORD).contains(&word)
        };
        let own = self.0.iter().filter(|(site, _)| site.0 == interval);
        let own = own.filter(|(_, ranges)| ranges.iter().any(has));
        let mut sites = Vec::from_iter(own.map(|(&(_, node, write), _)| {
            let all = self
                .0
                .iter()
                .filter(|(site, _)| (site.1, site.2) == (node, write));
            let all = Vec::from_iter(all.flat_map(|(_, ranges)| ranges));
            let many = write.is_none() || all.iter().any(|range| !matches!(range.length, 1 | 8));
            let place = match () {
                () if many || write == Some(2) => SiteAddresses::Anywhere,
                () if all.iter().all(|range| range.address == all[0].address) => {
                    SiteAddresses::Always(all[0].address)
                }
                () if all.iter().all(|range| range.address % range.length == 0) => {
                    SiteAddresses::Aligned
                }
                () => SiteAddresses::Anywhere,
            };
            Site { node, write, place }
        }));
        sites.sort_by_key(|site| (site.node, site.write.unwrap_or(u32::MAX)));
        sites
    }
}

/// Returns the data about an interval's words.
fn parts(group: &Group, at: usize, units: &[Vec<u8>]) -> Option<Parts> {
    let interval = &group.intervals[at];
    let unit = units.get(interval.unit).map_or(&[][..], Vec::as_slice);
    interval.parts(unit)
}

fn note(written: &mut Naive, range: Bytes, now: u32, host: bool) {
    for at in range.address..range.address + range.length {
        written.insert((range.memory, at), (now, host));
    }
}

/// Damages bytes at random. The decoder must refuse them or return another group.
fn damage((bytes, units): (&[u8], &[Vec<u8>]), random: &mut SplitMix64) {
    for _ in 0..40 {
        let (mut bytes, mut units) = (bytes.to_vec(), units.to_vec());
        let changed = match units.last_mut() {
            Some(unit) if random.below(2) == 0 => unit,
            _ => &mut bytes,
        };
        match random.below(3) {
            0 => changed.truncate(random.below(changed.len())),
            1 => changed.push(random.below(256) as u8),
            _ => {
                let at = random.below(changed.len());
                changed[at] = random.below(256) as u8;
            }
        }
        let Some(group) = Group::decode(bytes, 7) else {
            continue;
        };
        for at in 0..group.intervals.len() {
            let _ = group.state(at);
            let Some(parts) = parts(&group, at, &units) else {
                continue;
            };
            for address in (3990..4500).step_by(3) {
                let key = key_of(0, address);
                let _ = parts.written(key, address);
                let _ = parts.list(key, address).map(|list| group.sites(list));
            }
        }
    }
}

/// A tree of intervals in memory.
struct Levels {
    intervals: Vec<Arc<Sets>>,
    /// The children of each vertex, from level 1 on.
    levels: Vec<Vec<Range<u64>>>,
}

impl Levels {
    /// Creates the levels. The last levels may lack vertices, as if windows were missing.
    fn new(intervals: Vec<Arc<Sets>>, children: usize, missing: usize) -> Self {
        let mut levels: Vec<Vec<Range<u64>>> = Vec::new();
        let mut below = intervals.len() as u64;
        while below > 1 || levels.is_empty() {
            let starts = (0..below).step_by(children);
            let mut level = Vec::from_iter(starts.map(|at| at..(at + children as u64).min(below)));
            if !levels.is_empty() {
                level.truncate(level.len().saturating_sub(missing));
            }
            if level.is_empty() {
                break;
            }
            below = level.len() as u64;
            levels.push(level);
        }
        Self { intervals, levels }
    }
}

impl Tree for Levels {
    fn count(&self, level: usize) -> u64 {
        match level {
            0 => self.intervals.len() as u64,
            _ => self.levels.get(level - 1).map_or(0, |l| l.len() as u64),
        }
    }

    fn children(&self, level: usize, number: u64) -> Range<u64> {
        self.levels[level - 1][number as usize].clone()
    }

    fn parent(&self, level: usize, child: u64) -> Option<u64> {
        let level = self.levels.get(level - 1)?;
        let found = level.iter().position(|range| range.contains(&child));
        found.map(|found| found as u64)
    }

    fn sets(&self, level: usize, number: u64) -> Result<Arc<Sets>, CheckpointError> {
        if level == 0 {
            return Ok(Arc::clone(&self.intervals[number as usize]));
        }
        let mut all = Sets::default();
        for child in self.children(level, number) {
            all.add(&*self.sets(level - 1, child)?);
        }
        Ok(Arc::new(all))
    }
}

#[test]
fn the_nearest_interval_is_found() {
    let mut random = SplitMix64(4);
    for _ in 0..60 {
        let count = random.below(90);
        let intervals = (0..count).map(|_| {
            let sparse = |random: &mut SplitMix64| match random.below(3) {
                0 => set(random).0,
                _ => Set::default(),
            };
            let (written, read) = (sparse(&mut random), sparse(&mut random));
            Arc::new(Sets { written, read })
        });
        let intervals = Vec::from_iter(intervals);
        let children = 2 + random.below(CHILDREN - 1);
        let tree = Levels::new(intervals.clone(), children, random.below(3));
        let has = |what: What, at: usize, key: u64, mask: u16| {
            let set = match what {
                What::Written => &intervals[at].written,
                What::Read => &intervals[at].read,
            };
            set.get(key) & mask != 0
        };
        for _ in 0..60 {
            let what = [What::Written, What::Read][random.below(2)];
            let (key, mask) = (random.below(60) as u64, 1 << random.below(16));
            let at = random.below(count + 1);
            let before = (0..at).rev().find(|&at| has(what, at, key, mask));
            let found = last_before(&tree, what, (key, mask), at as u64).expect("sound");
            assert_eq!(found, before.map(|at| at as u64));
            let after = (at..count).find(|&at| has(what, at, key, mask));
            let found = first_from(&tree, what, (key, mask), at as u64).expect("sound");
            assert_eq!(found, after.map(|at| at as u64));
            let wanted: BTreeMap<u64, u16> = (0..20)
                .map(|_| (random.below(70) as u64, 1 + random.below(0xffff) as u16))
                .collect();
            let found = newest(&tree, of_map(&wanted), at as u64).expect("sound");
            let found = found.iter().flat_map(|(interval, words)| {
                let lines = words.spans().iter().flat_map(|span| span.lines());
                lines.map(|line| (*interval, line))
            });
            let mut each = BTreeMap::new();
            for (interval, (key, mask)) in found {
                for word in bits(mask) {
                    assert_eq!(each.insert((key, word), interval), None, "found twice");
                }
            }
            let mut expected = BTreeMap::new();
            for (key, mask) in wanted {
                for word in bits(mask) {
                    let mut before = (0..at).rev();
                    let found = before.find(|&at| has(What::Written, at, key, 1 << word));
                    expected.insert((key, word), found.map(|at| at as u64));
                }
            }
            assert_eq!(each, expected);
        }
    }
}

#[test]
fn masks_are_words() {
    assert!(bits(0b1010_0000_0000_0001).eq([0, 13, 15]));
    assert_eq!(words(4, 11), 0b110);
    assert_eq!(Lines::default().told, LineForm::Each);
}
