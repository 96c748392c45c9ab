//! Defines corresponding stretches of both runs, as sequences of executed statements.
//!
//! If an optimiser inlines a function, a statement of the optimised version may do only the work
//! that its counterpart does when called from one place. Over the whole run, the values of the two
//! statements are then weak evidence. But their actions *at the same time* are strong evidence.
//! Statements with the same sequence of values are [anchors](anchors). The k-th executions of two
//! anchored statements correspond. Between two anchors, there are a few dozen executions of one
//! version and about a hundred of the other.

use crate::order::rising;
use crate::{Class, Matching, Values, Version};

/// An execution of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The statement.
    pub statement: u32,
    /// The statement's value; for tests and branches, the compared value.
    pub value: u64,
    /// The accessed address, or [`NO_ADDRESS`](Self::NO_ADDRESS).
    pub address: u64,
}

impl Instance {
    /// The address of an execution that does not access memory.
    pub const NO_ADDRESS: u64 = u64::MAX;
}

/// A stretch of the second run, and the corresponding stretch of the first run with some margin on
/// both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region<'r> {
    /// The first version's executions.
    pub a: &'r [Instance],
    /// The second version's executions.
    pub b: &'r [Instance],
    /// The beginning of the part of `a` that is certainly in the stretch.
    pub first: usize,
    /// The end of the part of `a` that is certainly in the stretch.
    pub last: usize,
}

/// The number of blocks by which an optimiser may move an execution relative to its neighbours.
const MOVED: u64 = 64;

/// Returns pairs of statements, one from each version, whose executions correspond one to one,
/// according to their values and times.
pub fn anchors(a: &Version, b: &Version, matching: &Matching) -> Vec<(u32, u32)> {
    let pairs = (0..).zip(&matching.of_b).filter_map(|(at, found)| {
        let found = found.as_ref()?;
        let of_b = &b.statements[at as usize];
        let values = found.evidence.values;
        let same = values == Values::Same || values == Values::Shifted;
        let told = !of_b.telling().is_constant() || of_b.values.count == 1;
        let one = !matches!(of_b.class, Class::Call | Class::Other);
        (same && told && one).then_some((found.a, at))
    });
    let pairs: Vec<(u32, u32)> = pairs.collect();
    let times = |&(of_a, of_b): &(u32, u32)| {
        let (of_a, of_b) = (&a.statements[of_a as usize], &b.statements[of_b as usize]);
        [(of_b.first, of_a.first), (of_b.last, of_a.last)]
    };
    let ties = rising(pairs.iter().flat_map(times).collect());
    let in_order = |pair: &(u32, u32)| {
        times(pair).into_iter().all(|(of_b, of_a)| {
            let before = ties.partition_point(|tie| tie.0 < of_b);
            let after = ties.partition_point(|tie| tie.0 <= of_b);
            let first = before.checked_sub(1).map_or(0, |at| ties[at].1);
            let last = ties.get(after).map_or(u64::MAX, |tie| tie.1);
            (first.saturating_sub(MOVED)..=last.saturating_add(MOVED)).contains(&of_a)
        })
    };
    let mut pairs = pairs;
    pairs.retain(in_order);
    pairs
}
