//! Compares the reader with the expanded run, at every position, in both directions, with every
//! stack and every rank.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::oracle::{Naive, Run, chaos, programs, runs};
use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap, RuleId};
use afterimage_wpp::{
    Activation, Builder, CallEvent, Grammar, InMemory, Kind, Limits, Node, NodeFilter, Occurrence,
    Root, Rule, Segment, Segments, Shape, Summary, Symbol, TargetError, Visit, WholePath,
};
use proptest::prelude::*;

fn whole_path(run: &Run, limit: usize) -> WholePath<InMemory> {
    let segments = run.segments(limit).into_iter().collect();
    let path = WholePath::new(segments, Arc::new(run.nodes.clone())).unwrap();
    path.check().unwrap();
    path
}

fn visit(naive: &Naive, at: usize) -> Visit {
    let crate::oracle::Visit {
        node,
        start,
        length,
        ..
    } = naive.visits[at];
    Visit {
        node,
        start,
        length,
    }
}

/// Returns the activations open at an execution.
fn stack(naive: &Naive, at: usize) -> Vec<Activation> {
    let open = naive.visits[at].stack.iter();
    open.map(|&activation| Activation {
        function: naive.activations[activation].function,
        entered: naive.activations[activation].entered,
    })
    .collect()
}

fn steps_and_stacks(run: &Run, limit: usize) {
    let naive = run.naive();
    let path = whole_path(run, limit);
    assert_eq!(path.length(), naive.length);
    let count = naive.visits.len();
    let mut cursor = path.cursor();
    assert_eq!(cursor.visit(), None);
    assert_eq!(cursor.previous(), Ok(None));
    for at in 0..count {
        assert_eq!(cursor.next(), Ok(Some(visit(&naive, at))));
        let stack = stack(&naive, at);
        assert_eq!(cursor.depth(), stack.len());
        assert_eq!(cursor.function(), stack.last().map(|last| last.function));
        assert_eq!(cursor.innermost(), Ok(stack.last().copied()));
        assert_eq!(cursor.stack(), Ok(stack));
    }
    assert_eq!(cursor.next(), Ok(None));
    assert_eq!(cursor.next(), Ok(None));
    assert_eq!(cursor.visit(), None);
    for at in (0..count).rev() {
        assert_eq!(cursor.previous(), Ok(Some(visit(&naive, at))));
        assert_eq!(cursor.depth(), naive.visits[at].stack.len());
    }
    assert_eq!(cursor.previous(), Ok(None));
    if count > 0 {
        assert_eq!(cursor.next(), Ok(Some(visit(&naive, 0))));
    }
}

fn seeks(run: &Run, limit: usize) {
    let naive = run.naive();
    let path = whole_path(run, limit);
    let mut near = path.cursor();
    for (at, expected) in naive.visits.iter().enumerate() {
        for time in expected.start..expected.start + expected.length {
            let mut fresh = path.cursor();
            assert_eq!(fresh.seek(time), Ok(Some(visit(&naive, at))));
            assert_eq!(fresh.depth(), expected.stack.len());
            assert_eq!(near.seek(time), Ok(Some(visit(&naive, at))));
            // The positions are scrambled, so that every kind of move occurs.
            let other = time.wrapping_mul(0x9e37_79b9_7f4a_7c15) % naive.length + 1;
            let there = naive.visits.partition_point(|visit| visit.start <= other) - 1;
            assert_eq!(near.seek(other), Ok(Some(visit(&naive, there))));
            let mut beside = near.clone();
            let next = (there + 1 < naive.visits.len()).then(|| visit(&naive, there + 1));
            assert_eq!(beside.next(), Ok(next));
            let previous = there.checked_sub(1).map(|there| visit(&naive, there));
            assert_eq!(near.clone().previous(), Ok(previous));
        }
    }
    assert_eq!(near.seek(0), Ok(None));
    assert_eq!(near.previous(), Ok(None));
    assert_eq!(near.seek(naive.length + 1), Ok(None));
    assert_eq!(near.next(), Ok(None));
}

