//! Counts distinct values exactly, up to a bound.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// The largest number of distinct values that are counted.
pub const BOUND: usize = 4096;

/// The number of distinct values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distinct {
    /// There are exactly this many distinct values.
    Exactly(u64),
    /// There are more distinct values than the bound.
    MoreThan(u64),
}

/// The most frequent value, and its number of occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequent<T> {
    /// The value. If several are equally frequent, this is the smallest.
    pub value: T,
    /// The number of occurrences.
    pub times: u64,
}

/// Counts the occurrences of up to [`BOUND`] distinct values. Gives up when there are more.
#[derive(Clone, Debug)]
pub(super) struct Tally<T> {
    /// Values chosen to collide would slow this map down, but it contains only a few values.
    counts: Option<FxHashMap<T, u64>>,
    /// The latest value, and the number of its occurrences in a row. These are not yet in `counts`.
    run: Option<(T, u64)>,
}

impl<T> Default for Tally<T> {
    fn default() -> Self {
        Self {
            counts: Some(FxHashMap::default()),
            run: None,
        }
    }
}

impl<T: Copy + Eq + Hash + Ord> Tally<T> {
    #[inline]
    pub fn add(&mut self, value: T) {
        match &mut self.run {
            Some((last, times)) if *last == value => *times += 1,
            run => {
                if let Some((last, times)) = run.replace((value, 1)) {
                    self.settle(last, times);
                }
            }
        }
    }

    fn settle(&mut self, value: T, times: u64) {
        let Some(counts) = &mut self.counts else {
            return;
        };
        if let Some(count) = counts.get_mut(&value) {
            *count += times;
        } else if counts.len() == BOUND {
            self.counts = None;
        } else {
            counts.insert(value, times);
        }
    }

    /// Returns the number of distinct values, and the most frequent value unless there were too
    /// many.
    pub fn finish(mut self) -> (Distinct, Option<Frequent<T>>) {
        if let Some((last, times)) = self.run.take() {
            self.settle(last, times);
        }
        let Some(counts) = self.counts else {
            return (Distinct::MoreThan(BOUND as u64), None);
        };
        let order = |&(&value, &times): &(&T, &u64)| (times, std::cmp::Reverse(value));
        let most = counts.iter().max_by_key(order);
        let most = most.map(|(&value, &times)| Frequent { value, times });
        (Distinct::Exactly(counts.len() as u64), most)
    }
}

#[cfg(test)]
mod tests {
    use super::{BOUND, Distinct, Frequent, Tally};

    fn tally(values: impl Iterator<Item = u64>) -> (Distinct, Option<Frequent<u64>>) {
        let mut tally = Tally::default();
        values.for_each(|value| tally.add(value));
        tally.finish()
    }

    #[test]
    fn counts_are_exact_up_to_the_bound() {
        assert_eq!(tally([].into_iter()), (Distinct::Exactly(0), None));
        let most = |value, times| Some(Frequent { value, times });
        let found = tally([7, 7, 3, 7, 3, 3, 9].into_iter());
        assert_eq!(found, (Distinct::Exactly(3), most(3, 3)));
        let bound = BOUND as u64;
        let found = tally((0..bound).chain([5]));
        assert_eq!(found, (Distinct::Exactly(bound), most(5, 2)));
        let found = tally((0..=bound).chain([5]));
        assert_eq!(found, (Distinct::MoreThan(bound), None));
    }
}
