//! Slices of every guest, from many criteria.

use afterimage_machine::{Machine, NodeEnd};
use afterimage_slice::{Backward, Criterion, Follows, Want};
use afterimage_testkit::modules::SplitMix64;

use crate::epochs::Stored;
use crate::harness::Recording;
use crate::naive::{Naive, Vertex};

/// Of longer runs no slices are made: the naive graph takes too much memory.
const MOST: u64 = 20_000;
/// How many criteria are tried.
const CRITERIA: u64 = 40;

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
    let mut random = SplitMix64(length);
    let mut earlier = Vec::new();
    let count = naive.executed.len();
    for turn in 0..CRITERIA.min(2 * count as u64) {
        let at = match turn {
            0 => count - 1,
            _ => random.below(count),
        };
        let executed = &naive.executed[at];
        let code = &machine.codes()[executed.node];
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
        if let NodeEnd::Return(_) = code.end
            && let Some(end) = executed.end
        {
            criteria.push((of(Want::End), vec![end]));
        }
        earlier.extend(criteria.iter().cloned());
        for (criterion, from) in criteria {
            alone(recording, &stored, &naive, &machine, vec![criterion], &from);
        }
    }
    // Several at once: what can be reached from any of them.
    for some in earlier.chunks(5) {
        let criteria = some.iter().map(|(criterion, _)| criterion.clone()).collect();
        let from = Vec::from_iter(some.iter().flat_map(|(_, from)| from.iter().copied()));
        alone(recording, &stored, &naive, &machine, criteria, &from);
    }
}

/// Slices from these criteria are what can be reached from these vertices.
fn alone(
    recording: &Recording,
    stored: &Stored,
    naive: &Naive<'_>,
    machine: &Machine<'_>,
    criteria: Vec<Criterion>,
    from: &[Vertex],
) {
    for follows in FOLLOWS {
        let program = &recording.program;
        let nodes = stored.path.nodes();
        let mut slicer = Backward::new(program, nodes, follows, criteria.clone());
        slicer.pass(&naive.stretch, machine.codes());
        let found = slicer.finish().operators;
        let expected = naive.reach(from, follows);
        let keys = found.keys().chain(expected.keys());
        let differs = |key: &&_| found.get(*key) != expected.get(*key);
        let differ = keys
            .filter(differs)
            .map(|key| (key, found.get(key), expected.get(key)));
        let differ = Vec::from_iter(differ);
        assert!(
            differ.is_empty(),
            "{criteria:?} {follows:?}: operator, found, expected: {differ:?}"
        );
    }
}