fn skips(run: &Run, limit: usize) {
    let naive = run.naive();
    let path = whole_path(run, limit);
    for (at, expected) in naive.visits.iter().enumerate() {
        let mut cursor = path.cursor();
        cursor.seek(expected.start).unwrap();
        let activation = expected.stack.last().map(|&last| naive.activations[last]);
        let ended = activation.and_then(|activation| activation.ended);
        assert_eq!(cursor.activation_end(), Ok(ended));
        let next = ended.and_then(|ended| {
            let next = naive.visits.partition_point(|visit| visit.start <= ended);
            (next < naive.visits.len()).then(|| visit(&naive, next))
        });
        assert_eq!(cursor.skip_activation(), Ok(next), "{at}");
    }
}

fn within_activations(run: &Run, limit: usize) {
    let naive = run.naive();
    let path = whole_path(run, limit);
    let mut cursor = path.cursor();
    for (at, expected) in naive.visits.iter().enumerate() {
        let mut before = naive.visits[..at].iter();
        let before = before.rposition(|other| other.stack == expected.stack);
        cursor.seek(expected.start).unwrap();
        let found = cursor.previous_in_activation();
        assert_eq!(
            found,
            Ok(before.map(|before| visit(&naive, before))),
            "{at}"
        );
        let stays = visit(&naive, before.unwrap_or(at));
        assert_eq!(cursor.visit(), Some(stays));
        assert_eq!(cursor.depth(), expected.stack.len());
        let mut after = naive.visits[at + 1..].iter();
        let after = after.position(|other| other.stack == expected.stack);
        cursor.seek(expected.start).unwrap();
        let found = cursor.next_in_activation();
        let next = after.map(|after| visit(&naive, at + 1 + after));
        assert_eq!(found, Ok(next), "{at}");
        let stays = next.unwrap_or(visit(&naive, at));
        assert_eq!(cursor.visit(), Some(stays));
    }
}

/// Checks searches for every set of nodes of a small run, and for single nodes of a large run.
fn among(run: &Run, limit: usize) {
    let naive = run.naive();
    let path = whole_path(run, limit);
    let nodes = Vec::from_iter(run.nodes.keys());
    let sets: Vec<Vec<NodeId>> = if nodes.len() <= 4 {
        let has = |set: usize, node: &NodeId| set >> node.as_u32() & 1 == 1;
        let sets = 0..1 << nodes.len();
        sets.map(|set| {
            nodes
                .iter()
                .copied()
                .filter(|node| has(set, node))
                .collect()
        })
        .collect()
    } else {
        nodes.iter().map(|&node| vec![node]).collect()
    };
    for set in sets {
        let filter = NodeFilter::new(set.iter().copied());
        let mut cursor = path.cursor();
        for (at, expected) in naive.visits.iter().enumerate() {
            let is = |other: &&crate::oracle::Visit| {
                other.stack == expected.stack && set.contains(&other.node)
            };
            let before = naive.visits[..at].iter().rfind(is);
            let after = naive.visits[at + 1..].iter().find(is);
            cursor.seek(expected.start).unwrap();
            let found = cursor.previous_among(&filter).unwrap();
            let start = |found: &crate::oracle::Visit| found.start;
            assert_eq!(found.map(|found| found.start), before.map(start), "{at}");
            let stays = before.unwrap_or(expected);
            assert_eq!(cursor.visit().unwrap().start, stays.start);
            assert_eq!(cursor.depth(), expected.stack.len());
            cursor.seek(expected.start).unwrap();
            let found = cursor.next_among(&filter).unwrap();
            assert_eq!(found.map(|found| found.start), after.map(start), "{at}");
            let stays = after.unwrap_or(expected);
            assert_eq!(cursor.visit().unwrap().start, stays.start);
            assert_eq!(cursor.depth(), expected.stack.len());
        }
    }
}

