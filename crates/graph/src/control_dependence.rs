//! Control dependence (Ferrante, Ottenstein and Warren 1987).

use afterimage_ids::{BlockId, EdgeId, EntityRef};

use crate::{FlowGraph, PostDominatorTree};

/// The edges on which each vertex depends. `v` is control dependent on the edge `a → b` if `v`
/// post-dominates `b` and does not strictly post-dominate `a`.
///
/// [`PostDominatorTree`] defines post-dominance, so the relation also covers vertices that cannot
/// reach EXIT. It omits the dependence of everything on the function's entry (the edge EXIT→root).
/// Virtual exits are not edges, so nothing depends on them.
#[derive(Clone, Debug)]
pub struct ControlDependence {
    start: Vec<u32>,
    edges: Vec<EdgeId>,
}

impl ControlDependence {
    /// Finds all dependences. Time: O(V + E + output). The output alone can be quadratic.
    pub fn compute(graph: &FlowGraph, post_dominators: &PostDominatorTree) -> Self {
        let mut start = vec![0u32; graph.vertex_count() + 1];
        for_each_dependence(graph, post_dominators, |v, _| start[v.index() + 1] += 1);
        for v in 0..graph.vertex_count() {
            start[v + 1] += start[v];
        }
        let mut fill = start.clone();
        let mut edges = vec![EdgeId::new(0); start[graph.vertex_count()] as usize];
        for_each_dependence(graph, post_dominators, |v, edge| {
            let slot = &mut fill[v.index()];
            edges[*slot as usize] = edge;
            *slot += 1;
        });
        Self { start, edges }
    }

    /// Returns the edges on which `v` is control dependent, ascending.
    pub fn controllers(&self, v: BlockId) -> &[EdgeId] {
        &self.edges[self.start[v.index()] as usize..self.start[v.index() + 1] as usize]
    }
}

/// Walks up the post-dominator tree from the target of every edge. Stops before the immediate
/// post-dominator of the edge's source (section 3.1.1 of the paper).
fn for_each_dependence(
    graph: &FlowGraph,
    post_dominators: &PostDominatorTree,
    mut found: impl FnMut(BlockId, EdgeId),
) {
    for edge in graph.edges() {
        let from = graph.from(edge);
        if from == graph.exit() {
            continue;
        }
        let stop = post_dominators.immediate_post_dominator(from);
        let mut v = Some(graph.to(edge));
        while v != stop
            && let Some(vertex) = v
        {
            found(vertex, edge);
            v = post_dominators.immediate_post_dominator(vertex);
        }
    }
}
