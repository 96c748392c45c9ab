//! Defines sets of timestamps, which queries move.

use std::fmt;

use afterimage_wpp::twpp::{Entry, Series};

use crate::progression::{common, series, without};

/// A set of timestamps, stored as pairwise disjoint arithmetic series in any order.
///
/// Unlike in a [`Series`], the ranges of the series may overlap. For example, the set 1:9:2 without
/// 5 and the set 1:9 without 1:9:2 can be joined series by series.
#[derive(Clone, Debug, Default)]
pub struct Times {
    entries: Vec<Entry>,
}

/// The size up to which sets are shown and compared in the form of [`Series::compact`]. Larger sets
/// are compacted only if this takes less than linear time.
const SMALL: u64 = 1 << 16;

impl Times {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a set with one timestamp.
    pub fn single(t: u64) -> Self {
        Self {
            entries: vec![Entry::single(t)],
        }
    }

    /// Returns the set's series.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of timestamps. O(series).
    pub fn count(&self) -> u64 {
        self.entries.iter().map(Entry::count).sum()
    }

    /// Whether the set contains a timestamp. O(series).
    pub fn contains(&self, t: u64) -> bool {
        self.entries.iter().any(|entry| entry.contains(t))
    }

    /// Adds timestamps that the set does not contain.
    pub fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Adds another, disjoint set.
    ///
    /// If parts of an irregular pattern meet again, they are combined. In that case, this takes O(n
    /// log n) for n timestamps.
    pub fn join(&mut self, other: Self) {
        if self.entries.is_empty() {
            *self = other;
            return;
        }
        self.append(other);
        self.combine();
    }

    /// Combines series, if parts of an irregular pattern meet again. O(n log n) for n timestamps.
    pub(crate) fn combine(&mut self) {
        let series = self.entries.len() as u64;
        if series > 16 && series * 4 > self.count() {
            let mut all: Vec<u64> = self.entries.iter().flat_map(Entry::iter).collect();
            all.sort_unstable();
            self.entries = Series::compact(all).entries().to_vec();
        }
    }

    /// Adds another, disjoint set without combining series. This is for sets from which no query
    /// continues, and for many sets that are combined afterwards.
    pub(crate) fn append(&mut self, other: Self) {
        self.entries.extend(other.entries);
    }

    /// Returns the set with all timestamps moved later by a distance.
    #[must_use]
    pub fn later(&self, by: u64) -> Self {
        let moved = self.entries.iter().map(|entry| Entry {
            first: entry.first + by,
            last: entry.last + by,
            step: entry.step,
        });
        Self {
            entries: moved.collect(),
        }
    }

    /// Returns the set with all timestamps moved earlier by a distance.
    ///
    /// # Panics
    /// Panics if a timestamp is not greater than the distance.
    #[must_use]
    pub fn earlier(&self, by: u64) -> Self {
        let moved = self.entries.iter().map(|entry| {
            assert!(entry.first > by, "timestamps are at least 1");
            Entry {
                first: entry.first - by,
                last: entry.last - by,
                step: entry.step,
            }
        });
        Self {
            entries: moved.collect(),
        }
    }

    /// Removes a timestamp. Returns whether the set contained the timestamp.
    pub fn take(&mut self, t: u64) -> bool {
        let Some(k) = self.entries.iter().position(|entry| entry.contains(t)) else {
            return false;
        };
        let entry = self.entries.swap_remove(k);
        without(entry, Entry::single(t), |rest| self.entries.push(rest));
        true
    }

    /// Returns the timestamps that are also in a series. Let n be the number of series of `other`.
    /// Locating each series of this set takes at most O(log n), and usually O(1). In addition, each
    /// series takes O(1 + log n) per timestamp, or O(1) per series of `other` in its range,
    /// whichever is less.
    #[must_use]
    pub fn of_series(&self, other: &Series) -> Self {
        let mut found = Self::new();
        let others = other.entries();
        let mut begin = 0;
        for &entry in &self.entries {
            begin = gallop(others, begin, |o| o.last < entry.first);
            let end = gallop(others, begin, |o| o.first <= entry.last);
            let (near, length) = (&others[begin..end], end - begin);
            let probes = entry
                .count()
                .saturating_mul(u64::from(usize::BITS - length.leading_zeros()));
            if probes < length as u64 {
                let here = entry.iter().filter(|&t| other.contains(t));
                found
                    .entries
                    .extend_from_slice(Series::compact(here).entries());
            } else {
                found
                    .entries
                    .extend(near.iter().filter_map(|&o| common(entry, o)));
            }
        }
        found
    }

