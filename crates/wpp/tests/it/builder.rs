//! Checks that the builder's segments represent exactly its input.

use std::collections::BTreeMap;

use crate::oracle::{Event, Run, expand, runs};
use afterimage_ids::{FuncId, NodeId};
use afterimage_wpp::{Builder, Limits, Root, Segment, Shape};
use proptest::prelude::*;

fn verify(run: &Run, segments: &[Segment]) {
    let mut events = Vec::new();
    let mut open = Vec::new();
    let mut before = 0;
    for segment in segments {
        assert_eq!(segment.check(&run.nodes), Ok(()));
        assert_eq!(segment.open, open);
        assert_eq!(segment.before, before);
        before += segment.length;
        open = segment.open_after();
        let expanded = expand(segment);
        let mut nodes = BTreeMap::<NodeId, u64>::new();
        let mut calls = BTreeMap::<FuncId, u64>::new();
        for &event in &expanded {
            match event {
                Event::Node(node, times) => *nodes.entry(node).or_default() += times,
                Event::Enter(function) => *calls.entry(function).or_default() += 1,
                Event::Leave => {}
            }
        }
        assert_eq!(segment.node_counts, nodes.into_iter().collect::<Vec<_>>());
        assert_eq!(segment.call_counts, calls.into_iter().collect::<Vec<_>>());
        events.extend(expanded);
    }
    assert_eq!(events, run.single());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn segments_stand_for_the_events(run in runs(1_000), limit in 1..60usize) {
        verify(&run, &run.segments(limit));
        let whole = run.segments(usize::MAX);
        prop_assert!(whole.len() <= 1);
        verify(&run, &whole);
    }

    #[test]
    fn long_lists(symbols in prop::collection::vec(0..6u32, 0..3_000), limit in 100..2_000usize) {
        let mut run = straight(6);
        run.events.extend(symbols.iter().map(|&node| Event::Node(NodeId::from_u32(node), 1)));
        verify(&run, &run.segments(limit));
        verify(&run, &run.segments(usize::MAX));
    }
}

/// Returns a run that has begun an activation of a function with `nodes` nodes and no loops.
fn straight(nodes: u32) -> Run {
    let shape = Shape {
        length: 1,
        ..Shape::default()
    };
    let node = |n| afterimage_wpp::Node {
        function: FuncId::from_u32(0),
        blocks: [afterimage_ids::BlockId::from_u32(n)].into(),
        left_out: 0,
    };
    Run {
        nodes: (0..nodes).map(node).collect(),
        shapes: vec![shape; nodes as usize],
        events: vec![Event::Enter(FuncId::from_u32(0))],
    }
}

/// Returns a number that looks random.
fn noise(n: u64) -> u64 {
    let n = (n ^ n >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

fn size(segment: &Segment) -> usize {
    segment.grammar.rules.len() + segment.grammar.symbols.len()
}

#[test]
fn iterations_are_counted_not_stored() {
    let mut run = straight(0);
    let shape = |loops: &[u32], header| Shape {
        length: 2,
        loops: loops.into(),
        header,
    };
    let shapes = [
        shape(&[0], true),
        shape(&[0, 1], true),
        shape(&[0, 1], false),
        shape(&[0], false),
    ];
    for shape in shapes {
        run.nodes.push(afterimage_wpp::Node {
            function: FuncId::from_u32(0),
            blocks: (0..2).map(afterimage_ids::BlockId::from_u32).collect(),
            left_out: 0,
        });
        run.shapes.push(shape);
    }
    for _ in 0..100 {
        let node = |n| Event::Node(NodeId::from_u32(n), 1);
        run.events.push(node(0));
        for _ in 0..50 {
            run.events.extend([node(1), node(2)]);
        }
        run.events.push(node(3));
    }
    let segments = run.segments(usize::MAX);
    verify(&run, &segments);
    // The rules are the inner iteration, its repetition, the outer iteration, and its repetition.
    assert_eq!(segments[0].grammar.rules.len(), 4);
    assert_eq!(segments[0].grammar.symbols.len(), 2 + 1 + 3 + 1);
    assert_eq!(segments[0].root.len(), 2);
}

#[test]
fn equal_stretches_of_a_long_list_get_equal_rules() {
    let mut run = straight(1_000);
    let stretch: Vec<_> = (0..20_000)
        .map(|n| Event::Node(NodeId::from_u32(noise(n) as u32 % 1_000), 1))
        .collect();
    run.events.extend(&stretch);
    let once = size(&run.segments(usize::MAX)[0]);
    for n in 0..20 {
        run.events.push(Event::Node(NodeId::from_u32(n), 1));
        // Each copy is at a different distance from the beginning.
        run.events.extend(&stretch[n as usize..]);
    }
    let segments = run.segments(usize::MAX);
    verify(&run, &segments);
    let copies = size(&segments[0]);
    assert!(copies < 2 * once + 20 * 100, "{once} {copies}");
}

#[test]
fn what_never_recurs_costs_one_symbol() {
    let mut run = straight(100_000);
    run.events
        .extend((0..100_000).map(|n| Event::Node(NodeId::from_u32(n), 1)));
    let segments = run.segments(usize::MAX);
    assert!(size(&segments[0]) < 100_020, "{}", size(&segments[0]));
}

#[test]
fn a_million_activations_are_open() {
    const DEPTH: u32 = 1_000_000;
    let mut builder = Builder::new(Limits::default());
    let shape = Shape {
        length: 1,
        loops: [7].into(),
        header: true,
    };
    let node = builder.define(shape);
    let function = FuncId::from_u32(0);
    for _ in 0..DEPTH {
        builder.enter(function);
        builder.node(node, 1);
    }
    let descent = builder.finish().unwrap();
    assert_eq!(descent.root.len(), 2 * DEPTH as usize);
    assert_eq!(descent.length, u64::from(DEPTH));
    for _ in 0..DEPTH {
        builder.leave();
    }
    let ascent = builder.finish().unwrap();
    assert_eq!(ascent.root, vec![Root::Leave; DEPTH as usize]);
    assert_eq!(ascent.open.len(), DEPTH as usize);

    // The same test within one segment.
    for _ in 0..DEPTH {
        builder.enter(function);
        builder.node(node, 1);
    }
    for _ in 0..DEPTH {
        builder.leave();
    }
    let whole = builder.finish().unwrap();
    assert_eq!(whole.root.len(), 1);
    assert_eq!(whole.call_counts, [(function, u64::from(DEPTH))]);
    assert_eq!(builder.time(), 2 * u64::from(DEPTH));
}

#[test]
fn an_endless_loop_takes_bounded_memory() {
    let mut builder = Builder::new(Limits { symbols: 10_000 });
    let header = Shape {
        length: 1,
        loops: [0].into(),
        header: true,
    };
    let body = Shape {
        header: false,
        ..header.clone()
    };
    let header = builder.define(header);
    let nodes: Vec<_> = (0..50).map(|_| builder.define(body.clone())).collect();
    builder.enter(FuncId::from_u32(0));
    let mut segments = Vec::new();
    for n in 0..200_000 {
        builder.node(header, 1);
        builder.node(nodes[noise(n) as usize % 50], 1);
        builder.node(nodes[noise(n + 1_000_000) as usize % 50], 1);
        segments.extend(builder.take_segment());
    }
    segments.extend(builder.finish());
    assert!(segments.len() > 5);
    assert!(segments.iter().all(|segment| size(segment) <= 10_100));
    let length: u64 = segments.iter().map(|segment| segment.length).sum();
    assert_eq!(length, 600_000);
}
