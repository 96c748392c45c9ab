//! Tests of the caches.

use afterimage_simulate::{CacheSpec, Caches, Missed, Spec, Traffic};

use crate::random::Random;

/// A read or a write.
#[derive(Clone, Copy, Debug)]
struct Access {
    address: u64,
    length: u64,
    write: bool,
}

/// Generates walks, random places, stack accesses and an occasional large block.
fn accesses(seed: u64, count: usize) -> Vec<Access> {
    let mut random = Random(seed);
    let mut made = Vec::new();
    while made.len() < count {
        let start = random.below(1 << 14);
        let stride = [1, 4, 8, 64, 100][random.below(5) as usize];
        let write = random.once_in(3);
        let times = match random.below(3) {
            0 => 1,
            _ => 1 + random.below(40),
        };
        let length = match random.below(50) {
            0 => random.below(700),
            _ => 1 << random.below(5),
        };
        made.extend((0..times).map(|i| Access {
            address: start + i * stride,
            length,
            write,
        }));
    }
    made.truncate(count);
    made
}

fn spec(text: &str) -> CacheSpec {
    match text.parse() {
        Ok(Spec::Caches(spec)) => spec,
        other => panic!("{text}: {other:?}"),
    }
}

/// A level, with the lines of each set, most recently used first, and whether each is dirty.
struct NaiveLevel {
    sets: Vec<Vec<(u64, bool)>>,
    ways: usize,
}

impl NaiveLevel {
    fn new(size: u64, ways: u64, line: u64) -> Self {
        Self {
            sets: vec![Vec::new(); (size / line / ways) as usize],
            ways: ways as usize,
        }
    }

    /// Returns whether the line was present, and the dirty line that was evicted.
    fn touch(&mut self, line: u64, write: bool) -> (bool, Option<u64>) {
        let count = self.sets.len() as u64;
        let set = &mut self.sets[(line % count) as usize];
        if let Some(at) = set.iter().position(|&(held, _)| held == line) {
            let (_, written) = set.remove(at);
            set.insert(0, (line, written || write));
            return (true, None);
        }
        set.insert(0, (line, write));
        let gone = if set.len() > self.ways {
            set.pop()
        } else {
            None
        };
        (
            false,
            gone.and_then(|(line, written)| written.then_some(line)),
        )
    }

    fn dirty(&mut self, line: u64) {
        let count = self.sets.len() as u64;
        for held in &mut self.sets[(line % count) as usize] {
            held.1 |= held.0 == line;
        }
    }
}

struct Naive {
    spec: CacheSpec,
    first: NaiveLevel,
    second: Option<NaiveLevel>,
    traffic: Traffic,
}

impl Naive {
    fn new(spec: CacheSpec) -> Self {
        let first = &spec.first;
        let second = spec.second.map(|l| NaiveLevel::new(l.size, l.ways, l.line));
        Self {
            spec,
            first: NaiveLevel::new(first.size, first.ways, first.line),
            second,
            traffic: Traffic::default(),
        }
    }

    fn access(&mut self, access: Access) -> Missed {
        let mut missed = Missed::default();
        let mut lines: Vec<u64> = (access.address..access.address + access.length)
            .map(|byte| byte / self.spec.first.line)
            .collect();
        lines.dedup();
        for line in lines {
            self.traffic.touched += 1;
            let (hit, gone) = self.first.touch(line, access.write);
            if hit {
                continue;
            }
            missed.first += 1;
            self.traffic.first += 1;
            let mut found = false;
            if let (Some(second), Some(spec)) = (&mut self.second, self.spec.second) {
                let of = |line| line * self.spec.first.line / spec.line;
                let (hit, out) = second.touch(of(line), false);
                found = hit;
                self.traffic.second += u64::from(!hit);
                self.traffic.second_back += u64::from(out.is_some());
                if let Some(gone) = gone {
                    second.dirty(of(gone));
                }
            }
            self.traffic.first_back += u64::from(gone.is_some());
            missed.last += u64::from(!found);
        }
        missed
    }
}

#[test]
fn caches_are_what_their_definition_says() {
    let cases = [
        "--cache 64,1,64",
        "--cache 1k,1,16",
        "--cache 1k,2,64 --cache2 4k,4,64",
        "--cache 512,4,16 --cache2 2k,2,64",
        "--cache 3k,6,64 --cache2 8k,full,128",
        "--cache 2k,full,16",
        "--cache 4k,64,32 --cache2 16k,64,32",
        "--cache 32k,8,64 --cache2 1m,16,64",
    ];
    for (seed, text) in (1..).zip(cases) {
        let spec = spec(text);
        let (mut caches, mut naive) = (Caches::new(&spec), Naive::new(spec));
        for (i, access) in accesses(seed, 30_000).into_iter().enumerate() {
            let Access {
                address,
                length,
                write,
            } = access;
            let missed = caches.access(address, length, write);
            assert_eq!(missed, naive.access(access), "{text}, {i}: {access:?}");
        }
        assert_eq!(caches.traffic(), naive.traffic, "{text}");
    }
}

#[test]
fn an_access_of_two_lines_touches_both_and_one_of_none_nothing() {
    let mut caches = Caches::new(&spec("--cache 1k,2,64 --cache2 4k,4,64"));
    assert_eq!(caches.access(60, 8, false), Missed { first: 2, last: 2 });
    assert_eq!(caches.access(0, 64, false), Missed::default());
    assert_eq!(caches.access(64, 64, true), Missed::default());
    assert_eq!(caches.access(4000, 0, true), Missed::default());
    assert_eq!(caches.traffic().touched, 4);
    // The end of the address space is a valid place.
    assert_eq!(caches.access(u64::MAX, 8, true).first, 1);
}

/// A larger fully associative LRU cache holds every line that a smaller cache holds (inclusion;
/// Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", 1970).
#[test]
fn a_larger_fully_associative_cache_never_misses_more() {
    let accesses = accesses(9, 60_000);
    let mut held: Option<Vec<u64>> = None;
    // This covers both representations of a set, with up to 32 lines and with more.
    for lines in [1, 2, 3, 8, 31, 32, 33, 64, 200, 1000] {
        let spec = spec(&format!("--cache {},full,64", lines * 64));
        let mut caches = Caches::new(&spec);
        let missed = accesses
            .iter()
            .map(|a| caches.access(a.address, a.length, a.write).first);
        let missed = Vec::from_iter(missed);
        if let Some(held) = held.replace(missed.clone()) {
            assert!(
                missed.iter().zip(&held).all(|(more, less)| more <= less),
                "{lines}"
            );
        }
    }
}

#[test]
fn the_least_recently_used_line_goes() {
    let mut caches = Caches::new(&spec("--cache 128,2,64"));
    let mut misses = |address| caches.access(address, 1, false).first == 1;
    // 0 and 64 are present. Then 128 evicts 0, or 64 if 0 has been used since then.
    assert_eq!([0, 64, 128, 0].map(&mut misses), [true; 4]);
    assert_eq!(
        [64, 0, 64, 192, 64, 0].map(&mut misses),
        [true, false, false, true, false, true]
    );
}
