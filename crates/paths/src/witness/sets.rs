//! Computes witness sets, and decides by definition and by theorem whether a placement solves the
//! tracing problem.

use std::collections::BTreeSet;

use afterimage_graph::{FlowGraph, find_ambiguity, virtual_exits};
use afterimage_ids::{BlockId, EdgeId, EntityRef};

use super::{Placement, TraceGraph};

/// A possible first event in the trace after control has passed over an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Witness {
    /// The witness of an edge.
    Edge(EdgeId),
    /// The end of the trace, because the run ends at this vertex.
    End(BlockId),
    /// Witnesses of other functions, after this vertex.
    Foreign(BlockId),
}

/// Returns the witness set of an edge (Ball and Larus 1992, section 4.1), by walking over
/// everything that is reachable without a write. Time: O(E log E).
///
/// `may_end` says where a run may end. In a single procedure, this is EXIT. In a program, it is
/// every block, because the host or a trap may end the run anywhere.
pub fn witness_set(
    view: &TraceGraph<'_>,
    placement: &Placement,
    edge: EdgeId,
    may_end: impl Fn(BlockId) -> bool,
) -> BTreeSet<Witness> {
    let graph = view.graph();
    let mut set = BTreeSet::new();
    let mut seen = vec![false; graph.vertex_count()];
    let mut stack = Vec::new();
    let mut next = vec![edge];
    loop {
        for e in next.drain(..) {
            if placement.writes(e) {
                set.insert(Witness::Edge(e));
            } else if !std::mem::replace(&mut seen[graph.to(e).index()], true) {
                stack.push(graph.to(e));
            }
        }
        let Some(v) = stack.pop() else { return set };
        if may_end(v) {
            set.insert(Witness::End(v));
        }
        if view.is_foreign(v) {
            set.insert(Witness::Foreign(v));
        } else {
            next.extend(graph.out_edges(v));
        }
    }
}

/// Completes the graph so that every vertex reaches EXIT. Adds an edge to EXIT, after the other
/// edges, from one vertex of every region that cannot be left. Time: O(V + E).
///
/// Without these virtual exits, the events of an endless region would be in no witness set, and the
/// definition and Theorem 4.2 would disagree.
pub fn completed(graph: &FlowGraph) -> FlowGraph {
    let edges = graph.edges().map(|e| (graph.from(e), graph.to(e)));
    let added = virtual_exits(graph).into_iter();
    FlowGraph::new(
        graph.vertex_count(),
        graph.root(),
        graph.exit(),
        edges.chain(added.map(|v| (v, graph.exit()))),
    )
}

/// Whether the witness sets of the edges that leave a vertex are disjoint, for every vertex. This
/// is Trace(G, epl) of Ball and Larus 1992, section 4.1, on a graph without calls. Time: O(E²).
///
/// Adds virtual exits, which write nothing.
pub fn solves_by_definition(graph: &FlowGraph, placement: &Placement) -> bool {
    let completed = completed(graph);
    let placement = Placement::new(&completed, placement.edges());
    let view = TraceGraph::single(&completed);
    let exit = graph.exit();
    completed.vertices().all(|p| {
        let mut seen = BTreeSet::new();
        let mut sets = completed
            .out_edges(p)
            .iter()
            .flat_map(|&e| witness_set(&view, &placement, e, |v| v == exit));
        sets.all(|w| seen.insert(w))
    })
}

/// Decides by Theorem 4.2 whether a placement solves the tracing problem. The silent edges must
/// contain no directed cycle and no diamond. See [`find_ambiguity`] for the cost.
pub fn solves_by_theorem(graph: &FlowGraph, placement: &Placement) -> bool {
    let completed = completed(graph);
    let is_virtual = |e: EdgeId| e.index() >= graph.edge_count();
    find_ambiguity(&completed, |e| is_virtual(e) || !placement.writes(e)).is_none()
}
