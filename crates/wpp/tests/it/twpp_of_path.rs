//! Compares path traces from the grammar with the expanded run.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::oracle::{Run, programs, runs};
use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::twpp::{
    self, CallPath, CollectError, Collector, Event, PathCounts, PathOutline, UniquePath,
};
use afterimage_wpp::{InMemory, Node, Segment, Segments, Summary, WholePath};
use proptest::prelude::*;

fn whole_path(run: &Run, limit: usize) -> WholePath<InMemory> {
    let segments = run.segments(limit).into_iter().collect();
    WholePath::new(segments, Arc::new(run.nodes.clone())).unwrap()
}

/// Returns the events, with every block as a separate event.
fn events(run: &Run) -> Vec<Event> {
    let mut events = Vec::new();
    for event in &run.events {
        match *event {
            crate::oracle::Event::Enter(function) => events.push(Event::Enter(function)),
            crate::oracle::Event::Leave => events.push(Event::Leave),
            crate::oracle::Event::Node(node, times) => {
                let blocks = &run.nodes[node].blocks;
                for _ in 0..times {
                    events.extend(blocks.iter().copied().map(Event::Block));
                }
            }
        }
    }
    events
}

/// An activation of the expanded run.
#[derive(Debug)]
struct Call {
    function: FuncId,
    entered: u64,
    blocks: Vec<BlockId>,
    returned: bool,
}

fn calls(events: &[Event]) -> Vec<Call> {
    let (mut calls, mut stack, mut time) = (Vec::<Call>::new(), Vec::new(), 0);
    for &event in events {
        match event {
            Event::Enter(function) => {
                stack.push(calls.len());
                calls.push(Call {
                    function,
                    entered: time + 1,
                    blocks: Vec::new(),
                    returned: false,
                });
            }
            Event::Block(block) => {
                time += 1;
                calls[*stack.last().unwrap()].blocks.push(block);
            }
            Event::Leave => calls[stack.pop().unwrap()].returned = true,
        }
    }
    calls
}

fn functions(run: &Run) -> BTreeSet<FuncId> {
    // Include a function that the run does not have.
    let absent = std::iter::once(FuncId::from_u32(77));
    run.nodes
        .values()
        .map(|node| node.function)
        .chain(absent)
        .collect()
}

type Uses = HashMap<Vec<BlockId>, (u64, u64)>;

fn uses(paths: &[UniquePath]) -> Uses {
    let uses: Uses = paths
        .iter()
        .map(|path| (path.trace.blocks().collect(), (path.calls, path.unfinished)))
        .collect();
    assert_eq!(uses.len(), paths.len(), "a trace is there twice");
    uses
}

/// Checks the beginnings of a function's traces, and the counts of ranges of its calls.
fn outlines(path: &WholePath<InMemory>, function: FuncId, own: &[&Call], paths: &[UniquePath]) {
    let calls = own.len() as u64;
    for (most, from, to) in [
        (0, 1, 0),
        (3, 1, calls),
        (7, calls / 3 + 1, calls / 2 + 1),
        (1000, calls.max(1), calls + 5),
        (2, 2, calls.saturating_sub(1)),
    ] {
        let found = twpp::path_outlines(path, function, most, Some(from..=to)).unwrap();
        let numbers = (1..)
            .zip(own)
            .filter(|(number, _)| (from..=to).contains(number));
        let chosen: Vec<_> = numbers.map(|(_, call)| call).collect();
        let expected = paths.iter().map(|unique| {
            let blocks: Vec<_> = unique.trace.blocks().collect();
            let took: Vec<_> = chosen.iter().filter(|call| call.blocks == blocks).collect();
            PathOutline {
                length: blocks.len() as u64,
                beginning: blocks.into_iter().take(most).collect(),
                calls: unique.calls,
                unfinished: unique.unfinished,
                chosen: took.len() as u64,
                chosen_unfinished: took.iter().filter(|call| !call.returned).count() as u64,
            }
        });
        assert_eq!(
            found,
            expected.collect::<Vec<_>>(),
            "{most} {from}..={to} of {calls}"
        );
    }
}

