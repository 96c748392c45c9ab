//! Tests spanning forests and the ambiguities that they exclude.

use afterimage_graph::{Ambiguity, FlowGraph, SpanningForest, find_ambiguity, is_forest};
use afterimage_ids::{EdgeId, EntityRef};
use afterimage_testkit::graphs::linear::{determines_edges, determines_vertices};
use afterimage_testkit::graphs::naive::{has_directed_cycle, reachable};
use afterimage_testkit::graphs::shapes::has_diamond;
use afterimage_testkit::graphs::subsets::cheapest_subset;
use afterimage_testkit::graphs::{Shape, flow_graph, flow_graphs, weights};
use proptest::prelude::*;

const SMALL: Shape = Shape {
    max_vertices: 6,
    max_extra_edges: 10,
    ..Shape::ANY
};
const SMALL_CONTROL_FLOW: Shape = Shape {
    max_vertices: 6,
    max_extra_edges: 4,
    ..Shape::CONTROL_FLOW
};

fn with_weights(shape: Shape) -> impl Strategy<Value = (FlowGraph, Vec<f64>)> {
    flow_graphs(shape).prop_flat_map(|g| {
        let n = g.edge_count();
        (Just(g), weights(n))
    })
}

fn with_subset(shape: Shape) -> impl Strategy<Value = (FlowGraph, Vec<bool>)> {
    flow_graphs(shape).prop_flat_map(|g| {
        let n = g.edge_count();
        (Just(g), proptest::collection::vec(any::<bool>(), n))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_maximum_forest_is_heaviest_among_all((graph, weights) in with_weights(SMALL)) {
        let forest = SpanningForest::maximum(&graph, &[], |e| weights[e.index()]);
        let chords: Vec<EdgeId> = forest.chords().collect();
        prop_assert!(is_forest(&graph, &[], |e| forest.contains(e)));
        let weight = |edges: &[EdgeId]| edges.iter().map(|e| weights[e.index()]).sum::<f64>();
        let (least, _) = cheapest_subset(&weights, |chosen| {
            let chosen: Vec<EdgeId> = chosen.iter().map(|&i| EdgeId::new(i)).collect();
            determines_edges(&graph, &chosen, &[])
        })
        .expect("all edges determine all edges");
        prop_assert_eq!(weight(&chords), least);
    }

    /// This is from Ball and Larus 1992, section 3.1.
    #[test]
    fn edges_are_determined_exactly_if_the_others_are_a_forest((graph, measured) in with_subset(SMALL)) {
        let chosen: Vec<EdgeId> = graph.edges().filter(|e| measured[e.index()]).collect();
        let forest = is_forest(&graph, &[], |e| !measured[e.index()]);
        prop_assert_eq!(forest, determines_edges(&graph, &chosen, &[]));
    }

    /// The theorem says that |E| − (|V| − 1) counters suffice, where E includes EXIT→root.
    #[test]
    fn a_spanning_tree_leaves_as_many_chords_as_the_theorem_says(graph in flow_graphs(Shape::CONTROL_FLOW)) {
        let forest = SpanningForest::maximum(&graph, &[], |_| 1.0);
        prop_assert_eq!(forest.chords().count(), graph.edge_count() + 1 - (graph.vertex_count() - 1));
        prop_assert_eq!(forest.edges().count() + 1, graph.vertex_count() - 1);
    }

    /// This is Theorem 3.1 of Ball and Larus 1992.
    #[test]
    fn placements_that_determine_vertices_leave_no_ambiguity((graph, measured) in with_subset(SMALL_CONTROL_FLOW)) {
        let chosen: Vec<EdgeId> = graph.edges().filter(|e| measured[e.index()]).collect();
        let ambiguity = find_ambiguity(&graph, |e| !measured[e.index()]);
        // Parallel edges are ambiguous as edges, not as sequences of vertices.
        let ends = |e: EdgeId| (graph.from(e), graph.to(e));
        let free: Vec<_> = graph.edges().filter(|e| !measured[e.index()]).map(ends).collect();
        let parallel = (1..free.len()).any(|i| free[..i].contains(&free[i]));
        if !parallel && determines_vertices(&graph, &chosen, &[]) {
            prop_assert_eq!(ambiguity, None);
        }
    }

    #[test]
    fn ambiguities_are_those_of_the_definition((graph, measured) in with_subset(Shape::ANY)) {
        let is_free = |e: EdgeId| !measured[e.index()];
        let ambiguity = find_ambiguity(&graph, is_free);
        let cycle = has_directed_cycle(&graph, is_free);
        prop_assert_eq!(matches!(ambiguity, Some(Ambiguity::DirectedCycle(_))), cycle);
        prop_assert_eq!(ambiguity.is_some(), cycle || has_diamond(&graph, is_free));
        let free: Vec<(usize, usize)> = graph.edges().filter(|&e| is_free(e))
            .map(|e| (graph.from(e).index(), graph.to(e).index())).collect();
        let free = flow_graph(graph.vertex_count(), &free);
        match ambiguity {
            Some(Ambiguity::DirectedCycle(v)) => {
                prop_assert!(free.successors(v).any(|w| reachable(&free, w, |_| false)[v.index()]));
            }
            Some(Ambiguity::Diamond { from, to }) => {
                let arrives = |w| reachable(&free, w, |_| false)[to.index()];
                let paths = free.predecessors(to).filter(|&p| reachable(&free, from, |_| false)[p.index()]);
                prop_assert!(paths.count() > 1 || free.successors(from).filter(|&w| arrives(w)).count() > 1);
            }
            None => {}
        }
    }
}
