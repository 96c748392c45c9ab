//! Checks that weights conserve flow on every graph, and follow their documented rules.

use afterimage_graph::{FlowGraph, virtual_exits};
use afterimage_ids::{BlockId, EdgeId, EntityRef, FunctionCounts};
use afterimage_placement::{Likelihood, Weights};
use afterimage_testkit::graphs::{Shape, flow_graph, flow_graphs};
use proptest::prelude::*;

fn conserves_flow(graph: &FlowGraph, weights: &Weights) -> Result<(), TestCaseError> {
    let mut leaks = 0.0;
    for v in graph.vertices() {
        let out = graph.out_edges(v).iter().map(|&e| weights.edge(e));
        prop_assert!(weights.leak(v) >= 0.0 && out.clone().all(|w| w >= 0.0));
        leaks += weights.leak(v);
        let into = weights.vertex(graph, v);
        if v != graph.exit() {
            let out: f64 = out.sum();
            let error = (into - out - weights.leak(v)).abs();
            prop_assert!(error <= 1e-9 * (1.0 + into), "{v:?}: {into} in, {out} out");
        }
    }
    let exit = weights.vertex(graph, graph.exit());
    let error = (exit + leaks - weights.entry()).abs();
    prop_assert!(error <= 1e-6, "{exit} at EXIT and {leaks} leaks");
    Ok(())
}

fn with_likelihoods(shape: Shape) -> impl Strategy<Value = (FlowGraph, Vec<Likelihood>)> {
    let one = prop_oneof![
        4 => Just(Likelihood::Normal),
        1 => Just(Likelihood::Exceptional),
        1 => Just(Likelihood::Cold),
    ];
    flow_graphs(shape).prop_flat_map(move |graph| {
        let n = graph.edge_count();
        (Just(graph), proptest::collection::vec(one.clone(), n))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn heuristic_weights_conserve_flow((graph, likelihood) in with_likelihoods(Shape::ANY)) {
        let weights = Weights::heuristic(&graph, |e| likelihood[e.index()]);
        conserves_flow(&graph, &weights)?;
        let plain = Weights::heuristic(&graph, |_| Likelihood::Normal);
        conserves_flow(&graph, &plain)?;
    }

    #[test]
    fn every_edge_of_a_control_flow_graph_has_weight(graph in flow_graphs(Shape::CONTROL_FLOW)) {
        let weights = Weights::heuristic(&graph, |_| Likelihood::Normal);
        for e in graph.edges() {
            prop_assert!(weights.edge(e) > 0.0);
        }
    }

    #[test]
    fn flow_leaks_only_where_exit_is_out_of_reach(graph in flow_graphs(Shape::FUNCTION)) {
        let weights = Weights::heuristic(&graph, |_| Likelihood::Normal);
        let exits = virtual_exits(&graph);
        for v in graph.vertices() {
            prop_assert_eq!(weights.leak(v) > 0.0, exits.contains(&v));
        }
    }
}

fn edge(weights: &Weights, e: usize) -> f64 {
    weights.edge(EdgeId::new(e))
}

#[test]
fn nested_loops_multiply() {
    // 0 → 1 → 2 → 2 → 1 → EXIT: each loop iterates ten times.
    let graph = flow_graph(4, &[(0, 1), (1, 2), (2, 2), (2, 1), (1, 3)]);
    let weights = Weights::heuristic(&graph, |_| Likelihood::Normal);
    let all: Vec<f64> = (0..5).map(|e| edge(&weights, e)).collect();
    assert_eq!(all, [1.0, 10.0, 100.0, 10.0, 1.0]);
}

#[test]
fn leaving_two_loops_at_once_is_rarer_than_leaving_one() {
    // The inner loop 2 goes back to itself, on to 1, or straight out.
    let graph = flow_graph(4, &[(0, 1), (1, 2), (2, 2), (2, 1), (2, 3), (1, 3)]);
    let weights = Weights::heuristic(&graph, |_| Likelihood::Normal);
    assert!(edge(&weights, 3) > 10.0 * edge(&weights, 4));
    assert!(edge(&weights, 2) > edge(&weights, 3));
}

#[test]
fn an_infinite_loop_leaks_at_its_header() {
    let graph = flow_graph(4, &[(0, 1), (1, 2), (2, 1)]);
    let weights = Weights::heuristic(&graph, |_| Likelihood::Normal);
    assert_eq!(weights.leak(BlockId::new(1)), 1.0);
    assert_eq!(edge(&weights, 2), 10.0);
}

#[test]
fn what_leaks_in_an_inner_loop_does_not_come_back_to_the_outer_one() {
    // Loop 2 inside loop 1 is left by unlikely edges only.
    let graph = flow_graph(4, &[(0, 1), (1, 2), (2, 2), (2, 1), (1, 3)]);
    let weights = Weights::heuristic(&graph, |e| match e.index() {
        3 => Likelihood::Cold,
        _ => Likelihood::Normal,
    });
    conserves_flow(&graph, &weights).expect("flow is conserved");
    assert!(weights.leak(BlockId::new(2)) > 0.5);
}

#[test]
fn what_enters_an_irreducible_loop_in_the_middle_is_led_to_its_header() {
    // The loop 1 ⇄ 2 is entered at both vertices.
    let graph = flow_graph(4, &[(0, 1), (0, 2), (1, 2), (2, 1), (1, 3)]);
    let weights = Weights::heuristic(&graph, |_| Likelihood::Normal);
    let all: Vec<f64> = (0..5).map(|e| edge(&weights, e)).collect();
    assert_eq!(all, [0.5, 0.5, 10.0, 10.5, 1.0]);
}

#[test]
fn unlikely_edges_get_next_to_nothing() {
    let graph = flow_graph(3, &[(0, 1), (0, 2), (1, 2)]);
    let weights = Weights::heuristic(&graph, |e| match e.index() {
        0 => Likelihood::Cold,
        _ => Likelihood::Normal,
    });
    assert!(edge(&weights, 0) < 1e-6);
    assert!(edge(&weights, 1) > 0.999_999);
}

#[test]
fn hundreds_of_nested_loops_stay_finite() {
    let n = 2_000;
    let mut edges: Vec<(usize, usize)> = (1..n).map(|v| (v - 1, v)).collect();
    edges.extend((1..n / 2).map(|k| (n - 1 - k, k)));
    let graph = flow_graph(n, &edges);
    let weights = Weights::heuristic(&graph, |_| Likelihood::Normal);
    assert!(graph.edges().all(|e| weights.edge(e).is_finite()));
    conserves_flow(&graph, &weights).expect("flow is conserved");
}

#[test]
fn feedback_decides_and_the_heuristic_breaks_ties() {
    let graph = flow_graph(3, &[(0, 1), (0, 2), (1, 2), (0, 2)]);
    let counts = FunctionCounts {
        entries: 7,
        edges: vec![3, 2, 2, 2],
        open: vec![(BlockId::new(1), 1)],
    };
    let otherwise = Weights::heuristic(&graph, |e| match e.index() {
        1 => Likelihood::Cold,
        _ => Likelihood::Normal,
    });
    let weights = Weights::feedback(&counts, &otherwise);
    let (first, second, last) = (edge(&weights, 0), edge(&weights, 1), edge(&weights, 3));
    assert!(first > last && last > second && second >= 2.0);
}