fn ranks(run: &Run, limit: usize) {
    let naive = run.naive();
    let path = whole_path(run, limit);
    for (node, known) in run.nodes.iter() {
        for position in [0, known.length() - 1] {
            let times = naive.visits.iter().filter(|visit| visit.node == node);
            let times: Vec<_> = times.map(|visit| visit.start + position).collect();
            let occurrences = path.executions([(node, position)]).unwrap();
            compare(&naive, &occurrences, &times);
        }
    }
    // Query all nodes at once, each at a different position.
    let position = |node: NodeId| u64::from(node.as_u32()) % run.nodes[node].length();
    let times: Vec<_> = naive
        .visits
        .iter()
        .filter(|visit| visit.node.as_u32() != 1)
        .map(|visit| visit.start + position(visit.node))
        .collect();
    let others = run.nodes.keys().filter(|node| node.as_u32() != 1);
    let occurrences = path
        .executions(others.map(|node| (node, position(node))))
        .unwrap();
    compare(&naive, &occurrences, &times);
    // Use any number of positions. Some positions occur twice, and some are after the node.
    let positions = |node: NodeId| -> Vec<u64> {
        let length = run.nodes[node].length();
        match node.as_u32() % 4 {
            0 => vec![],
            1 => vec![0, 0, length],
            2 => vec![length / 2, length, length],
            _ => (0..=length).collect(),
        }
    };
    let visits = naive.visits.iter();
    let times: Vec<_> = visits
        .flat_map(|visit| positions(visit.node).into_iter().map(|at| visit.start + at))
        .collect();
    let all = run.nodes.keys().map(|node| (node, positions(node)));
    compare(&naive, &path.executions_of_each(all).unwrap(), &times);
    for function in (0..4).map(FuncId::from_u32) {
        let all = naive.activations.iter();
        let times: Vec<_> = all
            .filter(|activation| activation.function == function)
            .map(|activation| activation.entered)
            .collect();
        compare(&naive, &path.activations(function).unwrap(), &times);
    }
}

fn compare(naive: &Naive, occurrences: &afterimage_wpp::Occurrences<'_, InMemory>, times: &[u64]) {
    let occurrence = |at: usize| {
        times.get(at).map(|&time| Occurrence {
            number: at as u64 + 1,
            time,
        })
    };
    assert_eq!(occurrences.count(), times.len() as u64);
    assert_eq!(occurrences.select(0), Ok(None));
    for at in 0..=times.len() {
        assert_eq!(occurrences.select(at as u64 + 1), Ok(occurrence(at)));
    }
    for time in 0..naive.length + 3 {
        let rank = times.partition_point(|&other| other <= time);
        assert_eq!(occurrences.rank(time), Ok(rank as u64), "{time}");
        assert_eq!(occurrences.next_after(time), Ok(occurrence(rank)));
        let before = times.partition_point(|&other| other < time).checked_sub(1);
        let before = before.and_then(occurrence);
        assert_eq!(occurrences.previous_before(time), Ok(before), "{time}");
    }
}

/// Returns beginnings and ends by definition, each with the number of its activation.
fn events(run: &Run) -> Vec<(usize, CallEvent)> {
    let mut events = Vec::new();
    let (mut time, mut begun) = (0, 0);
    let mut stack = Vec::new();
    for &event in &run.events {
        match event {
            crate::oracle::Event::Node(node, times) => time += run.nodes[node].length() * times,
            crate::oracle::Event::Enter(function) => {
                let depth = stack.len();
                events.push((
                    begun,
                    CallEvent::Enter {
                        function,
                        depth,
                        time: time + 1,
                    },
                ));
                stack.push((begun, function));
                begun += 1;
            }
            crate::oracle::Event::Leave => {
                let (begun, function) = stack.pop().unwrap();
                let depth = stack.len();
                events.push((
                    begun,
                    CallEvent::Leave {
                        function,
                        depth,
                        time,
                    },
                ));
            }
        }
    }
    events
}