    /// Splits the timestamps into those in a series and those outside it. A series that overlaps
    /// more than eight series of `other` is split timestamp by timestamp, in O(log n) each.
    #[must_use]
    pub fn split(&self, other: &Series) -> (Self, Self) {
        let (mut found, mut rest) = (Self::new(), Self::new());
        let others = other.entries();
        let (mut left, mut next) = (Vec::new(), Vec::new());
        let mut begin = 0;
        for &entry in &self.entries {
            begin = gallop(others, begin, |o| o.last < entry.first);
            let end = gallop(others, begin, |o| o.first <= entry.last);
            let (near, length) = (&others[begin..end], end - begin);
            if length > 8 {
                let here =
                    |wanted: bool| entry.iter().filter(move |&t| other.contains(t) == wanted);
                let parts = |wanted| Series::compact(here(wanted)).entries().to_vec();
                found.entries.extend(parts(true));
                rest.entries.extend(parts(false));
                continue;
            }
            left.push(entry);
            for &o in near {
                for one in left.drain(..) {
                    match common(one, o) {
                        Some(part) => {
                            found.entries.push(part);
                            without(one, part, |kept| next.push(kept));
                        }
                        None => next.push(one),
                    }
                }
                std::mem::swap(&mut left, &mut next);
            }
            rest.entries.append(&mut left);
        }
        (found, rest)
    }

    /// Iterates over the timestamps in ascending order. O(log series) for each.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        Merged::of(self.entries.iter().map(|&entry| (entry, ()))).map(|(t, ())| t)
    }

    /// Returns the set as series in ascending order without overlaps. In this form, equal sets of
    /// up to 65,536 timestamps have equal series.
    pub fn to_series(&self) -> Series {
        if self.count() <= SMALL {
            return Series::compact(self.iter());
        }
        let mut entries = self.entries.clone();
        entries.sort_unstable_by_key(|entry| entry.first);
        let mut all: Vec<Entry> = Vec::new();
        let mut begin = 0;
        while begin < entries.len() {
            let mut end = begin + 1;
            let mut last = entries[begin].last;
            while let Some(next) = entries.get(end).filter(|next| next.first <= last) {
                last = last.max(next.last);
                end += 1;
            }
            match &entries[begin..end] {
                [one] => append(&mut all, *one),
                many => {
                    let merged = Merged::of(many.iter().map(|&entry| (entry, ())));
                    let merged = Series::compact(merged.map(|(t, ())| t));
                    merged.entries().iter().for_each(|&e| append(&mut all, e));
                }
            }
            begin = end;
        }
        Series::from_ascending(all)
    }
}

/// Like `partition_point`, but if the result is not before `near`, takes time logarithmic in the
/// distance between them. Most sets are nearly in order.
#[inline]
fn gallop(all: &[Entry], near: usize, before: impl Fn(&Entry) -> bool) -> usize {
    if near > 0 && !before(&all[near - 1]) {
        return all[..near - 1].partition_point(before);
    }
    let mut step = 1;
    let mut begin = near;
    while let Some(entry) = all.get(begin + step - 1) {
        if !before(entry) {
            break;
        }
        begin += step;
        step *= 2;
    }
    let end = all.len().min(begin + step - 1);
    begin + all[begin..end].partition_point(before)
}

/// Appends a series. Merges it with the last series if it continues that series.
fn append(all: &mut Vec<Entry>, next: Entry) {
    if let Some(last) = all.last_mut() {
        let step = if last.first == last.last {
            next.step
        } else {
            last.step
        };
        let same = next.first == next.last || next.step == step;
        let apart = next.first - last.last == step;
        if apart && same && (last.first < last.last || next.first < next.last || step == 1) {
            *last = series(last.first, next.last, step);
            return;
        }
    }
    all.push(next);
}

impl From<&Series> for Times {
    fn from(series: &Series) -> Self {
        Self {
            entries: series.entries().to_vec(),
        }
    }
}

impl FromIterator<Entry> for Times {
    /// Creates a set from disjoint series.
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        Self {
            entries: entries.into_iter().collect(),
        }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_series().fmt(f)
    }
}

