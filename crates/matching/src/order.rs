//! Uses the order of statements' first executions as evidence.
//!
//! Two versions execute corresponding statements in roughly the same order. A pair of statements is
//! certain if both have the same sequence of values and no other statement in either version has
//! it. The certain pairs tie the times of one run to the times of the other. Between the ties, time
//! is assumed to pass evenly. A pair with a single value that may be an address is not used. If
//! equal amounts are allocated again and again, the n-th allocation in one version may have the
//! address of the (n + k)-th in the other. Thousands of these wrong pairs then agree with each
//! other.

use rustc_hash::FxHashMap;

use crate::active::WINDOWS;
use crate::{Active, Statement, Version};

/// Maps times of the second run to places among the statements of the first, in the order of their
/// first executions.
pub(crate) struct Order {
    /// Pairs of corresponding times, of the second run and of the first. They are in ascending
    /// order in both runs.
    ties: Vec<(u64, u64)>,
    /// The statements of the first version, in the order of their first execution.
    pub ordered: Vec<u32>,
    /// The times of these first executions.
    times: Vec<u64>,
    /// The times of the last executions of the first version's statements, ascending.
    ends: Vec<u64>,
    /// For each part of the second run, the first and the last corresponding part of the first run,
    /// with some margin.
    parts: Vec<(usize, usize)>,
    /// For each statement of the first version, its place in the order.
    pub place: Vec<u32>,
    /// For each statement of the first version, the number of statements that end earlier.
    pub ended_before: Vec<u32>,
}

impl Order {
    /// Relates the times of two runs. O(statements × log statements).
    pub fn new(a: &Version, b: &Version) -> Self {
        let mut ordered: Vec<u32> = (0..a.statements.len() as u32).collect();
        ordered.sort_by_key(|&at| a.statements[at as usize].first);
        let times = ordered.iter().map(|&at| a.statements[at as usize].first);
        let times = times.collect();
        let mut ends: Vec<u64> = a
            .statements
            .iter()
            .map(|statement| statement.last)
            .collect();
        ends.sort_unstable();
        let mut place = vec![0; ordered.len()];
        for (at, &statement) in (0..).zip(&ordered) {
            place[statement as usize] = at;
        }
        let mut order = Self {
            ties: rising(certain(a, b)),
            ordered,
            times,
            ends,
            parts: Vec::new(),
            place,
            ended_before: Vec::new(),
        };
        let last = a.statements.iter().map(|statement| statement.last);
        order.ended_before = last.map(|last| order.ended(last) as u32).collect();
        let edge = |part: usize| part as u128 * u128::from(b.length) / WINDOWS as u128;
        let of_a = |time: u128| Active::window(order.expected(time as u64), a.length);
        let parts = 0..WINDOWS;
        let parts = parts.map(|part| {
            let (first, last) = (of_a(edge(part) + 1), of_a(edge(part + 1)));
            (first.saturating_sub(1), last.max(first) + 1)
        });
        order.parts = parts.collect();
        order
    }

    /// Returns, for each active part of the second run, the first and the last corresponding part
    /// of the first run.
    pub fn parts(&self, of_b: &Active) -> Vec<(usize, usize)> {
        of_b.windows().map(|part| self.parts[part]).collect()
    }

    /// Returns the first and the last part of the first run that correspond to a part of the
    /// second.
    pub fn part(&self, part: usize) -> (usize, usize) {
        self.parts[part]
    }

    /// Returns the predicted place of a statement of the second version that is first executed at
    /// this time.
    pub fn predicted(&self, time: u64) -> usize {
        let expected = self.expected(time);
        self.times.partition_point(|&known| known < expected)
    }

    /// Returns the number of statements of the first version that end before a time.
    pub fn ended(&self, time: u64) -> usize {
        self.ends.partition_point(|&known| known < time)
    }

    /// Returns the time in the first run that corresponds to a time in the second.
    pub fn expected(&self, time: u64) -> u64 {
        let after = self.ties.partition_point(|&(of_b, _)| of_b <= time);
        match (
            after.checked_sub(1).map(|i| self.ties[i]),
            self.ties.get(after),
        ) {
            (Some((b0, a0)), Some(&(b1, a1))) => {
                let part = u128::from(time - b0) * u128::from(a1 - a0) / u128::from(b1 - b0).max(1);
                a0 + part as u64
            }
            (Some((b0, a0)), None) => a0.saturating_add(time - b0),
            (None, Some(&(b1, a1))) => a1.saturating_sub(b1 - time),
            (None, None) => time,
        }
    }
}

/// The number of a version's statements with a certain sequence of values, and the first of these
/// statements.
type Seen<'v> = Option<(u32, &'v Statement)>;

/// Returns the times of the pairs of statements with a sequence of values that no other statement
/// has. Pairs with a single value that may be an address are left out.
fn certain(a: &Version, b: &Version) -> Vec<(u64, u64)> {
    let mut found: FxHashMap<(u8, u64, u64), [Seen<'_>; 2]> = FxHashMap::default();
    for (side, version) in [a, b].into_iter().enumerate() {
        for statement in &version.statements {
            let values = statement.telling();
            if values.count == 1 && values.may_be_addresses() {
                continue;
            }
            let key = (statement.class.group(), values.count, values.sequence);
            let entry = &mut found.entry(key).or_default()[side];
            let (seen, first) = entry.unwrap_or((0, statement));
            *entry = Some((seen + 1, first));
        }
    }
    let pairs = found.into_values().filter_map(|pair| match pair {
        [Some((1, of_a)), Some((1, of_b))] => {
            Some([(of_b.first, of_a.first), (of_b.last, of_a.last)])
        }
        _ => None,
    });
    pairs.flatten().collect()
}

/// Returns a longest subsequence of the pairs that strictly ascends in both numbers (Fredman 1975).
/// O(n log n).
pub(crate) fn rising(mut pairs: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    // At most one of the pairs with equal first numbers can be used.
    pairs.sort_by_key(|&(of_b, of_a)| (of_b, std::cmp::Reverse(of_a)));
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![usize::MAX; pairs.len()];
    for at in 0..pairs.len() {
        let length = ends.partition_point(|&end| pairs[end].1 < pairs[at].1);
        if let Some(shorter) = length.checked_sub(1) {
            before[at] = ends[shorter];
        }
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut kept = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied().unwrap_or(usize::MAX);
    while let Some(&pair) = pairs.get(at) {
        kept.push(pair);
        at = before[at];
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::rising;

    /// Returns the length of the longest ascending subsequence, found by trying all.
    fn longest(pairs: &[(u64, u64)]) -> usize {
        let sets = 0u32..1 << pairs.len();
        let rises = |set: &u32| {
            let mut chosen: Vec<_> = (0..pairs.len())
                .filter(|i| set >> i & 1 == 1)
                .map(|i| pairs[i])
                .collect();
            chosen.sort_unstable();
            chosen
                .windows(2)
                .all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1)
        };
        sets.filter(rises).map(u32::count_ones).max().unwrap_or(0) as usize
    }

    proptest! {
        #[test]
        fn the_longest_rising_part_is_found(pairs in prop::collection::vec((0u64..12, 0u64..12), 0..10)) {
            let kept = rising(pairs.clone());
            prop_assert!(kept.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
            prop_assert!(kept.iter().all(|pair| pairs.contains(pair)));
            prop_assert_eq!(kept.len(), longest(&pairs));
        }
    }
}
