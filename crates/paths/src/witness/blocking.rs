//! Adds blocking witnesses to a placement.

use afterimage_ids::EntityRef;

use super::{Placement, TraceGraph};

/// Adds blocking witnesses, so that no silent path leads from a branch to a vertex after which
/// other functions write. They are placed as far from that vertex as possible, on the edges that
/// leave the branches (Ball and Larus 1992, section 4.2). There, several of these vertices can
/// share a witness, which also distinguishes the edges of the branch. Time: O(V + E).
pub fn blockers(view: &TraceGraph<'_>, placement: &mut Placement) {
    let graph = view.graph();
    let mut seen = vec![false; graph.vertex_count()];
    let mut stack: Vec<_> = graph.vertices().filter(|&v| view.is_foreign(v)).collect();
    for v in &stack {
        seen[v.index()] = true;
    }
    while let Some(v) = stack.pop() {
        for &e in graph.in_edges(v) {
            let from = graph.from(e);
            if view.is_branch(from) {
                placement.set(e, true);
            } else if !std::mem::replace(&mut seen[from.index()], true) {
                stack.push(from);
            }
        }
    }
}
