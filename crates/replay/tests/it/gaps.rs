//! Checks that a path with gaps is correct in the parts that it has.

use std::collections::HashMap;

use afterimage_ids::{FuncId, NodeId};
use afterimage_program::Program;
use afterimage_replay::whole_path::{PathRule, verify_path};
use afterimage_testkit::modules::SplitMix64;
use afterimage_wpp::{Continuation, Directory, Node};

use crate::walk::{Event, Options, Parts, walk};

/// The gaps by function and length.
#[derive(Default)]
struct Gaps(HashMap<(FuncId, u64), NodeId>);

impl Gaps {
    fn of(&mut self, directory: &mut Directory, function: FuncId, length: u64) -> Event {
        let gap = self.0.entry((function, length)).or_insert_with(|| {
            directory.continuations.push(Continuation::default());
            directory.nodes.push(Node {
                function,
                blocks: [].into(),
                left_out: length,
            })
        });
        Event::Node(*gap)
    }
}

/// Leaves out a part of the paths, and whole activations of functions that make no calls.
pub fn leave_out(parts: &mut Parts, random: &mut SplitMix64) {
    let mut gaps = Gaps::default();
    let (mut kept, mut open) = (Vec::new(), Vec::new());
    let all = std::mem::take(&mut parts.events);
    let directory = &mut parts.directory;
    let mut events = &all[..];
    while let Some((&event, mut rest)) = events.split_first() {
        let leaves_out = random.below(3) == 0;
        match (event, rest) {
            (Event::Enter(_), [Event::Node(node), Event::Leave, behind @ ..])
                if leaves_out && !open.is_empty() =>
            {
                let length = directory.nodes[*node].length();
                kept.push(gaps.of(directory, open[open.len() - 1], length));
                rest = behind;
            }
            (Event::Node(node), _) if leaves_out => {
                let Node { function, .. } = directory.nodes[node];
                let length = directory.nodes[node].length();
                kept.push(gaps.of(directory, function, length));
            }
            _ => {
                match event {
                    Event::Enter(function) => open.push(function),
                    Event::Leave => drop(open.pop()),
                    Event::Node(_) => {}
                }
                kept.push(event);
            }
        }
        events = rest;
    }
    parts.events = kept;
    parts.build();
    parts.directory.left_out = "some of it".to_owned();
    parts.directory.partial = None;
}

fn partial(seed: u64, segment: usize) -> (Vec<u8>, Program, Parts) {
    let module = wat::parse_str(crate::EXCEPTIONS).unwrap();
    let program = Program::parse(&module).unwrap();
    let options = Options {
        blocks: 300,
        depth: 20,
        segment,
        regular: false,
    };
    let mut parts = walk(&program, seed, options);
    leave_out(&mut parts, &mut SplitMix64(seed));
    (module, program, parts)
}

#[test]
fn what_was_left_out_is_not_missed() {
    for seed in 0..60 {
        for segment in [1 << 20, 3] {
            let (module, program, parts) = partial(seed, segment);
            let report = verify_path(&parts.file(), &program, &module).unwrap();
            assert_eq!(report.findings, [], "seed {seed}");
            assert!(report.counts && report.end);
        }
    }
}

#[test]
fn what_is_there_must_be_in_the_counts() {
    let (module, program, mut parts) = partial(1, 3);
    for counts in &mut parts.counts.functions {
        counts.entries = 0;
        counts.edges.iter_mut().for_each(|count| *count = 0);
    }
    let report = verify_path(&parts.file(), &program, &module).unwrap();
    let fired = |rule| report.findings.iter().any(|finding| finding.rule == rule);
    assert!(fired(PathRule::CallCounts) && fired(PathRule::EdgeCounts));
}
