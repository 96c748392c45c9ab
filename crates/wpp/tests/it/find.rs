//! Compares occurrences of patterns with a search of the expanded run.

use std::sync::Arc;

use crate::oracle::{Event, Run, runs};
use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::{
    InMemory, Link, Match, Part, Pattern, PatternError, PatternOccurrences, WholePath,
};
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
    /// The activation's caller, and the event of the caller that made the call.
    caller: Option<(usize, usize)>,
    ended: bool,
}

fn activations(run: &Run) -> Vec<Activation> {
    let (mut all, mut stack, mut time) = (Vec::<Activation>::new(), Vec::<usize>::new(), 0);
    for event in run.single() {
        match event {
            Event::Enter(function) => {
                let number = all.len();
                let caller = stack.last().map(|&caller| {
                    all[caller].own.push(Own::Call(number));
                    (caller, all[caller].own.len() - 1)
                });
                stack.push(number);
                all.push(Activation {
                    function,
                    entered: time + 1,
                    own: Vec::new(),
                    caller,
                    ended: false,
                });
            }
            Event::Node(node, _) => {
                let own = &mut all[*stack.last().unwrap()].own;
                for &block in &run.nodes[node].blocks {
                    time += 1;
                    own.push(Own::Block(block, time));
                }
            }
            Event::Leave => all[stack.pop().unwrap()].ended = true,
        }
    }
    all
}

/// Returns where the caller of an activation continues afterwards, if the caller then executes a
/// block before making another call.
fn goes_on(all: &[Activation], activation: usize) -> Option<(usize, usize)> {
    let (caller, call) = all[activation].caller.filter(|_| all[activation].ended)?;
    let next = all[caller].own.get(call + 1);
    matches!(next, Some(Own::Block(..))).then_some((caller, call + 1))
}

/// Returns the times at which occurrences of `parts` end. They begin with event number `from` of an
/// activation.
fn ends(all: &[Activation], parts: &[Part], activation: usize, from: usize) -> Vec<u64> {
    let own = &all[activation].own[from..];
    let blocks = own.iter().enumerate().filter_map(|(at, own)| match *own {
        Own::Block(block, time) => Some((at, block, time)),
        Own::Call(_) => None,
    });
    let (part, rest) = parts.split_first().unwrap();
    let first: Vec<_> = blocks.take(part.blocks.len()).collect();
    if all[activation].function != part.function
        || !first.iter().map(|block| &block.1).eq(&part.blocks)
    {
        return Vec::new();
    }
    let (at, _, time) = first[part.blocks.len() - 1];
    let behind = &own[at + 1..];
    match rest.first().map(|next| next.link) {
        None => vec![time],
        Some(Link::Call) => {
            let calls = behind.iter().map_while(|own| match *own {
                Own::Call(callee) => Some(callee),
                Own::Block(..) => None,
            });
            calls
                .flat_map(|callee| ends(all, rest, callee, 0))
                .collect()
        }
        Some(Link::Return) if behind.iter().any(|own| matches!(own, Own::Block(..))) => Vec::new(),
        Some(Link::Return) => match goes_on(all, activation) {
            Some((caller, next)) => ends(all, rest, caller, next),
            None => Vec::new(),
        },
    }
}

fn naive(run: &Run, parts: &[Part]) -> Vec<Match> {
    let all = activations(run);
    let mut found = Vec::new();
    for (number, activation) in all.iter().enumerate() {
        for (at, own) in activation.own.iter().enumerate() {
            if let Own::Block(_, first) = *own {
                let ends = ends(&all, parts, number, at);
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

/// Returns a pattern cut out of a run, so that it usually occurs.
fn pattern(run: &Run, at: &Index, lengths: &[usize], calls: usize) -> Option<Vec<Part>> {
    let all = activations(run);
    let mut activation = at.index(all.len().max(1));
    let mut from = at.index(all.get(activation)?.own.len().max(1));
    let mut link = Link::Call;
    let mut parts = Vec::new();
    for &length in lengths {
        let own = &all[activation];
        let (mut blocks, mut next, mut goes_on_itself) = (Vec::new(), None, false);
        let later = parts.len() < calls;
        for event in own.own.get(from..).unwrap_or_default() {
            match *event {
                Own::Block(block, _) if blocks.len() < length => blocks.push(block),
                Own::Block(..) => {
                    goes_on_itself = true;
                    break;
                }
                Own::Call(called) if later && !blocks.is_empty() => {
                    next = Some((called, 0, Link::Call));
                    break;
                }
                Own::Call(_) => {}
            }
        }
        if blocks.is_empty() {
            break;
        }
        if later && next.is_none() && !goes_on_itself {
            let caller = goes_on(&all, activation);
            next = caller.map(|(caller, at)| (caller, at, Link::Return));
        }
        parts.push(Part {
            function: own.function,
            blocks,
            link,
        });
        let Some(next) = next else { break };
        (activation, from, link) = next;
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
        assert_eq!(found, PatternOccurrences { count, first }, "{pattern:?}");
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
        check(&run, vec![Part { function: FuncId::from_u32(function), blocks, link: Link::Call }], limit);
    }

    #[test]
    fn across_calls_and_returns(run in runs(300), at: Index, lengths in prop::collection::vec(1usize..4, 2..6), limit in 1usize..300) {
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
        link: Link::Call,
    };
    assert_eq!(Pattern::new(vec![]), Err(PatternError::Empty));
    assert_eq!(
        Pattern::new(vec![part(&[1]), part(&[])]),
        Err(PatternError::Empty)
    );
    assert_eq!(Pattern::new(vec![part(&[1]); 65]), Err(PatternError::Calls));
    assert!(Pattern::new(vec![part(&[1]); 64]).is_ok());
}
