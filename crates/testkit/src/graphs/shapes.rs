//! Finds simple cycles, diamonds and graphs of the class G*, by enumeration. Time is exponential,
//! so this is for small graphs only.

use afterimage_graph::FlowGraph;
use afterimage_ids::{BlockId, EdgeId, EntityRef};

/// Whether two simple directed paths over chosen edges have the same first and last vertex and
/// share no other vertex (Ball and Larus 1992, section 3.3). Parallel edges count as two paths.
pub fn has_diamond(graph: &FlowGraph, chosen: impl Fn(EdgeId) -> bool) -> bool {
    let chosen: Vec<bool> = graph.edges().map(chosen).collect();
    graph.vertices().any(|p| {
        let mut paths = Vec::new();
        extend(graph, &chosen, p, &mut vec![p], &mut Vec::new(), &mut paths);
        paths.iter().enumerate().any(|(i, a)| {
            paths[i + 1..].iter().any(|b| {
                let inner = |path: &[EdgeId]| -> Vec<BlockId> {
                    path[1..].iter().map(|&e| graph.from(e)).collect()
                };
                let end = |path: &[EdgeId]| path.last().map(|&e| graph.to(e));
                end(a) == end(b) && !inner(a).iter().any(|v| inner(b).contains(v)) && a != b
            })
        })
    })
}

/// Finds all simple directed paths from `p`, as lists of edges.
fn extend(
    graph: &FlowGraph,
    chosen: &[bool],
    p: BlockId,
    on_path: &mut Vec<BlockId>,
    path: &mut Vec<EdgeId>,
    found: &mut Vec<Vec<EdgeId>>,
) {
    for &e in graph.out_edges(p).iter().filter(|e| chosen[e.index()]) {
        let to = graph.to(e);
        if on_path.contains(&to) {
            continue;
        }
        path.push(e);
        on_path.push(to);
        found.push(path.clone());
        extend(graph, chosen, to, on_path, path, found);
        on_path.pop();
        path.pop();
    }
}

/// Whether every simple undirected cycle, including those with EXIT→root, is a directed cycle or a
/// diamond. This defines the class G* of Ball and Larus 1992, section 3.3.
///
/// A cycle is directed if no vertex is the source of both of its edges on the cycle. It is a
/// diamond if exactly one vertex is the source of both.
pub fn in_g_star(graph: &FlowGraph) -> bool {
    let mut edges: Vec<(usize, usize)> = graph
        .edges()
        .map(|e| (graph.from(e).index(), graph.to(e).index()))
        .collect();
    edges.push((graph.exit().index(), graph.root().index()));
    (0..edges.len()).all(|first| {
        // Each cycle is found from its lowest edge, walked forwards.
        let (from, to) = edges[first];
        from == to || cycles_are_simple(&edges, first, to, from, &mut vec![(first, true)])
    })
}

/// Extends the walk, which began with the edge `first` out of `home`, to all cycles that contain
/// the edge.
fn cycles_are_simple(
    edges: &[(usize, usize)],
    first: usize,
    at: usize,
    home: usize,
    walk: &mut Vec<(usize, bool)>,
) -> bool {
    let tail = |&(e, forward): &(usize, bool)| if forward { edges[e].0 } else { edges[e].1 };
    if at == home {
        let n = walk.len();
        let sources = (0..n).filter(|&i| !walk[(i + n - 1) % n].1 && walk[i].1);
        return sources.count() <= 1;
    }
    if walk.iter().skip(1).any(|step| tail(step) == at) {
        return true;
    }
    (first + 1..edges.len()).all(|e| {
        [true, false].into_iter().all(|forward| {
            let (a, b) = if forward {
                edges[e]
            } else {
                (edges[e].1, edges[e].0)
            };
            if a != at || a == b || walk.iter().any(|&(used, _)| used == e) {
                return true;
            }
            walk.push((e, forward));
            let fine = cycles_are_simple(edges, first, b, home, walk);
            walk.pop();
            fine
        })
    })
}