/// The timestamps of several series in ascending order, each with the label of its series.
pub(crate) struct Merged<T> {
    /// The next timestamp of each series, with the position of the series.
    next: std::collections::BinaryHeap<std::cmp::Reverse<(u64, usize)>>,
    series: Vec<(Entry, T)>,
}

impl<T: Copy> Merged<T> {
    pub(crate) fn of(series: impl Iterator<Item = (Entry, T)>) -> Self {
        let series: Vec<_> = series.collect();
        let next = series.iter().enumerate();
        Self {
            next: next
                .map(|(k, (e, _))| std::cmp::Reverse((e.first, k)))
                .collect(),
            series,
        }
    }
}

impl<T: Copy> Iterator for Merged<T> {
    type Item = (u64, T);

    fn next(&mut self) -> Option<(u64, T)> {
        let mut top = self.next.peek_mut()?;
        let std::cmp::Reverse((t, k)) = *top;
        let (entry, what) = self.series[k];
        if t < entry.last {
            top.0.0 = t + entry.step;
        } else {
            std::collections::binary_heap::PeekMut::pop(top);
        }
        Some((t, what))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use afterimage_wpp::twpp::{Entry, Series};
    use proptest::prelude::*;

    use super::{Times, gallop};

    fn set(times: &Times) -> BTreeSet<u64> {
        let all: Vec<u64> = times.entries().iter().flat_map(|e| e.iter()).collect();
        let set: BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(set.len(), all.len(), "a timestamp is there twice");
        set
    }

    fn sets() -> impl Strategy<Value = BTreeSet<u64>> {
        let random = proptest::collection::btree_set(1u64..120, 0..60);
        let regular = (1u64..20, 1u64..9, 0u64..30);
        let regular = regular.prop_map(|(a, s, n)| (0..n).map(|k| a + k * s).collect());
        prop_oneof![random, regular]
    }

    fn times(of: &BTreeSet<u64>) -> Times {
        Times::from(&Series::compact(of.iter().copied()))
    }

    proptest! {
        #[test]
        fn operations_are_those_of_sets(a in sets(), b in sets(), by in 0u64..9, t in 1u64..120) {
            let (x, y) = (times(&a), times(&b));
            prop_assert_eq!(set(&x.of_series(&y.to_series())), &a & &b);
            let (both, rest) = x.split(&y.to_series());
            prop_assert_eq!(set(&both), &a & &b);
            prop_assert_eq!(set(&rest), &a - &b);
            prop_assert_eq!(rest.iter().collect::<Vec<_>>(), (&a - &b).into_iter().collect::<Vec<_>>());
            prop_assert_eq!(rest.to_series(), Series::compact(&a - &b));
            let mut joined = rest.clone();
            joined.join(y.clone());
            prop_assert_eq!(set(&joined), &a | &b);
            prop_assert_eq!(joined.count(), (&a | &b).len() as u64);
            let moved: BTreeSet<u64> = a.iter().map(|t| t + by).collect();
            prop_assert_eq!(set(&x.later(by)), moved);
            prop_assert_eq!(set(&x.later(by).earlier(by)), a.clone());
            let mut left = x.clone();
            prop_assert_eq!(left.take(t), a.contains(&t));
            let mut expected = a.clone();
            expected.remove(&t);
            prop_assert_eq!(set(&left), expected);
        }
    }

    #[test]
    fn galloping_finds_what_bisection_does() {
        let all: Vec<Entry> = (0..40).map(|k| Entry::single(3 * k + 2)).collect();
        for near in 0..=all.len() {
            for limit in 0..130 {
                let before = |entry: &Entry| entry.last < limit;
                assert_eq!(gallop(&all, near, before), all.partition_point(before));
            }
        }
    }

    #[test]
    fn large_sets_are_brought_into_order_without_their_timestamps() {
        let many = 1u64 << 40;
        let mut times = Times::new();
        let of = |first: u64, last: u64| Series::compact([first, last]);
        assert_eq!(of(1, 2).count(), 2);
        let entry = |first: u64, last: u64, step: u64| Entry { first, last, step };
        times.add(entry(many + 2, 2 * many, 2));
        times.add(entry(2, many, 2));
        assert_eq!(times.to_series().to_string(), format!("2:{}:2", 2 * many));
    }
}
