//! Finds statements of the first version that may be the counterpart of a statement of the second.

use rustc_hash::FxHashMap;

use crate::order::Order;
use crate::set::{Filter, Set};
use crate::{Producer, Statement, Version};

/// The maximum number of candidates from one index.
const MOST: usize = 48;
/// The number of candidates on each side of the place predicted by the order.
const AROUND: usize = 12;

/// The number of parts of the run that the index merges into one.
const COARSE: usize = 8;
/// The maximum number of candidates for each merged part, among the statements executed in that
/// part.
const ACTIVE: usize = 128;

/// Statements of the first version, indexed by their actions.
pub(crate) struct Index {
    sequences: FxHashMap<(u8, u64, u64), Vec<u32>>,
    steps: FxHashMap<(u8, u64, u64), Vec<u32>>,
    multisets: FxHashMap<(u8, u64, u64), Vec<u32>>,
    samples: FxHashMap<(u8, u64), Vec<u32>>,
    /// The statements by operator and merged part of the run.
    active: FxHashMap<(u64, usize), Vec<u32>>,
}

impl Index {
    /// Indexes the statements in the order of their first execution. O(statements).
    pub fn new(version: &Version, order: &Order) -> Self {
        let mut index = Self {
            sequences: FxHashMap::default(),
            steps: FxHashMap::default(),
            multisets: FxHashMap::default(),
            samples: FxHashMap::default(),
            active: FxHashMap::default(),
        };
        for &at in &order.ordered {
            let statement = &version.statements[at as usize];
            let values = statement.telling();
            let group = statement.class.group();
            let key = |hash| (group, values.count, hash);
            let into = |map: &mut FxHashMap<_, Vec<u32>>, hash| {
                map.entry(key(hash)).or_default().push(at);
            };
            into(&mut index.sequences, values.sequence);
            into(&mut index.multisets, values.multiset);
            if !values.is_constant() {
                into(&mut index.steps, values.steps);
            }
            let mut parts: Vec<usize> = statement.active.windows().map(|w| w / COARSE).collect();
            parts.dedup();
            for part in parts {
                let here = index.active.entry((statement.operator, part));
                here.or_default().push(at);
            }
            for (hash, _) in values.sample.elements() {
                let sample = index.samples.entry((group, hash));
                sample.or_default().push(at);
            }
        }
        index
    }

    /// Adds the candidates for a statement that its actions and the order suggest. A candidate may
    /// be added more than once. `predicted` is the statement's predicted place in the order.
    pub fn candidates(&self, of: &Statement, order: &Order, predicted: usize, into: &mut Vec<u32>) {
        let values = of.telling();
        let group = of.class.group();
        let mut near = |all: Option<&Vec<u32>>| {
            let Some(all) = all else { return };
            into.extend(nearest(all, order, predicted, MOST));
        };
        near(self.sequences.get(&(group, values.count, values.sequence)));
        near(self.multisets.get(&(group, values.count, values.multiset)));
        near(self.steps.get(&(group, values.count, values.steps)));
        for (hash, _) in values.sample.elements() {
            near(self.samples.get(&(group, hash)));
        }
        if let Some(part) = of.active.windows().next() {
            let (first, last) = order.part(part);
            for part in first / COARSE..=last / COARSE {
                if let Some(here) = self.active.get(&(of.operator, part)) {
                    into.extend(nearest(here, order, predicted, ACTIVE));
                }
            }
        }
        let first = predicted.saturating_sub(AROUND);
        let around = order.ordered.iter().skip(first).take(2 * AROUND);
        into.extend(around);
    }
}

/// Returns the statements first executed nearest to a place.
fn nearest<'i>(all: &'i [u32], order: &Order, place: usize, most: usize) -> &'i [u32] {
    let at = all.partition_point(|&statement| (order.place[statement as usize] as usize) < place);
    let first = at.saturating_sub(most / 2);
    let last = (first + most).min(all.len());
    &all[last.saturating_sub(most)..last]
}

/// The producers of statements' operands, and the users of their results.
pub(crate) struct Structure {
    /// For each statement, the statements among its producers.
    pub makers: Vec<Set>,
    /// For each statement, the constants among its producers, ascending and without repetition.
    pub constants: Vec<Vec<u64>>,
    /// For each statement, the users of its result.
    pub users: Vec<Set>,
    /// For each store, the loads that read its data, ascending, each with the strength of the link.
    pub readers: Vec<Vec<(u32, f32)>>,
    /// For each load, the stores that wrote its data. For each store, the loads that read its data.
    pub written: Vec<Filter>,
}

impl Structure {
    pub fn new(version: &Version) -> Self {
        let mut makers = Vec::new();
        let mut constants = Vec::new();
        for statement in &version.statements {
            let (mut statements, mut values) = (Vec::new(), Vec::new());
            for &producer in &statement.producers {
                match producer {
                    Producer::Statement(at) => statements.push(at),
                    Producer::Constant(value) => values.push(value),
                }
            }
            values.sort_unstable();
            makers.push(Set::from_iter(statements));
            constants.push(values);
        }
        let readers = version.readers();
        let written = version
            .statements
            .iter()
            .zip(&readers)
            .map(|(statement, readers)| {
                let all = statement.writers.iter().chain(readers);
                all.map(|(other, _)| *other).collect()
            });
        Self {
            makers,
            constants,
            users: version.users().into_iter().map(Set::from_iter).collect(),
            written: written.collect(),
            readers,
        }
    }
}
