//! Tests the traced function of Ball and Larus 1992, Figure 6.

use std::collections::BTreeSet;

use afterimage_graph::FlowGraph;
use afterimage_ids::{BlockId, EdgeId, EntityRef};
use afterimage_paths::witness::{
    Placement, SimpleError, TraceGraph, Witness, regenerate_simple, solves_by_definition,
    solves_by_theorem, trace_record, witness_set,
};
use afterimage_testkit::graphs::flow_graph;

const P: usize = 0;
const A: usize = 1;
const B: usize = 2;
const C: usize = 3;
const EXIT: usize = 4;
const EDGES: [(usize, usize); 7] = [
    (P, A), // writes t
    (P, B),
    (B, A), // writes u
    (B, C), // writes v
    (A, C),
    (C, P),
    (C, EXIT),
];
const T: usize = 0;
const U: usize = 2;
const V: usize = 3;

fn traced(witnesses: &[usize]) -> (FlowGraph, Placement) {
    let graph = flow_graph(5, &EDGES);
    let placement = Placement::new(&graph, witnesses.iter().map(|&e| EdgeId::new(e)));
    (graph, placement)
}

fn path(graph: &FlowGraph, vertices: &[usize]) -> Vec<EdgeId> {
    let steps = vertices.windows(2);
    let edge = |s: &[usize]| {
        let mut edges = graph.edges();
        edges.find(|&e| (graph.from(e).index(), graph.to(e).index()) == (s[0], s[1]))
    };
    steps.map(|s| edge(s).expect("an edge")).collect()
}

fn blocks(vertices: &[usize]) -> Vec<BlockId> {
    vertices.iter().map(|&v| BlockId::new(v)).collect()
}

#[test]
fn the_witness_sets_are_those_of_the_figure() {
    let (graph, placement) = traced(&[T, U, V]);
    let view = TraceGraph::single(&graph);
    let set = |from, to| {
        let edge = path(&graph, &[from, to])[0];
        witness_set(&view, &placement, edge, |v| v == graph.exit())
    };
    let edges = |list: &[usize]| -> BTreeSet<Witness> {
        list.iter()
            .map(|&e| Witness::Edge(EdgeId::new(e)))
            .collect()
    };
    assert_eq!(set(P, A), edges(&[T]));
    assert_eq!(set(P, B), edges(&[U, V]));
    assert_eq!(set(C, P), edges(&[T, U, V]));
    assert_eq!(set(C, EXIT), BTreeSet::from([Witness::End(graph.exit())]));
    assert!(solves_by_definition(&graph, &placement));
    assert!(solves_by_theorem(&graph, &placement));
}

#[test]
fn the_trace_of_the_figure_regenerates_its_execution() {
    let (graph, placement) = traced(&[T, U, V]);
    let execution = [P, A, C, P, B, A, C, P, B, C, EXIT];
    let trace = trace_record(&placement, &path(&graph, &execution));
    assert_eq!(trace, [T, U, V].map(EdgeId::new));
    assert_eq!(
        regenerate_simple(&graph, &placement, &trace),
        Ok(blocks(&execution))
    );
}

#[test]
fn without_the_witness_of_the_first_arm_two_executions_give_one_trace() {
    let (graph, placement) = traced(&[U, V]);
    let executions = [vec![P, A, C, P, B, C, EXIT], vec![P, B, C, EXIT]];
    let traces = executions.map(|e| trace_record(&placement, &path(&graph, &e)));
    assert_eq!(traces[0], [EdgeId::new(V)]);
    assert_eq!(traces[0], traces[1]);
    assert!(!solves_by_definition(&graph, &placement));
    assert!(!solves_by_theorem(&graph, &placement));
    assert_eq!(
        regenerate_simple(&graph, &placement, &traces[0]),
        Err(SimpleError::NoWay(BlockId::new(P)))
    );
}