fn check(run: &Run, limit: usize) {
    let path = whole_path(run, limit);
    let expected = events(run);
    let wpp = twpp::collect(&path, &|_| {}).unwrap();
    assert!(wpp.events().eq(expected.iter().copied()));
    // The result, including all numbers, must be the same as from the events themselves.
    let mut collector = Collector::new();
    expected.iter().for_each(|&e| collector.push(e).unwrap());
    assert_eq!(wpp, collector.finish().unwrap());

    let counts = twpp::count_paths(&path).unwrap();
    let exact = wpp.functions.iter().map(|function| PathCounts {
        function: function.function,
        calls: function.paths.iter().map(|path| path.calls).sum(),
        unfinished: function.paths.iter().map(|path| path.unfinished).sum(),
        paths: Some(function.paths.len() as u64),
        blocks: (function
            .paths
            .iter()
            .map(|path| path.calls * path.trace.len()))
        .sum(),
    });
    assert_eq!(counts, exact.collect::<Vec<_>>());

    let calls = calls(&expected);
    for function in functions(run) {
        let own: Vec<_> = calls.iter().filter(|c| c.function == function).collect();
        let mut naive = Uses::new();
        for call in &own {
            let uses = naive.entry(call.blocks.clone()).or_default();
            uses.0 += 1;
            uses.1 += u64::from(!call.returned);
        }
        let paths = twpp::function_paths(&path, function).unwrap();
        assert_eq!(paths.function, function);
        assert_eq!(uses(&paths.paths), naive);
        outlines(&path, function, &own, &paths.paths);
        for (number, call) in (1..).zip(&own) {
            let found = twpp::call_path(&path, function, number).unwrap();
            let trace = call.blocks.iter().copied().collect();
            let (entered, returned) = (call.entered, call.returned);
            let expected = CallPath {
                entered,
                trace,
                returned,
            };
            assert_eq!(found, Some(expected), "call {number} of {function}");
        }
        let beyond = twpp::call_path(&path, function, own.len() as u64 + 1).unwrap();
        assert_eq!(
            (beyond, twpp::call_path(&path, function, 0).unwrap()),
            (None, None)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn traces_are_those_of_the_run(run in runs(400), limit in 1usize..200) {
        check(&run, limit);
    }

    #[test]
    fn traces_are_those_of_a_program_in_one_segment(run in programs(400)) {
        check(&run, usize::MAX);
    }
}

/// Tests long calls that share long stretches, inside and outside loops, with and without other
/// calls in between.
#[test]
fn traces_of_long_calls_are_told_apart() {
    let mut run = Run {
        nodes: afterimage_ids::PrimaryMap::new(),
        shapes: Vec::new(),
        events: Vec::new(),
    };
    for number in 0..6 {
        run.nodes.push(Node {
            function: FuncId::from_u32(u32::from(number == 5)),
            blocks: (0..=number).map(BlockId::from_u32).collect(),
            left_out: 0,
        });
        run.shapes.push(afterimage_wpp::Shape {
            length: u64::from(number) + 1,
            ..Default::default()
        });
    }
    let node = |number| crate::oracle::Event::Node(afterimage_ids::NodeId::from_u32(number), 1);
    let enter = |function| crate::oracle::Event::Enter(FuncId::from_u32(function));
    let mut state = 1u32;
    let stretch: Vec<u32> = (0..300)
        .map(|_| {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
            (state >> 16) % 5
        })
        .collect();
    for call in 0..24usize {
        run.events.push(enter(0));
        for round in 0..2 + call % 3 {
            for (at, &number) in stretch.iter().enumerate() {
                run.events.push(node(number));
                // The same traces with and without calls, and traces that differ in one place.
                if (call + round) % 2 == 0 && at % (7 + call % 2) == 0 {
                    run.events
                        .extend([enter(1), node(5), crate::oracle::Event::Leave]);
                }
                if call % 4 == 3 && round == 1 && at == 150 {
                    run.events.push(node(number));
                }
            }
        }
        run.events.push(crate::oracle::Event::Leave);
    }
    for limit in [64, 500, 2000, usize::MAX] {
        check(&run, limit);
    }
}

/// Segments that record which of them have been loaded.
struct Watched {
    segments: InMemory,
    loaded: RefCell<Vec<usize>>,
}

impl Segments for Watched {
    type Error = std::convert::Infallible;

    fn summaries(&self) -> &[Summary] {
        self.segments.summaries()
    }

    fn load(&self, segment: usize) -> Result<Arc<Segment>, Self::Error> {
        self.loaded.borrow_mut().push(segment);
        self.segments.load(segment)
    }
}

/// Function 0 calls function 1 in every third segment, and function 2 in the others.
#[test]
fn only_segments_with_the_function_are_opened() {
    use afterimage_wpp::{Builder, Limits, Shape};
    let mut nodes = afterimage_ids::PrimaryMap::new();
    let mut builder = Builder::new(Limits::default());
    for function in 0..3 {
        nodes.push(Node {
            function: FuncId::from_u32(function),
            blocks: [BlockId::from_u32(1)].into(),
            left_out: 0,
        });
        builder.define(Shape {
            length: 1,
            ..Shape::default()
        });
    }
    let node = afterimage_ids::NodeId::from_u32;
    let mut segments = Vec::new();
    builder.enter(FuncId::from_u32(0));
    for k in 0..9 {
        let callee = if k % 3 == 1 { 1 } else { 2 };
        builder.node(node(0), 1);
        builder.enter(FuncId::from_u32(callee));
        builder.node(node(callee), 5);
        builder.leave();
        segments.extend(builder.finish());
    }
    let watched = Watched {
        segments: segments.into_iter().collect(),
        loaded: RefCell::default(),
    };
    let path = WholePath::new(watched, Arc::new(nodes)).unwrap();
    let one = FuncId::from_u32(1);
    let paths = twpp::function_paths(&path, one).unwrap();
    assert_eq!((paths.paths.len(), paths.paths[0].calls), (1, 3));
    assert_eq!(path.segments().loaded.take(), [1, 4, 7]);
    // The first call ends in the segment in which it begins.
    let call = twpp::call_path(&path, one, 2).unwrap().unwrap();
    assert_eq!((call.entered, call.trace.len()), (4 * 6 + 2, 5));
    assert!(path.segments().loaded.take().is_empty(), "it is still open");
}

#[test]
fn what_was_left_out_is_not_taken_for_a_trace() {
    use afterimage_wpp::{Builder, Limits, Shape};
    let function = FuncId::from_u32(3);
    let mut builder = Builder::new(Limits::default());
    let node = builder.define(Shape {
        length: 9,
        ..Shape::default()
    });
    builder.enter(function);
    builder.node(node, 1);
    builder.leave();
    let segments: InMemory = builder.finish().into_iter().collect();
    let nodes = std::iter::once(Node {
        function,
        blocks: [].into(),
        left_out: 9,
    });
    let path = WholePath::new(segments, Arc::new(nodes.collect())).unwrap();
    let refused = CollectError::LeftOut(function);
    assert_eq!(twpp::collect(&path, &|_| {}), Err(refused.clone()));
    let counted = PathCounts {
        function,
        calls: 1,
        unfinished: 0,
        paths: None,
        // The function of the left-out blocks is unknown, so they are not counted.
        blocks: 0,
    };
    assert_eq!(twpp::count_paths(&path), Ok(vec![counted]));
    assert_eq!(twpp::function_paths(&path, function), Err(refused.clone()));
    assert_eq!(
        twpp::path_outlines(&path, function, 1, None),
        Err(refused.clone())
    );
    assert_eq!(twpp::call_path(&path, function, 1), Err(refused));
}
