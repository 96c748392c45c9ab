//! Chooses edges by a modified spanning tree.

use afterimage_graph::UnionFind;
use afterimage_ids::{EdgeId, EntityRef};

use super::{Placement, TraceGraph};

/// Makes more edges write, so that the silent edges contain no undirected cycle. Uses Kruskal's
/// algorithm. Edges that cannot carry a witness come first, then the other edges by decreasing
/// weight. Edges that are already in the placement stay in it (Ball and Larus 1992, section 4.2).
/// EXIT→root is not an edge here. Time: O(E log E).
pub fn chords(view: &TraceGraph<'_>, placement: &mut Placement, weight: &[f64]) {
    let graph = view.graph();
    let mut order: Vec<EdgeId> = graph.edges().filter(|&e| !placement.writes(e)).collect();
    order.sort_by(|&a, &b| {
        let mute_first = view.is_mute(b).cmp(&view.is_mute(a));
        mute_first.then(weight[b.index()].total_cmp(&weight[a.index()]))
    });
    let mut sets = UnionFind::new(graph.vertex_count());
    for e in order {
        let joins = sets.union(graph.from(e).index(), graph.to(e).index());
        debug_assert!(joins || !view.is_mute(e), "mute edges form no cycle");
        placement.set(e, !joins);
    }
}
