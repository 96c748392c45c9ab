//! The vertex frequency problem, with counters on vertices (Knuth and Stevenson 1973).

use afterimage_graph::{FlowGraph, UnionFind};
use afterimage_ids::{BlockId, EntityRef};

use crate::Weights;

/// The graph G' whose edges are the vertices of G.
///
/// Suppose that an edge leads from `a` to `b` in G. The flow out of `a`, and out of the other
/// predecessors of `b`, then arrives at the beginnings of `b` and its siblings. So the out-side of
/// `a` and the in-side of `b` are one vertex of G', and the frequencies of G's vertices are a flow
/// on G'. EXIT→root is one of the edges.
struct Reduced {
    sides: UnionFind,
    vertices: usize,
}

impl Reduced {
    fn new(graph: &FlowGraph) -> Self {
        let vertices = graph.vertex_count();
        let mut sides = UnionFind::new(2 * vertices);
        let edges = graph.edges().map(|e| (graph.from(e), graph.to(e)));
        for (a, b) in edges.chain([(graph.exit(), graph.root())]) {
            sides.union(vertices + a.index(), b.index());
        }
        Self { sides, vertices }
    }

    /// Adds `v` to the set of unmeasured vertices. Returns whether the set stays free of cycles.
    ///
    /// A vertex without incoming edges, or without outgoing edges, has a separate side. The flow at
    /// that side is known. It is zero, or the flow that stays in the vertex. So the vertex never
    /// closes a cycle.
    fn join(&mut self, v: BlockId) -> bool {
        self.sides.union(v.index(), self.vertices + v.index())
    }
}

/// Finds the cheapest set of vertices whose counts determine the counts of all vertices. It is the
/// complement of a maximum spanning tree of G'. The vertices are ascending. Time: O(E + V log V).
pub fn optimal_vertices(graph: &FlowGraph, weights: &Weights) -> Vec<BlockId> {
    let mut reduced = Reduced::new(graph);
    let mut order: Vec<(f64, BlockId)> = graph
        .vertices()
        .map(|v| (weights.vertex(graph, v), v))
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut measured: Vec<BlockId> = order
        .into_iter()
        .map(|(_, v)| v)
        .filter(|&v| !reduced.join(v))
        .collect();
    measured.sort_unstable();
    measured
}

/// Whether the counts of these vertices determine the counts of all vertices. Time: near-linear.
pub fn determines_vertices(graph: &FlowGraph, vertices: &[BlockId]) -> bool {
    let mut measured = vec![false; graph.vertex_count()];
    for v in vertices {
        measured[v.index()] = true;
    }
    let mut reduced = Reduced::new(graph);
    graph
        .vertices()
        .filter(|v| !measured[v.index()])
        .all(|v| reduced.join(v))
}
