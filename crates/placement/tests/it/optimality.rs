//! Checks that placements are optimal, and that they determine what they claim to determine.

use afterimage_graph::FlowGraph;
use afterimage_ids::{BlockId, EdgeId, EntityRef};
use afterimage_placement::{
    Weights, cost, determines_edges, determines_vertices, optimal_edges, optimal_vertices,
};
use afterimage_testkit::graphs::linear;
use afterimage_testkit::graphs::shapes::in_g_star;
use afterimage_testkit::graphs::subsets::cheapest_subset;
use afterimage_testkit::graphs::{Shape, edge_lists, flow_graph, flow_graphs};
use proptest::prelude::*;
use proptest::sample::Index;

const SMALL: Shape = Shape {
    max_vertices: 6,
    max_extra_edges: 3,
    ..Shape::CONTROL_FLOW
};

fn chosen_edges(chosen: &[usize]) -> Vec<EdgeId> {
    chosen.iter().map(|&i| EdgeId::new(i)).collect()
}

fn chosen_vertices(chosen: &[usize]) -> Vec<BlockId> {
    chosen.iter().map(|&i| BlockId::new(i)).collect()
}

/// Returns the weights of some activations, which are whole numbers that conserve flow.
fn executions(graph: &FlowGraph, choices: &[Index]) -> Weights {
    let mut edges = vec![0.0; graph.edge_count()];
    let mut entry = 0.0;
    let mut choices = choices.iter();
    while choices.len() > 0 {
        entry += 1.0;
        let mut v = graph.root();
        while v != graph.exit() {
            let out = graph.out_edges(v);
            let e = match choices.next() {
                Some(choice) => out[choice.index(out.len())],
                // Every vertex except EXIT has an edge to a higher vertex.
                None => *out
                    .iter()
                    .max_by_key(|e| graph.to(**e))
                    .expect("EXIT can be reached"),
            };
            edges[e.index()] += 1.0;
            v = graph.to(e);
        }
    }
    Weights::given(graph, entry, edges)
}

fn weighted(shape: Shape) -> impl Strategy<Value = (FlowGraph, Weights)> {
    (
        flow_graphs(shape),
        proptest::collection::vec(any::<Index>(), 80),
    )
        .prop_map(|(graph, choices)| {
            let weights = executions(&graph, &choices);
            (graph, weights)
        })
}

fn edge_weights(graph: &FlowGraph, weights: &Weights) -> Vec<f64> {
    graph.edges().map(|e| weights.edge(e)).collect()
}

/// Returns the optimum of the vertex frequency problem with counters on edges.
fn best_for_vertices(graph: &FlowGraph, weights: &Weights) -> f64 {
    let best = cheapest_subset(&edge_weights(graph, weights), |c| {
        linear::determines_vertices(graph, &chosen_edges(c), &[])
    });
    best.expect("all edges determine all vertices").0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn edge_placement_is_optimal((graph, weights) in weighted(SMALL)) {
        let placement = optimal_edges(&graph, &weights);
        prop_assert!(determines_edges(&graph, &placement));
        let best = cheapest_subset(&edge_weights(&graph, &weights), |c| {
            linear::determines_edges(&graph, &chosen_edges(c), &[])
        });
        prop_assert_eq!(Some(cost(&graph, &weights, &placement, &[])), best.map(|b| b.0));
    }

    #[test]
    fn vertex_placement_is_optimal((graph, weights) in weighted(SMALL)) {
        let placement = optimal_vertices(&graph, &weights);
        prop_assert!(linear::determines_vertices(&graph, &[], &placement));
        let each: Vec<f64> = graph.vertices().map(|v| weights.vertex(&graph, v)).collect();
        let best = cheapest_subset(&each, |c| {
            linear::determines_vertices(&graph, &[], &chosen_vertices(c))
        });
        prop_assert_eq!(Some(cost(&graph, &weights, &[], &placement)), best.map(|b| b.0));
    }

    #[test]
    fn vertices_are_determined_as_the_definition_says(
        graph in flow_graphs(Shape::ANY),
        measured in proptest::collection::vec(any::<bool>(), Shape::ANY.max_vertices),
    ) {
        let chosen: Vec<BlockId> = graph.vertices().filter(|v| measured[v.index()]).collect();
        let by_definition = linear::determines_vertices(&graph, &[], &chosen);
        prop_assert_eq!(determines_vertices(&graph, &chosen), by_definition);
    }

    /// This is from section 3.2. No placement on vertices, and no placement that determines edges,
    /// is better than the best placement on edges that determines vertices.
    #[test]
    fn the_three_problems_compare_as_in_figure_2((graph, weights) in weighted(SMALL)) {
        let best = best_for_vertices(&graph, &weights);
        prop_assert!(best <= cost(&graph, &weights, &[], &optimal_vertices(&graph, &weights)));
        prop_assert!(best <= cost(&graph, &weights, &optimal_edges(&graph, &weights), &[]));
    }

    /// This is from section 3.3.
    #[test]
    fn in_g_star_the_edge_problem_is_the_vertex_problem((graph, weights) in in_g_star_and_simple()) {
        let edges = cost(&graph, &weights, &optimal_edges(&graph, &weights), &[]);
        prop_assert_eq!(edges, best_for_vertices(&graph, &weights));
    }
}

/// Generates graphs of the class G* without parallel edges, which are different edges between the
/// same vertices.
fn in_g_star_and_simple() -> impl Strategy<Value = (FlowGraph, Weights)> {
    let simple = edge_lists(SMALL).prop_map(|(n, mut edges)| {
        edges.sort_unstable();
        edges.dedup();
        flow_graph(n, &edges)
    });
    let graphs = simple.prop_filter("only G*", in_g_star);
    (graphs, proptest::collection::vec(any::<Index>(), 80)).prop_map(|(graph, choices)| {
        let weights = executions(&graph, &choices);
        (graph, weights)
    })
}
