//! Stretches of both runs that correspond, as sequences of executed statements.
//!
//! An optimiser inlines: a statement of the optimised version does then what one of the unoptimised version does only when called from one place, and their
//! values as a whole say little. But what both did *at the same time* says much. Statements that gave the same sequence of values are [anchors](anchors): the k-th execution
//! of one corresponds to the k-th of the other. Between two anchors a few dozen executions of one version face some hundred of the other.

use crate::order::Order;
use crate::{Class, Matching, Values, Version};

/// An execution of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The statement.
    pub statement: u32,
    /// The value that it gave; of tests and branches what was compared.
    pub value: u64,
    /// The address that it accessed; of others [`NO_ADDRESS`](Self::NO_ADDRESS).
    pub address: u64,
}

impl Instance {
    /// It accessed no memory.
    pub const NO_ADDRESS: u64 = u64::MAX;
}

/// A stretch of the second run, and the one of the first run that corresponds to it with some room on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// What the first version executed.
    pub a: Vec<Instance>,
    /// What the second executed.
    pub b: Vec<Instance>,
    /// Where in `a` that begins which is surely in the stretch.
    pub first: usize,
    /// Where it ends.
    pub last: usize,
}

/// Pairs of statements whose executions correspond one to one, as far as their values and times tell: of the first version and of the second.
pub fn anchors(a: &Version, b: &Version, matching: &Matching) -> Vec<(u32, u32)> {
    let order = Order::new(a, b);
    let near = a.length / 64 + 1;
    let pairs = (0..).zip(&matching.of_b).filter_map(|(at, found)| {
        let found = found.as_ref()?;
        let of_a = &a.statements[found.a as usize];
        let of_b = &b.statements[at as usize];
        let values = found.evidence.values;
        let same = values == Values::Same || values == Values::Shifted;
        let told = !of_b.telling().is_constant() || of_b.values.count == 1;
        let times = order.expected(of_b.first).abs_diff(of_a.first) <= near
            && order.expected(of_b.last).abs_diff(of_a.last) <= near;
        let one = !matches!(of_b.class, Class::Call | Class::Other);
        (same && told && times && one).then_some((found.a, at))
    });
    pairs.collect()
}
