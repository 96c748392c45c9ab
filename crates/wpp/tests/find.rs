//! Occurrences of patterns, against a search of the run written down.

mod oracle;

use std::sync::Arc;

use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::{Found, InMemory, Match, Part, Pattern, PatternError, WholePath};
use oracle::{Event, Run, runs};
use proptest::prelude::*;
use proptest::sample::Index;

/// An executed block, or a call.
#[derive(Clone, Copy, Debug)]
enum Own {
    Block(BlockId, u64),
    Call(usize),
}

#[derive(Debug)]
struct Activation {
    function: FuncId,
    entered: u64,
    own: Vec<Own>,
}

fn activations(run: &Run) -> Vec<Activation> {
    let (mut all, mut stack, mut time) = (Vec::<Activation>::new(), Vec::<usize>::new(), 0);
    for event in run.single() {
        match event {
            Event::Enter(function) => {
                let number = all.len();
                if let Some(&caller) = stack.last() {
                    all[caller].own.push(Own::Call(number));
                }
                stack.push(number);
                all.push(Activation {
                    function,
                    entered: time + 1,
                    own: Vec::new(),
                });
            }
            Event::Node(node, _) => {
                let own = &mut all[*stack.last().unwrap()].own;
                for &block in &run.nodes[node].blocks {
                    time += 1;
                    own.push(Own::Block(block, time));
                }
            }
            Event::Leave => {
                stack.pop();
            }
        }
    }
    all
}

/// The times at which the parts from one on are complete, if they begin with these events of an activation.
fn ends(all: &[Activation], parts: &[Part], number: usize, own: &[Own]) -> Vec<u64> {
    let blocks = own.iter().enumerate().filter_map(|(at, own)| match *own {
        Own::Block(block, time) => Some((at, block, time)),
        Own::Call(_) => None,
    });
    let part = &parts[number].blocks;
    let first: Vec<_> = blocks.take(part.len()).collect();
    if !first.iter().map(|block| &block.1).eq(part) {
        return Vec::new();
    }
    let (at, _, time) = first[part.len() - 1];
    if number + 1 == parts.len() {
        return vec![time];
    }
    let calls = own[at + 1..].iter().map_while(|own| match *own {
        Own::Call(callee) => Some(&all[callee]),
        Own::Block(..) => None,
    });
    calls
        .filter(|callee| callee.function == parts[number + 1].function)
        .flat_map(|callee| ends(all, parts, number + 1, &callee.own))
        .collect()
}

fn naive(run: &Run, parts: &[Part]) -> Vec<Match> {
    let all = activations(run);
    let mut found = Vec::new();
    for activation in &all {
        if activation.function != parts[0].function {
            continue;
        }
        for (at, own) in activation.own.iter().enumerate() {
            if let Own::Block(_, first) = *own {
                let ends = ends(&all, parts, 0, &activation.own[at..]);
                found.extend(ends.into_iter().map(|last| Match {
                    last,
                    first,
                    entered: activation.entered,
                }));
            }
        }
    }
    found.sort_unstable();
    found
}

/// A pattern that mostly occurs: cut out of an activation.
fn pattern(run: &Run, at: &Index, lengths: &[usize], calls: usize) -> Option<Vec<Part>> {
    let all = activations(run);
    let mut activation = all.get(at.index(all.len().max(1)))?;
    let mut from = at.index(activation.own.len().max(1));
    let mut parts = Vec::new();
    for &length in lengths {
        let (mut blocks, mut callee) = (Vec::new(), None);
        let later = parts.len() < calls;
        for own in &activation.own[from.min(activation.own.len())..] {
            match *own {
                Own::Block(block, _) if blocks.len() < length => blocks.push(block),
                Own::Block(..) => break,
                Own::Call(called) if later && !blocks.is_empty() => {
                    callee = Some(&all[called]);
                    break;
                }
                Own::Call(_) => {}
            }
        }
        if blocks.is_empty() {
            break;
        }
        parts.push(Part {
            function: activation.function,
            blocks,
        });
        let Some(callee) = callee else { break };
        (activation, from) = (callee, 0);
    }
    Some(parts).filter(|parts| !parts.is_empty())
}

fn check(run: &Run, parts: Vec<Part>, limit: usize) -> usize {
    let segments: InMemory = run.segments(limit).into_iter().collect();
    let path = WholePath::new(segments, Arc::new(run.nodes.clone())).unwrap();
    let expected = naive(run, &parts);
    let pattern = Pattern::new(parts).unwrap();
    for most in [0, 1, 3, usize::MAX] {
        let found = path.find(&pattern, most).unwrap();
        let first = expected.iter().take(most).copied().collect();
        let count = expected.len() as u64;
        assert_eq!(found, Found { count, first }, "{pattern:?}");
    }
    expected.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn within_a_function(run in runs(300), at: Index, length in 1usize..7, limit in 1usize..300) {
        if let Some(parts) = pattern(&run, &at, &[length], 0) {
            prop_assert!(check(&run, parts, limit) > 0);
        }
    }

    #[test]
    fn blocks_at_random(run in runs(300), blocks in prop::collection::vec(0u32..4, 1..5), function in 0u32..2, limit in 1usize..300) {
        let blocks = blocks.into_iter().map(BlockId::from_u32).collect();
        check(&run, vec![Part { function: FuncId::from_u32(function), blocks }], limit);
    }

    #[test]
    fn across_calls(run in runs(300), at: Index, lengths in prop::collection::vec(1usize..4, 2..4), limit in 1usize..300) {
        if let Some(parts) = pattern(&run, &at, &lengths, lengths.len() - 1) {
            prop_assert!(check(&run, parts, limit) > 0);
        }
    }
}

#[test]
fn a_pattern_has_blocks_and_not_too_many_parts() {
    let part = |blocks: &[u32]| Part {
        function: FuncId::from_u32(0),
        blocks: blocks.iter().copied().map(BlockId::from_u32).collect(),
    };
    assert_eq!(Pattern::new(vec![]), Err(PatternError::Empty));
    assert_eq!(
        Pattern::new(vec![part(&[1]), part(&[])]),
        Err(PatternError::Empty)
    );
    assert_eq!(Pattern::new(vec![part(&[1]); 65]), Err(PatternError::Calls));
    assert!(Pattern::new(vec![part(&[1]); 64]).is_ok());
}
