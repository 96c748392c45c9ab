//! Counting redundant loads.

use std::cmp::Reverse;

use afterimage_machine::Range;
use rustc_hash::FxHashMap;

use super::exact::{LoadRedundancy, LoadSource};
use super::shadow::{Available, Shadow};
use crate::steps::AccessSite;

/// Is told of what a run does to memory, in order, and of calls.
pub(super) struct Tracker {
    memories: Vec<Shadow>,
    sums: Vec<Sum>,
    /// How often a load had its value from where.
    sources: FxHashMap<(u32, u32), u64>,
    /// How many activations began; that is when an access happens.
    now: u32,
    /// When the open activations began, the innermost last.
    open: Vec<u32>,
    /// When numbers are made small again.
    most: u32,
}

/// What is summed up for a load or store.
#[derive(Clone, Debug, Default)]
struct Sum {
    executions: u64,
    redundant: u64,
    within: u64,
    /// The last source, and how often it was that since it was counted.
    source: u32,
    times: u64,
    is_store: bool,
}

impl Tracker {
    /// With so many memories. After so many activations they are numbered anew.
    pub fn new(memories: usize, most: u32) -> Self {
        Self {
            memories: std::iter::repeat_with(Shadow::default)
                .take(memories)
                .collect(),
            sums: Vec::new(),
            sources: FxHashMap::default(),
            now: 1,
            open: Vec::new(),
            most,
        }
    }

    /// So many loads and stores are known.
    pub fn sites(&mut self, count: usize) {
        self.sums.resize_with(count, Sum::default);
    }

    /// A load reads.
    #[inline]
    pub fn load(&mut self, site: usize, range: Range) {
        let memory = &mut self.memories[range.memory as usize];
        let found = memory.load(range.address, range.length, site as u32, self.now);
        let sum = &mut self.sums[site];
        sum.executions += 1;
        let Some(Available { site: source, when }) = found else {
            return;
        };
        sum.redundant += 1;
        let began = self.open.last().copied().unwrap_or(0);
        sum.within += u64::from(when >= began);
        if sum.source == source {
            sum.times += 1;
            return;
        }
        let (last, times) = (sum.source, sum.times);
        (sum.source, sum.times) = (source, 1);
        if times > 0 {
            *self.sources.entry((site as u32, last)).or_default() += times;
        }
    }

    /// A store writes.
    #[inline]
    pub fn store(&mut self, site: usize, range: Range) {
        self.sums[site].is_store = true;
        let memory = &mut self.memories[range.memory as usize];
        memory.store(range.address, range.length, site as u32, self.now);
    }

    /// Something else writes.
    pub fn written(&mut self, range: Range) {
        self.memories[range.memory as usize].write(range.address, range.length);
    }

    /// An activation begins.
    #[inline]
    pub fn enter(&mut self) {
        if self.now >= self.most {
            self.renumber();
        }
        self.now += 1;
        self.open.push(self.now);
    }

    /// The innermost one ends.
    #[inline]
    pub fn leave(&mut self) {
        self.open.pop();
    }

    /// Only which of the open activations began before an access matters: numbers that tell this are as many as these.
    #[cold]
    fn renumber(&mut self) {
        let open = &self.open;
        let rank = |when: u32| open.partition_point(|&began| began <= when) as u32 + 1;
        for memory in &mut self.memories {
            memory.renumber(rank);
        }
        self.now = rank(self.now);
        for (began, new) in self.open.iter_mut().zip(2..) {
            *began = new;
        }
    }

