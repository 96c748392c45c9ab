//! Counts redundant loads.

use afterimage_machine::Range;

use super::answer::OperatorRedundancy;
use super::places::PathOperator;
use super::shadow::Shadow;
use super::ways::Ways;

/// Receives a run's memory accesses, executions of paths, and calls in order, and counts redundant
/// loads.
pub(super) struct Tracker {
    memories: Shadow,
    ways: Ways,
    /// The time of an access. It is the number of paths and activations that have begun, until
    /// times are renumbered.
    now: u32,
    /// The time at which each open activation began, innermost last.
    open: Vec<u32>,
    /// The value of `now` at which the times are renumbered.
    most: u32,
}

impl Tracker {
    /// Creates a tracker that renumbers times after `most` paths and activations.
    pub fn new(most: u32) -> Self {
        Self {
            memories: Shadow::default(),
            ways: Ways::default(),
            now: 1,
            open: Vec::new(),
            most,
        }
    }

    /// Makes room for `count` loads and stores.
    pub fn places(&mut self, count: usize) {
        self.ways.places(count);
    }

    /// Records a load.
    #[inline]
    pub fn load(&mut self, place: u32, range: Range) {
        let found = self.memories.load(range, place, self.now);
        self.ways.executed(place);
        if let Some(from) = found {
            let began = self.open.last().copied().unwrap_or(0);
            let (same, within) = (from.when == self.now, from.when >= began);
            self.ways.redundant(place, from.place, same, within);
        }
    }

    /// Records a store.
    #[inline]
    pub fn store(&mut self, place: u32, range: Range) {
        self.memories.store(range, place, self.now);
    }

    /// Records a write by anything other than a store.
    pub fn written(&mut self, range: Range) {
        self.memories.write(range);
    }

    /// Begins an execution of a path.
    #[inline]
    pub fn path(&mut self) {
        if self.now >= self.most {
            self.renumber();
        }
        self.now += 1;
    }

    /// Begins an activation.
    #[inline]
    pub fn enter(&mut self) {
        self.path();
        self.open.push(self.now);
    }

    /// Ends the innermost activation.
    #[inline]
    pub fn leave(&mut self) {
        self.open.pop();
    }

    /// Renumbers times at the beginning of a path. It matters only which open activations began
    /// before an access, so a few numbers are enough.
    #[cold]
    fn renumber(&mut self) {
        let open = &self.open;
        let rank = |when: u32| open.partition_point(|&began| began <= when) as u32 + 1;
        self.memories.renumber(rank);
        self.now = rank(self.now);
        for (began, new) in self.open.iter_mut().zip(2..) {
            *began = new;
        }
    }

    /// Returns the results for the loads, in program order. `places` lists the places by number.
    pub fn finish(self, places: &[PathOperator]) -> Vec<OperatorRedundancy> {
        self.ways.finish(places)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use afterimage_ids::{FuncId, NodeId, OpId};
    use proptest::prelude::*;

    use super::{PathOperator, Range, Tracker};
    use afterimage_replay::steps::AccessSite;

    /// Places 0 to 3 are four operators in one path. Places 4 and 5 are the first two of these
    /// operators in another path.
    const PLACES: usize = 6;
    const SITES: usize = 4;

    #[derive(Clone, Copy, Debug)]
    enum Event {
        /// The place, memory, address and number of bytes. Even places are loads, and odd places
        /// are stores.
        Access(usize, u32, u64, u64),
        Written(u32, u64, u64),
        Path,
        Enter,
        Leave,
    }

    fn event() -> impl Strategy<Value = Event> {
        let length = prop_oneof![Just(1u64), Just(2), Just(4), Just(4), Just(8)];
        let access = (0..PLACES, 0..2u32, 0..12u64, length);
        prop_oneof![
            8 => access.prop_map(|(place, memory, first, length)| Event::Access(place, memory, first, length)),
            1 => (0..2u32, 0..12u64, 0..9u64).prop_map(|(m, a, n)| Event::Written(m, a, n)),
            3 => Just(Event::Path),
            2 => Just(Event::Enter),
            2 => Just(Event::Leave),
        ]
    }

    /// The counts for a load. `sums` counts all executions, redundant executions, and redundant
    /// executions with a source in the same activation.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Count {
        sums: (u64, u64, u64),
        by_source: BTreeMap<usize, u64>,
        /// By the load's place, the source's place, and whether both were in the same execution of
        /// a path.
        by_way: BTreeMap<(usize, usize, bool), u64>,
        /// For each place, the numbers of executions and of redundant executions.
        by_path: BTreeMap<usize, (u64, u64)>,
    }
    type Counts = BTreeMap<usize, Count>;

