//! Regenerates a path as in the paper, computing witness sets from their definition.

use afterimage_graph::FlowGraph;
use afterimage_ids::{BlockId, EdgeId};

use super::{Placement, TraceGraph, Witness, witness_set};

/// The reason why a trace does not fit the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimpleError {
    /// The next witness is in no edge's witness set, or in several.
    #[error("the trace does not determine the edge to take from {0}")]
    NoWay(BlockId),
    /// The path reached a vertex without successors that is not EXIT.
    #[error("the path ends at {0} without reaching EXIT")]
    DeadEnd(BlockId),
}

/// Returns the witnesses that a path writes, without the end of the trace. This is `trace_record`
/// of Ball and Larus 1992, section 4.1.
pub fn trace_record(placement: &Placement, path: &[EdgeId]) -> Vec<EdgeId> {
    let edges = path.iter().copied();
    edges.filter(|&e| placement.writes(e)).collect()
}

/// Regenerates the path that wrote a trace. This is `regenerate` of Ball and Larus 1992, Figure 7,
/// on a graph without calls. The path begins with the root and ends with EXIT. Time: O(path · E).
/// This is the reference for faster algorithms.
///
/// # Errors
/// Returns an error if no path that ends at EXIT writes this trace.
pub fn regenerate_simple(
    graph: &FlowGraph,
    placement: &Placement,
    trace: &[EdgeId],
) -> Result<Vec<BlockId>, SimpleError> {
    let view = TraceGraph::single(graph);
    let exit = graph.exit();
    let mut rest = trace.iter().map(|&e| Witness::Edge(e));
    let mut pc = graph.root();
    let mut path = vec![pc];
    // The paper's `wit`, which is a witness that has been read before the path reaches its edge.
    let mut pending = None;
    while pc != exit {
        let way = if let [only] = graph.out_edges(pc) {
            if placement.writes(*only) && pending.is_none() {
                pending = rest.next();
            }
            if placement.writes(*only) && pending != Some(Witness::Edge(*only)) {
                return Err(SimpleError::NoWay(pc));
            }
            *only
        } else {
            let wit = pending.take().or_else(|| rest.next());
            let wit = wit.unwrap_or(Witness::End(exit));
            pending = Some(wit);
            let mut ways = graph
                .out_edges(pc)
                .iter()
                .filter(|&&e| witness_set(&view, placement, e, |v| v == exit).contains(&wit));
            match (ways.next(), ways.next()) {
                (Some(&way), None) => way,
                (None, _) if graph.out_edges(pc).is_empty() => {
                    return Err(SimpleError::DeadEnd(pc));
                }
                _ => return Err(SimpleError::NoWay(pc)),
            }
        };
        if placement.writes(way) {
            pending = None;
        }
        pc = graph.to(way);
        path.push(pc);
    }
    match pending.or_else(|| rest.next()) {
        None | Some(Witness::End(_)) => Ok(path),
        Some(_) => Err(SimpleError::NoWay(exit)),
    }
}