    /// The loads, given what their numbers stand for; in the order of the program.
    pub fn finish(mut self, sites: &[AccessSite]) -> Vec<LoadRedundancy> {
        for (load, sum) in (0u32..).zip(&self.sums) {
            if sum.times > 0 {
                *self.sources.entry((load, sum.source)).or_default() += sum.times;
            }
        }
        let mut of: Vec<Vec<LoadSource>> = vec![Vec::new(); self.sums.len()];
        for ((load, source), times) in self.sources {
            of[load as usize].push(LoadSource {
                site: sites[source as usize],
                is_store: self.sums[source as usize].is_store,
                times,
            });
        }
        let mut loads = Vec::new();
        for ((&site, sum), mut sources) in sites.iter().zip(&self.sums).zip(of) {
            if sum.executions == 0 {
                continue;
            }
            sources.sort_unstable_by_key(|source| (Reverse(source.times), source.site));
            loads.push(LoadRedundancy {
                site,
                executions: sum.executions,
                redundant: sum.redundant,
                within: sum.within,
                sources,
            });
        }
        loads.sort_unstable_by_key(|load| load.site);
        loads
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use afterimage_ids::{FuncId, OpId};
    use proptest::prelude::*;

    use super::{AccessSite, Range, Tracker};

    const SITES: usize = 6;

    #[derive(Clone, Copy, Debug)]
    enum Event {
        /// Site, memory, address and how many bytes. Sites are loads and stores in turn.
        Access(usize, u32, u64, u64),
        Written(u32, u64, u64),
        Enter,
        Leave,
    }

    fn event() -> impl Strategy<Value = Event> {
        let length = prop_oneof![Just(1u64), Just(2), Just(4), Just(4), Just(8)];
        let access = (0..SITES, 0..2u32, 0..12u64, length);
        prop_oneof![
            8 => access.prop_map(|(site, memory, first, length)| Event::Access(site, memory, first, length)),
            1 => (0..2u32, 0..12u64, 0..9u64).prop_map(|(m, a, n)| Event::Written(m, a, n)),
            2 => Just(Event::Enter),
            2 => Just(Event::Leave),
        ]
    }

    /// By load: executions, redundant ones, those within the activation, and by source.
    type Counts = BTreeMap<usize, (u64, u64, u64, BTreeMap<usize, u64>)>;

    /// By looking through all that happened before each load.
    fn naive(events: &[Event]) -> Counts {
        let mut counts = Counts::new();
        let mut open = Vec::new();
        for (k, &event) in events.iter().enumerate() {
            match event {
                Event::Enter => open.push(k),
                Event::Leave => drop(open.pop()),
                Event::Access(site, memory, first, length) if site % 2 == 0 => {
                    let count = counts.entry(site).or_default();
                    count.0 += 1;
                    let end = first + length;
                    for (j, &before) in events[..k].iter().enumerate().rev() {
                        let (other, at) = match before {
                            Event::Access(other, m, a, n) if m == memory => (Some(other), (a, n)),
                            Event::Written(m, a, n) if m == memory => (None, (a, n)),
                            _ => continue,
                        };
                        if let Some(other) = other
                            && at.0 <= first
                            && at.0 + at.1 >= end
                        {
                            count.1 += 1;
                            count.2 += u64::from(open.last().is_none_or(|&began| began < j));
                            *count.3.entry(other).or_default() += 1;
                            break;
                        }
                        let writes = other.is_none_or(|other| other % 2 == 1);
                        if writes && at.1 > 0 && at.0 < end && first < at.0 + at.1 {
                            break;
                        }
                    }
                }
                _ => {}
            }
        }
        counts
    }

    fn tracked(events: &[Event], most: u32) -> Counts {
        let mut tracker = Tracker::new(2, most);
        tracker.sites(SITES);
        for &event in events {
            match event {
                Event::Enter => tracker.enter(),
                Event::Leave => tracker.leave(),
                Event::Written(memory, address, length) => tracker.written(Range {
                    memory,
                    address,
                    length,
                }),
                Event::Access(site, memory, address, length) => {
                    let range = Range {
                        memory,
                        address,
                        length,
                    };
                    match site % 2 {
                        0 => tracker.load(site, range),
                        _ => tracker.store(site, range),
                    }
                }
            }
        }
        let site = |k| AccessSite {
            function: FuncId::from_u32(0),
            op: OpId::from_u32(k),
        };
        let sites: Vec<_> = (0..SITES as u32).map(site).collect();
        let loads = tracker.finish(&sites).into_iter().map(|load| {
            let number = |site: AccessSite| site.op.as_u32() as usize;
            for source in &load.sources {
                assert_eq!(source.is_store, number(source.site) % 2 == 1);
            }
            let sources = load.sources.iter().map(|s| (number(s.site), s.times));
            let counts = (
                load.executions,
                load.redundant,
                load.within,
                sources.collect(),
            );
            (number(load.site), counts)
        });
        loads.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn counts_are_those_of_a_search(events in proptest::collection::vec(event(), 1..150)) {
            let expected = naive(&events);
            prop_assert_eq!(&tracked(&events, u32::MAX), &expected);
            // Numbered anew again and again.
            prop_assert_eq!(&tracked(&events, 3), &expected);
        }
    }
}