    /// Counts redundant loads by searching all earlier events for each load.
    fn naive(events: &[Event]) -> Counts {
        let mut counts = Counts::new();
        let mut open = Vec::new();
        let mut path = 0;
        for (k, &event) in events.iter().enumerate() {
            match event {
                Event::Enter => {
                    open.push(k);
                    path = k;
                }
                Event::Path => path = k,
                Event::Leave => drop(open.pop()),
                Event::Access(place, memory, first, length) if place % 2 == 0 => {
                    let count = counts.entry(place % SITES).or_default();
                    let in_path = count.by_path.entry(place).or_default();
                    count.sums.0 += 1;
                    in_path.0 += 1;
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
                            count.sums.1 += 1;
                            in_path.1 += 1;
                            count.sums.2 += u64::from(open.last().is_none_or(|&began| began < j));
                            *count.by_source.entry(other % SITES).or_default() += 1;
                            let way = (place, other, j >= path);
                            *count.by_way.entry(way).or_default() += 1;
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
        let mut tracker = Tracker::new(most);
        tracker.places(PLACES);
        for &event in events {
            match event {
                Event::Path => tracker.path(),
                Event::Enter => tracker.enter(),
                Event::Leave => tracker.leave(),
                Event::Written(memory, address, length) => tracker.written(Range {
                    memory,
                    address,
                    length,
                }),
                Event::Access(place, memory, address, length) => {
                    let range = Range {
                        memory,
                        address,
                        length,
                    };
                    match place % 2 {
                        0 => tracker.load(place as u32, range),
                        _ => tracker.store(place as u32, range),
                    }
                }
            }
        }
        let place = |k: usize| PathOperator {
            site: AccessSite {
                function: FuncId::from_u32(0),
                op: OpId::from_u32((k % SITES) as u32),
            },
            path: NodeId::from_u32((k / SITES) as u32),
            is_store: k % 2 == 1,
        };
        let places: Vec<_> = (0..PLACES).map(place).collect();
        let loads = tracker.finish(&places).into_iter().map(|load| {
            let number = |site: AccessSite| site.op.as_u32() as usize;
            let place =
                |site: AccessSite, path: NodeId| number(site) + path.as_u32() as usize * SITES;
            for source in &load.sources {
                assert_eq!(source.is_store, number(source.site) % 2 == 1);
            }
            let sources = load.sources.iter().map(|s| (number(s.site), s.times));
            let ways = load.ways.iter().map(|way| {
                let places = (place(load.site, way.path), place(way.source, way.from));
                ((places.0, places.1, way.same), way.times)
            });
            let paths = load.paths.iter().map(|p| {
                let counts = (p.executions, p.redundant);
                (place(load.site, p.path), counts)
            });
            let count = Count {
                sums: (load.executions, load.redundant, load.within),
                by_source: sources.collect(),
                by_way: ways.collect(),
                by_path: paths.collect(),
            };
            (number(load.site), count)
        });
        loads.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn counts_are_those_of_a_search(events in proptest::collection::vec(event(), 1..150)) {
            let expected = naive(&events);
            prop_assert_eq!(&tracked(&events, u32::MAX), &expected);
            // The low limit makes the tracker renumber times often.
            prop_assert_eq!(&tracked(&events, 3), &expected);
        }
    }
}
