//! Finds directed cycles and diamonds among edges that carry no instrumentation.

use afterimage_ids::{BlockId, EdgeId, EntityRef};

use crate::{FlowGraph, is_forest};

/// The reason why a set of uninstrumented edges leaves an execution undetermined (Ball and Larus
/// 1992, Theorems 3.1 and 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguity {
    /// A directed cycle goes through this vertex.
    DirectedCycle(BlockId),
    /// Two directed paths lead from one vertex to another. Two parallel edges are the shortest
    /// diamond, because the edges out of a branch must be distinguishable.
    Diamond {
        /// The vertex where the paths diverge.
        from: BlockId,
        /// A vertex where both paths arrive.
        to: BlockId,
    },
}

/// Finds a directed cycle or a diamond among the edges that `free` selects. EXIT→root is not one of
/// these edges.
///
/// Time: O(V + E) if these edges contain a directed cycle, or no undirected cycle at all.
/// Otherwise, it is O(P·V), where P is the number of vertices that several free edges leave.
pub fn find_ambiguity(
    graph: &FlowGraph,
    mut free: impl FnMut(EdgeId) -> bool,
) -> Option<Ambiguity> {
    let free: Vec<bool> = graph.edges().map(&mut free).collect();
    let is_free = |e: EdgeId| free[e.index()];
    // Because `is_forest` includes EXIT→root, it is stricter than necessary, which is fine for a
    // shortcut.
    if is_forest(graph, &[], is_free) {
        return None;
    }
    find_cycle(graph, is_free)
        .map(Ambiguity::DirectedCycle)
        .or_else(|| find_diamond(graph, is_free))
}

/// Finds a vertex on a directed cycle. Repeatedly removes vertices without free incoming edges,
/// then walks backward among the remaining vertices.
fn find_cycle(graph: &FlowGraph, is_free: impl Fn(EdgeId) -> bool) -> Option<BlockId> {
    let free_in = |v| graph.in_edges(v).iter().copied().filter(|&e| is_free(e));
    let mut incoming: Vec<usize> = graph.vertices().map(|v| free_in(v).count()).collect();
    let mut ready: Vec<BlockId> = graph
        .vertices()
        .filter(|v| incoming[v.index()] == 0)
        .collect();
    while let Some(v) = ready.pop() {
        for &e in graph.out_edges(v).iter().filter(|&&e| is_free(e)) {
            let w = graph.to(e);
            incoming[w.index()] -= 1;
            if incoming[w.index()] == 0 {
                ready.push(w);
            }
        }
    }
    let mut v = graph.vertices().find(|v| incoming[v.index()] > 0)?;
    // Every remaining vertex has a remaining predecessor, so this walk enters a cycle within V
    // steps.
    for _ in 0..graph.vertex_count() {
        v = free_in(v)
            .map(|e| graph.from(e))
            .find(|p| incoming[p.index()] > 0)?;
    }
    Some(v)
}

/// Finds two paths that diverge at one vertex and meet again at another, among edges without a
/// directed cycle.
fn find_diamond(graph: &FlowGraph, is_free: impl Fn(EdgeId) -> bool) -> Option<Ambiguity> {
    let free_out = |v| graph.out_edges(v).iter().copied().filter(|&e| is_free(e));
    let mut seen_from = vec![None; graph.vertex_count()];
    let mut stack = Vec::new();
    for from in graph.vertices().filter(|&v| free_out(v).nth(1).is_some()) {
        stack.push(from);
        while let Some(v) = stack.pop() {
            for to in free_out(v).map(|e| graph.to(e)) {
                if seen_from[to.index()].replace(from) == Some(from) {
                    return Some(Ambiguity::Diamond { from, to });
                }
                stack.push(to);
            }
        }
    }
    None
}
