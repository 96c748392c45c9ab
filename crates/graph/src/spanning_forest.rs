//! Maximum spanning trees that include unmeasurable edges.

use afterimage_ids::{BlockId, EdgeId, EntityRef};

use crate::{FlowGraph, UnionFind};

/// A set of edges that contains no undirected cycle, even together with the edge EXIT→root and
/// other *virtual* edges that no counter can measure.
///
/// The edges outside the set are its chords. The counts of the chords determine the counts of all
/// edges exactly if the edges in the set contain no cycle (Ball and Larus 1992, section 3.1).
#[derive(Clone, Debug)]
pub struct SpanningForest {
    inside: Vec<bool>,
}

impl SpanningForest {
    /// Builds a forest of maximum weight by Kruskal's algorithm (Tarjan 1983, chapter 6). EXIT→root
    /// and the virtual edges come first, then the other edges by decreasing weight. Ties go to the
    /// lower number. On a connected graph, the result is a spanning tree. Time: O(E log E).
    ///
    /// Virtual edges that close a cycle with earlier edges are skipped.
    pub fn maximum(
        graph: &FlowGraph,
        virtual_edges: &[(BlockId, BlockId)],
        mut weight: impl FnMut(EdgeId) -> f64,
    ) -> Self {
        let mut order: Vec<(f64, EdgeId)> = graph.edges().map(|e| (weight(e), e)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut sets = seeded(graph, virtual_edges).0;
        let mut inside = vec![false; graph.edge_count()];
        for (_, edge) in order {
            inside[edge.index()] = sets.union(graph.from(edge).index(), graph.to(edge).index());
        }
        Self { inside }
    }

    /// Whether an edge is in the forest.
    pub fn contains(&self, edge: EdgeId) -> bool {
        self.inside[edge.index()]
    }

    /// Returns the edges in the forest, ascending.
    pub fn edges(&self) -> impl Iterator<Item = EdgeId> + '_ {
        self.select(true)
    }

    /// Returns the edges outside the forest, ascending.
    pub fn chords(&self) -> impl Iterator<Item = EdgeId> + '_ {
        self.select(false)
    }

    fn select(&self, inside: bool) -> impl Iterator<Item = EdgeId> + '_ {
        let edges = self.inside.iter().enumerate();
        edges
            .filter(move |&(_, &is_inside)| is_inside == inside)
            .map(|(i, _)| EdgeId::new(i))
    }
}

/// Whether the chosen edges, EXIT→root and the virtual edges together contain no undirected cycle.
pub fn is_forest(
    graph: &FlowGraph,
    virtual_edges: &[(BlockId, BlockId)],
    mut chosen: impl FnMut(EdgeId) -> bool,
) -> bool {
    let (mut sets, acyclic) = seeded(graph, virtual_edges);
    acyclic
        && graph
            .edges()
            .filter(|&e| chosen(e))
            .all(|e| sets.union(graph.from(e).index(), graph.to(e).index()))
}

fn seeded(graph: &FlowGraph, virtual_edges: &[(BlockId, BlockId)]) -> (UnionFind, bool) {
    let mut sets = UnionFind::new(graph.vertex_count());
    let mut acyclic = sets.union(graph.exit().index(), graph.root().index());
    for (from, to) in virtual_edges {
        acyclic &= sets.union(from.index(), to.index());
    }
    (sets, acyclic)
}