fn depth(event: &CallEvent) -> usize {
    match event {
        CallEvent::Enter { depth, .. } | CallEvent::Leave { depth, .. } => *depth,
    }
}

fn call_trees(run: &Run, limit: usize) {
    let naive = run.naive();
    let path = whole_path(run, limit);
    let events = events(run);
    let ended_before = |activation: usize, time| {
        let activation = &naive.activations[activation];
        activation.entered < time && activation.ended.is_some_and(|ended| ended < time)
    };
    for time in (0..naive.length + 3).step_by(1 + naive.length as usize / 50) {
        for deepest in [0, 1, 2, 5, usize::MAX] {
            let mut calls = path.calls(time, deepest).unwrap();
            let expected = events.iter().filter(|(activation, event)| {
                depth(event) < deepest
                    && match *event {
                        CallEvent::Enter { time: entered, .. } => entered >= time,
                        CallEvent::Leave { .. } => !ended_before(*activation, time),
                    }
            });
            for (_, event) in expected {
                assert_eq!(calls.next(), Ok(Some(*event)), "{time} {deepest}");
            }
            assert_eq!(calls.next(), Ok(None));
            assert_eq!(calls.next(), Ok(None));
        }
    }
}

fn skipped_calls(run: &Run, limit: usize) {
    let path = whole_path(run, limit);
    let events = events(run);
    let mut calls = path.calls(0, usize::MAX).unwrap();
    let mut at = 0;
    while at < events.len() {
        assert_eq!(calls.next(), Ok(Some(events[at].1)));
        let (activation, event) = events[at];
        at += 1;
        if matches!(event, CallEvent::Enter { .. }) && activation % 3 == 1 {
            calls.skip().unwrap();
            while at < events.len() && events[at].0 != activation {
                at += 1;
            }
        }
    }
    assert_eq!(calls.next(), Ok(None));
}

/// Segments for which every second attempt to load one fails.
struct Flaky {
    segments: InMemory,
    fails: AtomicBool,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("out of luck")]
struct Unlucky;

impl Segments for Flaky {
    type Error = Unlucky;

    fn summaries(&self) -> &[Summary] {
        self.segments.summaries()
    }

    fn load(&self, segment: usize) -> Result<Arc<Segment>, Unlucky> {
        if self.fails.fetch_not(Ordering::Relaxed) {
            return Err(Unlucky);
        }
        self.segments.load(segment).map_err(|never| match never {})
    }
}

/// Checks that a retry after a failure gives the same result as without failures.
fn failures(run: &Run, limit: usize) {
    let naive = run.naive();
    let flaky = Flaky {
        segments: run.segments(limit).into_iter().collect(),
        fails: AtomicBool::new(true),
    };
    let path = WholePath::new(flaky, Arc::new(run.nodes.clone())).unwrap();
    let mut cursor = path.cursor();
    for at in 0..naive.visits.len() {
        let before = cursor.visit();
        let next = cursor.next().or_else(|_| {
            assert_eq!(cursor.visit(), before);
            cursor.next()
        });
        assert_eq!(next, Ok(Some(visit(&naive, at))));
    }
    for at in (0..naive.visits.len().saturating_sub(1)).rev() {
        let before = cursor.visit();
        let previous = cursor.previous().or_else(|_| {
            assert_eq!(cursor.visit(), before);
            cursor.previous()
        });
        assert_eq!(previous, Ok(Some(visit(&naive, at))));
        let stack = stack(&naive, at);
        let found = (0..).find_map(|_| cursor.stack().ok());
        assert_eq!(found, Some(stack));
    }
    let mut calls = (0..).find_map(|_| path.calls(0, usize::MAX).ok()).unwrap();
    for (_, event) in events(run) {
        let next = (0..).find_map(|_| calls.next().ok());
        assert_eq!(next, Some(Some(event)));
    }
}

