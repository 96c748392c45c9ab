//! Checks placements and tokens on random graphs against their definitions.

use std::collections::BTreeSet;

use afterimage_graph::FlowGraph;
use afterimage_ids::{BlockId, EdgeId, EntityRef};
use afterimage_paths::witness::{
    Placement, Role, Token, TraceGraph, Witness, assign_tokens, blockers, chords, completed, cost,
    delete_hot, place, regenerate_simple, solves_by_definition, solves_by_theorem, trace_record,
    witness_set,
};
use afterimage_testkit::graphs::{Shape, flow_graphs, weights};
use proptest::prelude::*;

/// An upper bound for the number of edges of a graph in these tests.
const EDGES: usize = 64;

/// Checks the requirements for a program by definition. The witness sets of a branch's edges must
/// be disjoint wherever the run may end, and contain nothing foreign. No directed cycle may be
/// silent.
fn solves_in_program(view: &TraceGraph<'_>, placement: &Placement) -> bool {
    let graph = view.graph();
    let branches_fine = graph.vertices().filter(|&v| view.is_branch(v)).all(|p| {
        let mut seen = BTreeSet::new();
        let mut ways = graph.out_edges(p).iter();
        ways.all(|&e| {
            let set = witness_set(view, placement, e, |_| true);
            set.into_iter()
                .all(|w| !matches!(w, Witness::Foreign(_)) && seen.insert(w))
        })
    });
    let through_calls = TraceGraph::single(graph);
    let no_silent_cycle = graph.edges().all(|e| {
        placement.writes(e)
            || !witness_set(&through_calls, placement, e, |_| true)
                .contains(&Witness::End(graph.from(e)))
    });
    branches_fine && no_silent_cycle
}

/// Checks the same requirements for tokens. The sets of tokens that may be first after a branch's
/// edges must be disjoint. No token that may be first after the branch may be a prefix of another.
fn tokens_tell_apart(view: &TraceGraph<'_>, placement: &Placement, weight: &[f64]) -> bool {
    let graph = view.graph();
    let tokens = assign_tokens(view, placement, weight);
    let mut branches = graph.vertices().filter(|&v| view.is_branch(v));
    let begins =
        |a: &Token, b: &Token| a.width < b.width && b.value >> (b.width - a.width) == a.value;
    graph
        .edges()
        .all(|e| tokens.of(e).is_some() == placement.writes(e))
        && tokens
            .iter()
            .all(|(_, t, _)| t.width >= 1 && t.value < 1 << t.width)
        && branches.all(|p| {
            let mut seen = BTreeSet::new();
            let told_apart = graph.out_edges(p).iter().all(|&e| {
                let set = witness_set(view, placement, e, |_| true);
                let found = set.iter().filter_map(|w| match w {
                    Witness::Edge(e) => tokens.of(*e),
                    _ => None,
                });
                let found: BTreeSet<Token> = found.collect();
                found.into_iter().all(|t| seen.insert(t))
            });
            told_apart && !seen.iter().any(|a| seen.iter().any(|b| begins(a, b)))
        })
}

/// Returns a graph with random calls, and EXIT as in a program.
fn program_view<'g>(graph: &'g FlowGraph, roles: &[u8]) -> TraceGraph<'g> {
    TraceGraph::new(
        graph,
        |v| match roles[v.index()] {
            _ if v == graph.exit() => Role::Foreign,
            0 | 1 => Role::Foreign,
            2 => Role::SilentCall,
            _ => Role::Plain,
        },
        |_| false,
    )
}

fn a_path(graph: &FlowGraph, choices: &[prop::sample::Index]) -> Option<Vec<EdgeId>> {
    let (mut v, mut path) = (graph.root(), Vec::new());
    for choice in choices {
        if v == graph.exit() {
            return Some(path);
        }
        let out = graph.out_edges(v);
        path.push(out[choice.index(out.len())]);
        v = graph.to(*path.last()?);
    }
    None
}

fn vertices(graph: &FlowGraph, path: &[EdgeId]) -> Vec<BlockId> {
    let ends = path.iter().map(|&e| graph.to(e));
    std::iter::once(graph.root()).chain(ends).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn definition_and_theorem_agree(
        graph in flow_graphs(Shape::CONTROL_FLOW), writes in prop::collection::vec(any::<bool>(), EDGES),
    ) {
        let placement = Placement::new(&graph, graph.edges().filter(|e| writes[e.index()]));
        prop_assert_eq!(
            solves_by_definition(&graph, &placement), solves_by_theorem(&graph, &placement)
        );
    }

    #[test]
    fn definition_and_theorem_agree_on_graphs_with_virtual_exits(
        graph in flow_graphs(Shape::ANY), density in 1u8..=8, writes in prop::collection::vec(0u8..8, EDGES),
    ) {
        let placement = Placement::new(&graph, graph.edges().filter(|e| writes[e.index()] < density));
        prop_assert_eq!(
            solves_by_definition(&graph, &placement), solves_by_theorem(&graph, &placement)
        );
    }

    #[test]
    fn every_stage_of_a_placement_solves_the_problem(
        graph in flow_graphs(Shape::ANY), weight in weights(EDGES),
    ) {
        let view = TraceGraph::single(&graph);
        let mut placement = Placement::new(&graph, []);
        chords(&view, &mut placement, &weight);
        let before = cost(&placement, &weight);
        // A spanning tree leaves no undirected cycle, apart from virtual exits.
        let full = completed(&graph).edge_count() == graph.edge_count();
        prop_assert!(!full || solves_by_theorem(&graph, &placement));
        delete_hot(&view, &mut placement, &weight);
        prop_assert!(!full || solves_by_definition(&graph, &placement));
        prop_assert!(cost(&placement, &weight) <= before);
        prop_assert!(tokens_tell_apart(&view, &placement, &weight));
        // After the deletions, no remaining witness can be deleted.
        for e in placement.edges().filter(|_| full) {
            let mut fewer = placement.clone();
            fewer.set(e, false);
            prop_assert!(!solves_by_definition(&graph, &fewer), "{e} is not needed");
        }
    }

    #[test]
    fn placements_of_program_functions_solve_the_problem(
        graph in flow_graphs(Shape::ANY), weight in weights(EDGES),
        roles in prop::collection::vec(0u8..12, 16),
    ) {
        let view = program_view(&graph, &roles);
        let mut placement = Placement::new(&graph, []);
        blockers(&view, &mut placement);
        chords(&view, &mut placement, &weight);
        prop_assert!(solves_in_program(&view, &placement));
        delete_hot(&view, &mut placement, &weight);
        prop_assert!(solves_in_program(&view, &placement));
        prop_assert_eq!(&placement, &place(&view, &weight));
        prop_assert!(tokens_tell_apart(&view, &placement, &weight));
        for e in placement.edges() {
            let mut fewer = placement.clone();
            fewer.set(e, false);
            prop_assert!(!solves_in_program(&view, &fewer), "{e} is not needed");
        }
    }

    #[test]
    fn the_papers_algorithm_regenerates_every_execution(
        graph in flow_graphs(Shape::CONTROL_FLOW), weight in weights(EDGES),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 60),
    ) {
        let Some(path) = a_path(&graph, &choices) else { return Ok(()) };
        let placement = place(&TraceGraph::single(&graph), &weight);
        let trace = trace_record(&placement, &path);
        prop_assert_eq!(
            regenerate_simple(&graph, &placement, &trace), Ok(vertices(&graph, &path))
        );
    }
}
