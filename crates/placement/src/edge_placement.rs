//! The edge frequency problem (Ball and Larus 1992, section 3.1).

use afterimage_graph::{FlowGraph, SpanningForest, is_forest};
use afterimage_ids::{BlockId, EdgeId, EntitySet};

use crate::Weights;

/// Finds the cheapest set of edges whose counts determine the counts of all edges. These are the
/// chords of a maximum spanning tree. EXIT→root is never measured. The edges are ascending. Time:
/// O(E log E).
pub fn optimal_edges(graph: &FlowGraph, weights: &Weights) -> Vec<EdgeId> {
    SpanningForest::maximum(graph, &[], |e| weights.edge(e))
        .chords()
        .collect()
}

/// Whether the counts of these edges determine the counts of all edges and of EXIT→root. This is so
/// if and only if the other edges, including EXIT→root, contain no undirected cycle. Time:
/// near-linear.
pub fn determines_edges(graph: &FlowGraph, edges: &[EdgeId]) -> bool {
    let mut measured = EntitySet::new();
    for &e in edges {
        measured.insert(e);
    }
    is_forest(graph, &[], |e| !measured.contains(e))
}

/// Returns the cost of placing counters on edges and vertices, which is the sum of their weights.
pub fn cost(graph: &FlowGraph, weights: &Weights, edges: &[EdgeId], vertices: &[BlockId]) -> f64 {
    let edges = edges.iter().map(|&e| weights.edge(e));
    let vertices = vertices.iter().map(|&v| weights.vertex(graph, v));
    edges.chain(vertices).sum()
}
