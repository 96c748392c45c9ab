//! Tests the worked examples of Ball and Larus 1992. Each test is named after its figure.

use afterimage_graph::{FlowGraph, SpanningForest};
use afterimage_ids::{BlockId, EdgeId, EntityRef};
use afterimage_placement::{
    Likelihood, Mode, OpenFrame, PlanOptions, RunFacts, SolveError, Weights, cost,
    determines_edges, determines_vertices, optimal_edges, optimal_vertices, plan, solve,
};
use afterimage_testkit::graphs::naive::has_directed_cycle;
use afterimage_testkit::graphs::programs::call_chain;
use afterimage_testkit::graphs::shapes::{has_diamond, in_g_star};
use afterimage_testkit::graphs::subsets::cheapest_subset;
use afterimage_testkit::graphs::{flow_graph, linear};

const NAMES: [&str; 7] = ["P", "Q", "A", "B", "R", "C", "EXIT"];

/// `while P { if Q then A else B; if R then break; C }`
const EDGES: [(&str, f64); 9] = [
    ("P→Q", 10.5),
    ("P→EXIT", 0.5),
    ("Q→A", 5.25),
    ("Q→B", 5.25),
    ("A→R", 5.25),
    ("B→R", 5.25),
    ("R→C", 10.0),
    ("R→EXIT", 0.5),
    ("C→P", 10.0),
];

fn figure_1() -> FlowGraph {
    let vertex = |name: &str| NAMES.iter().position(|n| *n == name).expect("a vertex");
    let ends = |edge: &str| {
        let (from, to) = edge.split_once('→').expect("an edge");
        (vertex(from), vertex(to))
    };
    flow_graph(NAMES.len(), &EDGES.map(|(edge, _)| ends(edge)))
}

fn heuristic(graph: &FlowGraph) -> Weights {
    Weights::heuristic(graph, |_| Likelihood::Normal)
}

fn edges(names: &[&str]) -> Vec<EdgeId> {
    let number = |name: &&str| EDGES.iter().position(|(e, _)| e == name).expect("an edge");
    names.iter().map(number).map(EdgeId::new).collect()
}

#[test]
fn figure_1_weights() {
    let weights = heuristic(&figure_1());
    for (i, (edge, expected)) in EDGES.iter().enumerate() {
        assert_eq!(weights.edge(EdgeId::new(i)), *expected, "{edge}");
    }
    assert_eq!(weights.entry(), 1.0);
}

#[test]
fn figure_1_maximum_spanning_tree() {
    let (graph, weights) = (figure_1(), heuristic(&figure_1()));
    let forest = SpanningForest::maximum(&graph, &[], |e| weights.edge(e));
    let tree: Vec<EdgeId> = forest.edges().collect();
    let all: Vec<EdgeId> = graph.edges().collect();
    // The figures count EXIT→P, of weight 1, which is always in the tree.
    assert_eq!(cost(&graph, &weights, &all, &[]) + weights.entry(), 53.5);
    assert_eq!(cost(&graph, &weights, &tree, &[]) + weights.entry(), 42.0);
}

#[test]
fn figure_3a_a_suboptimal_placement() {
    let (graph, weights) = (figure_1(), heuristic(&figure_1()));
    // This is one of the placements of cost 16.75.
    let counters = edges(&["P→Q", "P→EXIT", "Q→A", "R→EXIT"]);
    assert_eq!(cost(&graph, &weights, &counters, &[]), 16.75);
    assert!(determines_edges(&graph, &counters));
    let tree: Vec<EdgeId> = graph.edges().filter(|e| !counters.contains(e)).collect();
    assert_eq!(cost(&graph, &weights, &tree, &[]) + weights.entry(), 36.75);
}

#[test]
fn figure_3b_the_optimal_placement() {
    let (graph, weights) = (figure_1(), heuristic(&figure_1()));
    let counters = optimal_edges(&graph, &weights);
    assert_eq!(cost(&graph, &weights, &counters, &[]), 11.5);
    // |E| − (|V| − 1), EXIT→P among the edges.
    assert_eq!(counters.len(), EDGES.len() + 1 - (NAMES.len() - 1));
    assert!(determines_edges(&graph, &counters));
}

#[test]
fn section_3_2_the_optimal_vertex_placement() {
    let (graph, weights) = (figure_1(), heuristic(&figure_1()));
    let vertices = optimal_vertices(&graph, &weights);
    assert_eq!(cost(&graph, &weights, &[], &vertices), 21.5);
    assert!(determines_vertices(&graph, &vertices));
    let names: Vec<&str> = vertices.iter().map(|v| NAMES[v.index()]).collect();
    assert_eq!(names, ["A", "B", "C", "EXIT"]);
}

