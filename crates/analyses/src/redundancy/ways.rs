//! Counts redundant executions by place and by source of the value.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use afterimage_ids::NodeId;
use rustc_hash::FxHashMap;

use super::answer::{InPath, OperatorRedundancy, OperatorSource, Way};
use super::places::PathOperator;
use afterimage_replay::steps::AccessSite;

/// The counts by place and source.
#[derive(Debug, Default)]
pub(super) struct Ways {
    sums: Vec<Sum>,
    /// The number of times that a place got its value from each source.
    from: FxHashMap<(u32, Source), u64>,
}

/// The place of a value's source, and whether the source belongs to the same execution of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Source {
    place: u32,
    same: bool,
}

/// The totals of a place.
#[derive(Clone, Debug, Default)]
struct Sum {
    executions: u64,
    redundant: u64,
    within: u64,
    last: Source,
    /// The number of occurrences of the last source that are not in `from` yet.
    times: u64,
}

impl Ways {
    /// Makes room for `count` places.
    pub fn places(&mut self, count: usize) {
        self.sums.resize_with(count, Sum::default);
    }

    /// Counts an execution of a place.
    #[inline]
    pub fn executed(&mut self, place: u32) {
        self.sums[place as usize].executions += 1;
    }

    /// Counts an execution of a place as redundant.
    #[inline]
    pub fn redundant(&mut self, place: u32, source: u32, same: bool, within: bool) {
        let sum = &mut self.sums[place as usize];
        sum.redundant += 1;
        sum.within += u64::from(within);
        let from = Source {
            place: source,
            same,
        };
        if sum.last == from {
            sum.times += 1;
            return;
        }
        let (last, times) = (sum.last, sum.times);
        (sum.last, sum.times) = (from, 1);
        if times > 0 {
            *self.from.entry((place, last)).or_default() += times;
        }
    }

    /// Returns the results by operator, in program order. `places` lists the places by number.
    pub fn finish(mut self, places: &[PathOperator]) -> Vec<OperatorRedundancy> {
        for (place, sum) in (0u32..).zip(&self.sums) {
            if sum.times > 0 {
                *self.from.entry((place, sum.last)).or_default() += sum.times;
            }
        }
        let mut operators: BTreeMap<AccessSite, OperatorRedundancy> = BTreeMap::new();
        for (place, sum) in places.iter().zip(&self.sums) {
            if sum.executions == 0 || place.is_store {
                continue;
            }
            let site = place.site;
            let operator = operators.entry(site).or_insert_with(|| OperatorRedundancy {
                site,
                executions: 0,
                redundant: 0,
                within: 0,
                sources: Vec::new(),
                ways: Vec::new(),
                paths: Vec::new(),
            });
            operator.executions += sum.executions;
            operator.redundant += sum.redundant;
            operator.within += sum.within;
            operator.paths.push(InPath {
                path: place.path,
                executions: sum.executions,
                redundant: sum.redundant,
            });
        }
        let mut from: Vec<_> = self.from.into_iter().collect();
        from.sort_unstable_by_key(|&((place, from), times)| (Reverse(times), place, from.place));
        for ((place, from), times) in from {
            let (place, source) = (&places[place as usize], &places[from.place as usize]);
            let Some(operator) = operators.get_mut(&place.site) else {
                continue;
            };
            operator.ways.push(Way {
                path: place.path,
                source: source.site,
                from: source.path,
                same: from.same,
                times,
            });
        }
        let stores: FxHashMap<AccessSite, bool> =
            places.iter().map(|p| (p.site, p.is_store)).collect();
        let mut operators: Vec<_> = operators.into_values().collect();
        for operator in &mut operators {
            let mut times: FxHashMap<AccessSite, u64> = FxHashMap::default();
            for way in &operator.ways {
                *times.entry(way.source).or_default() += way.times;
            }
            let sources = times.into_iter().map(|(site, times)| OperatorSource {
                site,
                is_store: stores.get(&site).copied().unwrap_or(false),
                times,
            });
            operator.sources = sources.collect();
            let sources = &mut operator.sources;
            sources.sort_unstable_by_key(|source| (Reverse(source.times), source.site));
            let order = |in_path: &InPath| -> (Reverse<u64>, NodeId) {
                (Reverse(in_path.redundant), in_path.path)
            };
            operator.paths.sort_unstable_by_key(order);
        }
        operators
    }
}
