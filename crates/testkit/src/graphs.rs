//! Generates random digraphs and programs made of them, and checks properties by definition.
//!
//! Everything here is slow and obvious. Tests check the fast algorithms against it.

pub mod linear;
pub mod naive;
pub mod programs;
pub mod shapes;
pub mod subsets;
pub mod walk;

use afterimage_graph::FlowGraph;
use afterimage_ids::BlockId;
use proptest::prelude::*;

/// The shape of the digraphs to generate. The root is the first vertex and EXIT is the last. No
/// edge leaves EXIT.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The maximum number of vertices, at least two.
    pub max_vertices: usize,
    /// The maximum number of edges in addition to the edges that the other fields require.
    pub max_extra_edges: usize,
    /// Whether the root reaches every vertex, except possibly EXIT.
    pub all_reachable: bool,
    /// Whether every vertex reaches EXIT.
    pub all_exit: bool,
    /// Whether the root has no incoming edge.
    pub fresh_root: bool,
}

impl Shape {
    /// Any digraph, possibly irreducible, disconnected or without exit.
    pub const ANY: Self = Self {
        max_vertices: 9,
        max_extra_edges: 18,
        all_reachable: false,
        all_exit: false,
        fresh_root: false,
    };

    /// The control-flow graphs of the 1992 paper, including irreducible ones.
    pub const CONTROL_FLOW: Self = Self {
        all_reachable: true,
        all_exit: true,
        ..Self::ANY
    };

    /// Graphs of WebAssembly functions, in the form that the algorithms take. No edge returns to
    /// the root, and EXIT may be unreachable.
    pub const FUNCTION: Self = Self {
        all_reachable: true,
        fresh_root: true,
        ..Self::ANY
    };
}

/// Generates random graphs of a shape. Edges are in random order. Parallel edges and self-loops
/// occur.
pub fn flow_graphs(shape: Shape) -> impl Strategy<Value = FlowGraph> {
    edge_lists(shape).prop_map(|(n, edges)| flow_graph(n, &edges))
}

/// Builds a graph with root 0, EXIT `n - 1` and these edges.
pub fn flow_graph(n: usize, edges: &[(usize, usize)]) -> FlowGraph {
    let block = |v: usize| BlockId::from_u32(v as u32);
    let ends = edges.iter().map(|&(a, b)| (block(a), block(b)));
    FlowGraph::new(n, block(0), block(n - 1), ends)
}

/// Generates the number of vertices and the edges for [`flow_graphs`].
pub fn edge_lists(shape: Shape) -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
    (2..=shape.max_vertices).prop_flat_map(move |n| {
        let spine = proptest::collection::vec(any::<prop::sample::Index>(), n);
        let out = proptest::collection::vec(any::<prop::sample::Index>(), n);
        let first_target = usize::from(shape.fresh_root);
        let extra =
            proptest::collection::vec((0..n - 1, first_target..n), 0..=shape.max_extra_edges);
        (spine, out, extra, any::<bool>()).prop_flat_map(move |(spine, out, mut edges, to_exit)| {
            if shape.all_reachable {
                let last = if to_exit || shape.all_exit { n } else { n - 1 };
                edges.extend((1..last).map(|v| (spine[v].index(v), v)));
            }
            if shape.all_exit {
                edges.extend((0..n - 1).map(|v| (v, v + 1 + out[v].index(n - 1 - v))));
            }
            (Just(n), Just(edges).prop_shuffle())
        })
    })
}

/// Generates a weight for each edge. Weights are small integers, so sums are exact and ties occur.
pub fn weights(edges: usize) -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec((0u32..12).prop_map(f64::from), edges)
}
