//! Checks dominators, post-dominators and control dependence against their definitions.

use afterimage_graph::{
    ControlDependence, DepthFirst, DominatorTree, PostDominatorTree, virtual_exits,
};
use afterimage_ids::EntityRef;
use afterimage_testkit::graphs::naive::{
    depends_on, dominates, post_dominates, reachable, with_exits,
};
use afterimage_testkit::graphs::{Shape, flow_graph, flow_graphs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn dominators_are_those_of_the_definition(graph in flow_graphs(Shape::ANY)) {
        let tree = DominatorTree::compute(&graph);
        for b in graph.vertices() {
            for a in graph.vertices() {
                prop_assert_eq!(tree.dominates(a, b), dominates(&graph, a, b), "{:?} {:?}", a, b);
            }
            // The immediate dominator is the strict dominator that all other strict dominators
            // dominate.
            let mut strict: Vec<_> = graph.vertices().filter(|&a| a != b && dominates(&graph, a, b)).collect();
            strict.sort_by_key(|&a| strict_count(&graph, a));
            strict.reverse();
            prop_assert_eq!(tree.strict_dominators(b).collect::<Vec<_>>(), strict);
            let reached = reachable(&graph, graph.root(), |_| false)[b.index()];
            prop_assert_eq!(tree.is_reachable(b), reached);
        }
    }

    #[test]
    fn virtual_exits_are_just_enough(graph in flow_graphs(Shape::ANY)) {
        let exits = virtual_exits(&graph);
        let exit = graph.exit().index();
        let completed = with_exits(&graph, &exits);
        for v in graph.vertices() {
            prop_assert!(reachable(&completed, v, |_| false)[exit]);
        }
        for left_out in 0..exits.len() {
            let mut fewer = exits.clone();
            let v = fewer.remove(left_out);
            prop_assert!(!reachable(&with_exits(&graph, &fewer), v, |_| false)[exit]);
        }
    }

    #[test]
    fn a_virtual_exit_is_where_the_search_enters_the_region(graph in flow_graphs(Shape::FUNCTION)) {
        let search = DepthFirst::compute(&graph);
        for v in virtual_exits(&graph).into_iter().filter(|&v| search.is_reached(v)) {
            let region = reachable(&graph, v, |_| false);
            for w in graph.vertices().filter(|w| region[w.index()]) {
                prop_assert!(search.number(v) <= search.number(w));
            }
        }
    }

    #[test]
    fn post_dominators_are_those_of_the_definition(graph in flow_graphs(Shape::ANY)) {
        let tree = PostDominatorTree::compute(&graph);
        let completed = with_exits(&graph, tree.virtual_exits());
        for b in graph.vertices() {
            for a in graph.vertices() {
                prop_assert_eq!(tree.post_dominates(a, b), post_dominates(&completed, a, b));
            }
            prop_assert_eq!(tree.immediate_post_dominator(b).is_none(), b == graph.exit());
        }
    }

    #[test]
    fn control_dependence_is_that_of_the_definition(graph in flow_graphs(Shape::ANY)) {
        let tree = PostDominatorTree::compute(&graph);
        let completed = with_exits(&graph, tree.virtual_exits());
        let dependence = ControlDependence::compute(&graph, &tree);
        for v in graph.vertices() {
            let expected: Vec<_> = graph.edges().filter(|&e| depends_on(&completed, v, e)).collect();
            prop_assert_eq!(dependence.controllers(v), &expected[..]);
        }
    }
}

fn strict_count(graph: &afterimage_graph::FlowGraph, b: afterimage_ids::BlockId) -> usize {
    graph.vertices().filter(|&a| dominates(graph, a, b)).count()
}

#[test]
fn an_infinite_loop_is_left_at_its_header() {
    // 0 → 1 ⇄ 2, and EXIT is 3.
    let graph = flow_graph(4, &[(0, 1), (1, 2), (2, 1)]);
    let exits: Vec<usize> = virtual_exits(&graph).iter().map(|v| v.index()).collect();
    assert_eq!(exits, [1]);
}

#[test]
fn long_chains_do_not_overflow_the_stack() {
    let n = 200_000;
    let mut edges: Vec<(usize, usize)> = (1..n).map(|v| (v - 1, v)).collect();
    edges.extend((2..n - 1).map(|v| (v, v / 2 + 1)));
    let graph = flow_graph(n, &edges);
    let dominators = DominatorTree::compute(&graph);
    assert_eq!(dominators.strict_dominators(graph.exit()).count(), n - 1);
    let post_dominators = PostDominatorTree::compute(&graph);
    assert!(post_dominators.post_dominates(graph.exit(), graph.root()));
}
