//! Compares the call graph that is counted in the grammar with the expanded run.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::oracle::{Run, chaos, runs};
use afterimage_ids::FuncId;
use afterimage_wpp::{CallEdge, CallTotal, InMemory, WholePath};
use proptest::prelude::*;

/// Returns the call graph by definition, so that every block counts for the activations that are
/// open.
fn by_definition(run: &Run) -> Vec<CallEdge> {
    let naive = run.naive();
    let mut edges = BTreeMap::<_, CallEdge>::new();
    let mut callers: Vec<Option<FuncId>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (number, activation) in naive.activations.iter().enumerate() {
        open.truncate(activation.depth);
        let caller = open
            .last()
            .map(|&caller| naive.activations[caller].function);
        open.push(number);
        callers.push(caller);
        edges
            .entry((caller, activation.function))
            .or_insert(CallEdge {
                caller,
                callee: activation.function,
                calls: 0,
                own: 0,
                inclusive: 0,
            })
            .calls += 1;
    }
    for visit in &naive.visits {
        for (depth, &at) in visit.stack.iter().enumerate() {
            let function = naive.activations[at].function;
            let edge = edges.get_mut(&(callers[at], function)).unwrap();
            let outer = visit.stack[..depth].iter();
            if outer
                .map(|&at| naive.activations[at].function)
                .all(|other| other != function)
            {
                edge.inclusive += visit.length;
            }
            if depth + 1 == visit.stack.len() {
                edge.own += visit.length;
            }
        }
    }
    edges.into_values().collect()
}

fn check(run: &Run, limit: usize) {
    let segments: InMemory = run.segments(limit).into_iter().collect();
    let path = WholePath::new(segments, Arc::new(run.nodes.clone())).unwrap();
    let graph = path.call_graph().unwrap();
    let expected = by_definition(run);
    assert_eq!(graph.edges(), expected);

    let mut totals = BTreeMap::<FuncId, CallTotal>::new();
    for edge in &expected {
        let total = totals.entry(edge.callee).or_default();
        total.calls += edge.calls;
        total.own += edge.own;
        total.inclusive += edge.inclusive;
        assert!(graph.callees(edge.caller).contains(edge));
        assert!(graph.callers(edge.callee).any(|other| other == edge));
    }
    assert_eq!(graph.totals().unwrap(), totals);
    for (&function, total) in &totals {
        assert_eq!(path.activations(function).unwrap().count(), total.calls);
    }
}

proptest! {
    #[test]
    fn calls_are_counted_as_by_definition(run in runs(400), limit in 2usize..200) {
        check(&run, limit);
    }

    #[test]
    fn calls_of_anything_by_anything(run in chaos(300), limit in 2usize..100) {
        check(&run, limit);
    }
}
