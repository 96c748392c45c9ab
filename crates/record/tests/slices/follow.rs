//! Slices of every guest, from many criteria.

use afterimage_machine::NodeEnd;
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
        let blocks = executed.blocks.len();
        let whole = |wants| Criterion {
            start: executed.start,
            instructions: usize::MAX,
            blocks,
            wants,
        };
        let mut criteria: Vec<(Criterion, Vec<Vertex>)> = Vec::new();
        if let Some(inst) = inst {
            let vertex = executed.insts[inst];
            let known = recording
                .program
                .function(code.function)
                .expect("a function");
            let block = known.block_of(code.insts[inst].op).expect("a block");
            let node = &stored.path.nodes()[executed.node];
            let position = node
                .blocks
                .iter()
                .position(|&b| b == block)
                .expect("its block");
            let criterion = Criterion {
                instructions: inst + 1,
                blocks: position + 1,
                ..whole(vec![Want::Inst(inst)])
            };
            criteria.push((criterion, vec![vertex]));
        }
        let last = executed.blocks.last().copied();
        criteria.extend(last.map(|last| (whole(vec![Want::Block]), vec![last])));
        if let NodeEnd::Return(_) = code.end
            && let Some(end) = executed.end
        {
            let criterion = whole(vec![Want::End]);
            criteria.push((criterion, vec![end]));
        }
        for (criterion, from) in criteria {
            for follows in FOLLOWS {
                let program = &recording.program;
                let nodes = stored.path.nodes();
                let mut slicer = Backward::new(program, nodes, follows, criterion.clone());
                slicer.pass(&naive.stretch, machine.codes());
                let found = slicer.finish().operators;
                let expected = naive.reach(&from, follows);
                let keys = found.keys().chain(expected.keys());
                let differs = |key: &&_| found.get(*key) != expected.get(*key);
                let differ = keys
                    .filter(differs)
                    .map(|key| (key, found.get(key), expected.get(key)));
                let differ = Vec::from_iter(differ);
                assert!(
                    differ.is_empty(),
                    "{criterion:?} {follows:?}: operator, found, expected: {differ:?}"
                );
            }
        }
    }
}
