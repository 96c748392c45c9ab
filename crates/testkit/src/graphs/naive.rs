//! Computes dominance, control dependence and loops from their definitions.

use afterimage_graph::{DepthFirst, FlowGraph};
use afterimage_ids::{BlockId, EdgeId, EntityRef};

/// Finds the vertices reachable from `from` without entering a blocked vertex. `from` itself is
/// included unless it is blocked.
pub fn reachable(graph: &FlowGraph, from: BlockId, blocked: impl Fn(BlockId) -> bool) -> Vec<bool> {
    let mut seen = vec![false; graph.vertex_count()];
    let mut stack = Vec::new();
    if !blocked(from) {
        seen[from.index()] = true;
        stack.push(from);
    }
    while let Some(v) = stack.pop() {
        for w in graph.successors(v) {
            if !blocked(w) && !std::mem::replace(&mut seen[w.index()], true) {
                stack.push(w);
            }
        }
    }
    seen
}

/// Whether `b` is reachable and every path from the root to `b` goes through `a`.
pub fn dominates(graph: &FlowGraph, a: BlockId, b: BlockId) -> bool {
    let avoiding = reachable(graph, graph.root(), |v| v == a);
    reachable(graph, graph.root(), |_| false)[b.index()] && !avoiding[b.index()]
}

/// Whether `b` reaches EXIT and every path from `b` to EXIT goes through `a`.
pub fn post_dominates(graph: &FlowGraph, a: BlockId, b: BlockId) -> bool {
    let exit = graph.exit().index();
    reachable(graph, b, |_| false)[exit] && !reachable(graph, b, |v| v == a)[exit]
}

/// Returns the graph with an edge to EXIT from each of these vertices, after the other edges.
pub fn with_exits(graph: &FlowGraph, exits: &[BlockId]) -> FlowGraph {
    let edges = graph.edges().map(|e| (graph.from(e), graph.to(e)));
    let added = exits.iter().map(|&v| (v, graph.exit()));
    FlowGraph::new(
        graph.vertex_count(),
        graph.root(),
        graph.exit(),
        edges.chain(added),
    )
}

/// Whether `v` post-dominates the edge's target and does not strictly post-dominate its source.
pub fn depends_on(completed: &FlowGraph, v: BlockId, edge: EdgeId) -> bool {
    let (from, to) = (completed.from(edge), completed.to(edge));
    post_dominates(completed, v, to) && (v == from || !post_dominates(completed, v, from))
}

/// Returns the loop with this header by Havlak's definition. It consists of the header's
/// depth-first descendants that reach the header through its descendants. The loop is empty if no
/// edge from a descendant enters the header.
pub fn havlak_loop(graph: &FlowGraph, search: &DepthFirst, header: BlockId) -> Vec<BlockId> {
    let outside = |v| !search.is_ancestor(header, v);
    let enters = |v| {
        let within = reachable(graph, v, outside);
        let mut sources = graph.predecessors(header);
        sources.any(|p| within[p.index()])
    };
    let inside = graph.vertices().filter(|&v| !outside(v));
    inside.filter(|&v| enters(v)).collect()
}

/// Whether the chosen edges contain a directed cycle.
pub fn has_directed_cycle(graph: &FlowGraph, chosen: impl Fn(EdgeId) -> bool) -> bool {
    let n = graph.vertex_count();
    let mut reaches = vec![vec![false; n]; n];
    for e in graph.edges().filter(|&e| chosen(e)) {
        reaches[graph.from(e).index()][graph.to(e).index()] = true;
    }
    for k in 0..n {
        for i in 0..n {
            for j in 0..n {
                reaches[i][j] |= reaches[i][k] && reaches[k][j];
            }
        }
    }
    (0..n).any(|v| reaches[v][v])
}
