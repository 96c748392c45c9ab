//! Slices of every guest, from many criteria.

use std::collections::BTreeMap;

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::Machine;
use afterimage_slice::{Backward, Criterion, Follows, Forward, Want};
use afterimage_testkit::modules::SplitMix64;

use crate::epochs::Stored;
use crate::harness::Recording;
use crate::naive::{Naive, Part, Vertex};

/// Of longer runs no slices are made: the naive graph takes too much memory.
const MOST: u64 = 20_000;
/// How many criteria are tried.
const CRITERIA: u64 = 25;

const FOLLOWS: [Follows; 4] = [
    Follows {
        control: true,
        addresses: true,
        data: true,
    },
    Follows {
        control: false,
        addresses: true,
        data: true,
    },
    Follows {
        control: false,
        addresses: false,
        data: true,
    },
    Follows {
        control: true,
        addresses: true,
        data: false,
    },
];

/// Slices are what can be reached.
pub fn agree(recording: &Recording) {
    let stored = Stored::of(recording);
    let length = stored.path.length();
    if length > MOST {
        return;
    }
    let (naive, machine) = Naive::record(recording, &stored);
    let compared = Compared {
        recording,
        stored: &stored,
        machine: &machine,
        users: FOLLOWS.map(|follows| naive.users(follows)),
        naive: &naive,
    };
    let mut random = SplitMix64(length);
    let mut earlier = Vec::new();
    let count = naive.executed.len();
    for turn in 0..CRITERIA.min(2 * count as u64) {
        let at = match turn {
            0 => count - 1,
            _ => random.below(count),
        };
        let executed = &naive.executed[at];
        let inst = match executed.insts.len() {
            0 => None,
            many => Some(random.below(many)),
        };
        let of = |want| Criterion {
            start: executed.start,
            wants: vec![want],
        };
        let mut criteria: Vec<(Criterion, Vec<Vertex>)> = Vec::new();
        criteria.extend(inst.map(|inst| (of(Want::Inst(inst)), vec![executed.insts[inst]])));
        let last = executed.blocks.len().checked_sub(1);
        criteria.extend(last.map(|last| (of(Want::Block(last)), vec![executed.blocks[last]])));
        if let Some(end) = executed.end {
            criteria.push((of(Want::End), vec![end]));
        }
        earlier.extend(criteria.iter().cloned());
        for (criterion, from) in criteria {
            compared.slices(&[criterion], &from);
        }
    }
    // Several at once: what can be reached from any of them.
    for some in earlier.chunks(5) {
        let criteria = some.iter().map(|(criterion, _)| criterion.clone());
        let criteria = Vec::from_iter(criteria);
        let from = Vec::from_iter(some.iter().flat_map(|(_, from)| from.iter().copied()));
        compared.slices(&criteria, &from);
    }
}

/// A run, and all of its dependences.
struct Compared<'t> {
    recording: &'t Recording,
    stored: &'t Stored,
    naive: &'t Naive<'t>,
    machine: &'t Machine<'t>,
    /// Who depends on what, for each of the kinds that are followed.
    users: [Vec<Vec<Vertex>>; FOLLOWS.len()],
}

impl Compared<'_> {
    /// Slices from these criteria are what can be reached from these vertices, and what these can be reached from.
    fn slices(&self, criteria: &[Criterion], from: &[Vertex]) {
        let program = &self.recording.program;
        let nodes = self.stored.path.nodes();
        let codes = self.machine.codes();
        let first = criteria.iter().map(|criterion| criterion.start).min();
        let first = first.expect("a criterion");
        for (follows, users) in FOLLOWS.into_iter().zip(&self.users) {
            let mut slicer = Backward::new(program, nodes, follows, criteria.to_vec());
            codes
                .iter()
                .for_each(|(node, code)| slicer.prepare(node, code));
            for part in self.naive.stretches.iter().rev() {
                slicer.pass(&part.stretch);
            }
            let found = slicer.finish().operators;
            let expected = self.naive.reach(from, follows);
            let what = format!("backward {criteria:?} {follows:?}");
            same(&found, &expected, &what);
            let mut slicer = Forward::new(program, nodes, follows, criteria.to_vec());
            codes
                .iter()
                .for_each(|(node, code)| slicer.prepare(node, code));
            // From the part on that has the first of them.
            let begins = |part: &Part| part.stretch.first().is_some_and(|start| start <= first);
            let from_part = self.naive.stretches.iter().rposition(begins).unwrap_or(0);
            let parts = &self.naive.stretches[from_part..];
            for &(function, node) in &parts[0].open {
                slicer.open(function, node);
            }
            for part in parts {
                slicer.pass(&part.stretch);
            }
            let found = slicer.finish().operators;
            let expected = self.naive.reached_from(from, users);
            let what = format!("forward {criteria:?} {follows:?}");
            same(&found, &expected, &what);
        }
    }
}

fn same(
    found: &BTreeMap<(FuncId, OpId), u64>,
    expected: &BTreeMap<(FuncId, OpId), u64>,
    what: &str,
) {
    let keys = found.keys().chain(expected.keys());
    let differs = |key: &&_| found.get(*key) != expected.get(*key);
    let differ = keys
        .filter(differs)
        .map(|key| (key, found.get(key), expected.get(key)));
    let differ = Vec::from_iter(differ);
    assert!(
        differ.is_empty(),
        "{what}: operator, found, expected: {differ:?}"
    );
}