#[test]
fn what_is_not_there_cannot_be_looked_for() {
    let function = FuncId::from_u32(0);
    let segment = |before| Segment {
        before,
        root: vec![Root::Run(Symbol::rule(RuleId::from_u32(1)))],
        grammar: Grammar {
            rules: [(Kind::Call(function), 0, 0), (Kind::Repeat(u64::MAX), 0, 1)]
                .map(|(kind, start, len)| Rule { kind, start, len })
                .into_iter()
                .collect(),
            symbols: vec![Symbol::rule(RuleId::from_u32(0))],
        },
        call_counts: vec![(function, u64::MAX)],
        ..Segment::default()
    };
    let node = Node {
        function,
        blocks: [BlockId::from_u32(0), BlockId::from_u32(1)].into(),
        left_out: 0,
    };
    let segments: InMemory = [segment(0), segment(0)].into_iter().collect();
    let path = WholePath::new(segments, Arc::new([node].into_iter().collect())).unwrap();
    path.check().unwrap();
    let [node, unknown] = [0, 1].map(NodeId::from_u32);
    let executions = |nodes: &[(NodeId, u64)]| path.executions(nodes.iter().copied()).err();
    assert_eq!(executions(&[(node, 1)]), None);
    assert_eq!(executions(&[(node, 2)]), Some(TargetError::Position(node)));
    assert_eq!(
        executions(&[(unknown, 0)]),
        Some(TargetError::Unknown(unknown))
    );
    let twice = executions(&[(node, 0), (node, 1)]);
    assert_eq!(twice, Some(TargetError::Twice(node)));
    let each = |positions: &[u64]| path.executions_of_each([(node, positions)]).err();
    assert_eq!(each(&[0, 2]), None);
    assert_eq!(each(&[3]), Some(TargetError::Position(node)));
    assert_eq!(each(&[1, 0]), Some(TargetError::Position(node)));
    let activations = path.activations(function).err();
    assert_eq!(activations, Some(TargetError::Uncountable));
}

/// Counts how often segments are loaded.
struct Counting {
    segments: InMemory,
    loads: AtomicUsize,
}

impl Segments for Counting {
    type Error = std::convert::Infallible;

    fn summaries(&self) -> &[Summary] {
        self.segments.summaries()
    }

    fn load(&self, segment: usize) -> Result<Arc<Segment>, Self::Error> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        self.segments.load(segment)
    }
}

#[test]
fn segments_stay_open_while_there_is_room() {
    let shape = Shape {
        length: 1,
        ..Shape::default()
    };
    let function = FuncId::from_u32(0);
    let mut builder = Builder::new(Limits { symbols: 100 });
    let mut nodes = PrimaryMap::new();
    for _ in 0..1_000 {
        builder.define(shape.clone());
        nodes.push(Node {
            function,
            blocks: [BlockId::from_u32(0)].into(),
            left_out: 0,
        });
    }
    builder.enter(function);
    let mut segments = Vec::new();
    for node in nodes.keys() {
        builder.node(node, 1);
        segments.extend(builder.take_segment());
    }
    segments.extend(builder.finish());
    let count = segments.len();
    assert!(count > 5);
    let counting = Counting {
        segments: segments.into_iter().collect(),
        loads: AtomicUsize::new(0),
    };
    let loads = |path: &WholePath<&Counting>| {
        let before = counting.loads.load(Ordering::Relaxed);
        let mut cursor = path.cursor();
        for _ in 0..3 {
            for time in 1..=path.length() {
                cursor.seek(time).unwrap();
                assert_eq!(cursor.stack().unwrap().len(), 1);
            }
        }
        counting.loads.load(Ordering::Relaxed) - before
    };
    let path = WholePath::new(&counting, Arc::new(nodes)).unwrap();
    assert_eq!(loads(&path), count);
    let path = path.with_room(0);
    assert_eq!(loads(&path), 3 * count);
}

