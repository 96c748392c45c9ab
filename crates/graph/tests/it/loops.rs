//! Checks loops against Havlak's definition.

use afterimage_graph::{Adjacency, Components, DepthFirst, LoopForest};
use afterimage_ids::EntityRef;
use afterimage_testkit::graphs::naive::{dominates, has_directed_cycle, havlak_loop, reachable};
use afterimage_testkit::graphs::{Shape, flow_graph, flow_graphs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn loops_are_those_of_the_definition(graph in flow_graphs(Shape::ANY)) {
        let search = DepthFirst::compute(&graph);
        let forest = LoopForest::compute(&graph, &search);
        let mut headers = 0;
        for h in graph.vertices() {
            let members = havlak_loop(&graph, &search, h);
            let found = forest.loops().iter().find(|(_, l)| l.header == h).map(|(id, _)| id);
            prop_assert_eq!(found.is_some(), !members.is_empty(), "header {:?}", h);
            let Some(id) = found else { continue };
            headers += 1;
            for v in graph.vertices() {
                prop_assert_eq!(forest.contains(id, v), members.contains(&v), "{:?} in loop of {:?}", v, h);
                prop_assert_eq!(forest.around(v).any(|l| l == id), members.contains(&v));
            }
            let entered = graph.edges().any(|e| {
                let from_outside = search.is_reached(graph.from(e)) && !members.contains(&graph.from(e));
                from_outside && members.contains(&graph.to(e)) && graph.to(e) != h
            });
            prop_assert_eq!(forest.loops()[id].irreducible, entered);
        }
        prop_assert_eq!(headers, forest.loops().len());
        for (id, l) in forest.loops().iter() {
            prop_assert_eq!(l.depth as usize, forest.around(l.header).count());
            prop_assert!(l.parent.is_none_or(|p| p < id));
        }
    }

    #[test]
    fn without_back_edges_there_is_no_cycle(graph in flow_graphs(Shape::ANY)) {
        let search = DepthFirst::compute(&graph);
        let forest = LoopForest::compute(&graph, &search);
        let is_back = |e| {
            let (from, to) = (graph.from(e), graph.to(e));
            forest.around(from).any(|l| forest.loops()[l].header == to)
        };
        prop_assert!(!has_directed_cycle(&graph, |e| !is_back(e) && search.is_reached(graph.from(e))));
    }

    #[test]
    fn headers_of_reducible_loops_dominate_them(graph in flow_graphs(Shape::ANY)) {
        let search = DepthFirst::compute(&graph);
        let forest = LoopForest::compute(&graph, &search);
        for v in graph.vertices() {
            for l in forest.around(v).map(|l| forest.loops()[l]) {
                prop_assert!(l.irreducible || dominates(&graph, l.header, v));
            }
        }
    }

    #[test]
    fn components_are_mutually_reachable(graph in flow_graphs(Shape::ANY)) {
        let ends = graph.edges().map(|e| (graph.from(e).index(), graph.to(e).index()));
        let components = Components::compute(&Adjacency::new(graph.vertex_count(), ends.clone()));
        for a in graph.vertices() {
            let from_a = reachable(&graph, a, |_| false);
            for b in graph.vertices() {
                let mutual = from_a[b.index()] && reachable(&graph, b, |_| false)[a.index()];
                prop_assert_eq!(components.of(a.index()) == components.of(b.index()), mutual);
            }
            prop_assert!(components.members(components.of(a.index())).contains(&a.as_u32()));
        }
        for (a, b) in ends {
            prop_assert!(components.of(b) <= components.of(a));
        }
    }
}

#[test]
fn deep_nests_take_near_linear_time() {
    // Loop k is k → k + 1 → … → back to k. So the number of nested loops equals the number of
    // vertices.
    let n = 100_000;
    let half = n / 2;
    let mut edges: Vec<(usize, usize)> = (1..n).map(|v| (v - 1, v)).collect();
    edges.extend((1..half).map(|k| (n - 1 - k, k)));
    let graph = flow_graph(n, &edges);
    let forest = LoopForest::compute(&graph, &DepthFirst::compute(&graph));
    assert_eq!(forest.loops().len(), half - 1);
}