#[test]
fn figure_1_is_in_g_star_so_edges_are_best() {
    let (graph, weights) = (figure_1(), heuristic(&figure_1()));
    assert!(in_g_star(&graph));
    let each: Vec<f64> = graph.edges().map(|e| weights.edge(e)).collect();
    let best = cheapest_subset(&each, |chosen| {
        let chosen: Vec<EdgeId> = chosen.iter().map(|&i| EdgeId::new(i)).collect();
        linear::determines_vertices(&graph, &chosen, &[])
    });
    assert_eq!(best.map(|b| b.0), Some(11.5));
}

#[test]
fn section_3_2_flow_equations() {
    let (graph, weights) = (figure_1(), heuristic(&figure_1()));
    let w = |name: &str| {
        let v = NAMES.iter().position(|n| *n == name).expect("a vertex");
        weights.vertex(&graph, BlockId::new(v))
    };
    assert_eq!(w("Q"), w("A") + w("B"));
    assert_eq!(w("R"), w("A") + w("B"));
    assert_eq!(w("EXIT"), (w("P") + w("R")) - (w("C") + w("Q")));
}

/// Tests a graph like the one in Figure 5, whose text is lost. It is the smallest graph that a
/// random search found. Vertices 1, 2 and 3 are entered and left at both ends of 1 ⇄ 2 ⇄ 3.
#[test]
fn figure_5_vertices_alone_can_be_cheaper() {
    let edges = [
        (0, 1),
        (0, 3),
        (1, 2),
        (1, 4),
        (2, 1),
        (2, 3),
        (3, 2),
        (3, 4),
    ];
    let graph = flow_graph(5, &edges);
    // The weights are those of five activations.
    let weights = Weights::given(&graph, 5.0, vec![1.0, 4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 4.0]);
    let for_edges = optimal_edges(&graph, &weights);
    assert_eq!(cost(&graph, &weights, &for_edges, &[]), 8.0);

    let for_vertices: Vec<EdgeId> = [0, 1, 4, 5].map(EdgeId::new).to_vec();
    assert_eq!(cost(&graph, &weights, &for_vertices, &[]), 7.0);
    assert!(linear::determines_vertices(&graph, &for_vertices, &[]));
    assert!(!linear::determines_edges(&graph, &for_vertices, &[]));
    // The remaining edges form a cycle that is neither directed nor a diamond.
    let unmeasured = |e: EdgeId| !for_vertices.contains(&e);
    assert!(!determines_edges(&graph, &for_vertices));
    assert!(!has_directed_cycle(&graph, unmeasured) && !has_diamond(&graph, unmeasured));
    assert!(!in_g_star(&graph));

    let each: Vec<f64> = graph.edges().map(|e| weights.edge(e)).collect();
    let best = cheapest_subset(&each, |chosen| {
        let chosen: Vec<EdgeId> = chosen.iter().map(|&i| EdgeId::new(i)).collect();
        linear::determines_vertices(&graph, &chosen, &[])
    });
    assert_eq!(best.map(|b| b.0), Some(7.0));
}

/// The innermost call, three functions deep, ends the program. The counts are right only with the
/// edges "call → EXIT".
#[test]
fn figure_4_a_call_that_never_returns() {
    // Each function branches over a call to the next. The last function calls the import that
    // exits.
    let program = call_chain(3);
    let quick = plan(&program, &PlanOptions::new(Mode::Quick)).expect("a plan");
    let frames = program.functions.iter().map(|f| OpenFrame {
        function: f.id,
        block: BlockId::new(1),
        callee_entered: true,
    });
    let facts = RunFacts {
        open: frames.collect(),
        ..RunFacts::default()
    };
    // The edges of each function are 0→1 (the call), 0→2, 1→2 and 2→EXIT. One activation bypasses
    // the call, and one makes it.
    let truth = [[1, 1, 0, 1], [1, 1, 0, 1], [1, 1, 0, 1]];
    let mut counters = vec![0; quick.counters as usize];
    for (f, function) in quick.functions.iter().enumerate() {
        for probe in &function.probes {
            let afterimage_placement::Site::Edge(e) = probe.site else {
                panic!("edges only")
            };
            counters[probe.counter.index()] = truth[f][e.index()];
        }
    }
    let counts = solve(&program, &quick, &counters, &facts).expect("exact counts");
    for (f, counts) in counts.functions.iter().enumerate() {
        assert_eq!((counts.entries, &counts.edges[..]), (2, &truth[f][..]));
        assert_eq!(counts.open, [(BlockId::new(1), 1)]);
    }
    // Without the frames, the solver either reports an error or is wrong.
    match solve(&program, &quick, &counters, &RunFacts::default()) {
        Ok(wrong) => assert_ne!(wrong, counts),
        Err(error) => assert!(matches!(error, SolveError::Impossible { .. })),
    }
}