/// Checks that a path that is read ahead is the same, that each segment is loaded at most once, and
/// that a failure can be repeated.
fn reads_ahead(run: &Run, limit: usize, from: u64) {
    let naive = run.naive();
    let segments = run.segments(limit);
    let count = segments.len();
    let counting = Counting {
        segments: segments.into_iter().collect(),
        loads: AtomicUsize::new(0),
    };
    let nodes = Arc::new(run.nodes.clone());
    let path = WholePath::new(&counting, Arc::clone(&nodes)).unwrap();
    let mut cursor = path.cursor();
    path.read_ahead(1, path.length(), || {
        for at in 0..naive.visits.len() {
            assert_eq!(cursor.next(), Ok(Some(visit(&naive, at))));
        }
    });
    assert!(counting.loads.load(Ordering::Relaxed) <= count);
    // If the cursor starts in the middle, each segment is loaded at most once more.
    let path = WholePath::new(&counting, Arc::clone(&nodes)).unwrap();
    let time = from % path.length().max(1) + 1;
    let expected = path.cursor().seek(time);
    let mut cursor = path.cursor();
    path.read_ahead(1, path.length(), || {
        assert_eq!(cursor.seek(time), expected);
        while cursor.next().unwrap().is_some() {}
    });
    assert!(counting.loads.load(Ordering::Relaxed) <= 2 * count);
    let flaky = Flaky {
        segments: run.segments(limit).into_iter().collect(),
        fails: AtomicBool::new(true),
    };
    let path = WholePath::new(flaky, nodes).unwrap();
    let mut cursor = path.cursor();
    path.read_ahead(1, path.length(), || {
        for at in 0..naive.visits.len() {
            let next = (0..).find_map(|_| cursor.next().ok());
            assert_eq!(next, Some(Some(visit(&naive, at))));
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_path_that_is_read_ahead_is_the_same(
        run in runs(300),
        limit in 1..60usize,
        from in any::<u64>(),
    ) {
        reads_ahead(&run, limit, from);
    }

    #[test]
    fn what_fails_can_be_repeated(run in runs(200), limit in 1..60usize) {
        failures(&run, limit);
    }

    #[test]
    fn steps_and_stacks_are_those_of_the_run(run in runs(400), limit in 1..60usize) {
        steps_and_stacks(&run, limit);
        steps_and_stacks(&run, usize::MAX);
    }

    #[test]
    fn seek_is_scan(run in runs(300), limit in 1..60usize) {
        seeks(&run, limit);
        seeks(&run, usize::MAX);
    }

    #[test]
    fn activations_are_skipped(run in runs(300), limit in 1..60usize) {
        skips(&run, limit);
        within_activations(&run, limit);
        skips(&run, usize::MAX);
        within_activations(&run, usize::MAX);
    }

    #[test]
    fn filtered_moves_find_the_nearest_node(run in runs(120), limit in 1..60usize) {
        among(&run, limit);
        among(&run, usize::MAX);
    }

    #[test]
    fn rank_and_select_are_inverse_and_right(run in runs(120), limit in 1..60usize) {
        ranks(&run, limit);
        ranks(&run, usize::MAX);
    }

    #[test]
    fn call_trees_are_those_of_the_run(run in programs(300), limit in 1..60usize) {
        call_trees(&run, limit);
        call_trees(&run, usize::MAX);
    }

    #[test]
    fn call_trees_with_empty_activations(run in chaos(300), limit in 1..60usize) {
        call_trees(&run, limit);
        call_trees(&run, usize::MAX);
    }

    #[test]
    fn skipped_activations_end(run in runs(300), limit in 1..60usize) {
        skipped_calls(&run, limit);
        skipped_calls(&run, usize::MAX);
    }
}
