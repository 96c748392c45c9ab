//! Chooses the edges that write.

use afterimage_ids::EntityRef;

use super::{Placement, TraceGraph, blockers, chords, delete_hot};

/// Finds a cheap placement. The placement has blocking witnesses and the chords of a maximum
/// spanning tree of the rest, minus the witnesses that distinguish nothing. Time: O(E log E), plus
/// constant time for every witness.
///
/// `weight` contains the cost of a witness on each edge.
pub fn place(view: &TraceGraph<'_>, weight: &[f64]) -> Placement {
    let mut placement = Placement::new(view.graph(), []);
    blockers(view, &mut placement);
    chords(view, &mut placement, weight);
    delete_hot(view, &mut placement, weight);
    placement
}

/// Returns the cost of a placement, which is the sum of its edges' weights.
pub fn cost(placement: &Placement, weight: &[f64]) -> f64 {
    placement.edges().map(|e| weight[e.index()]).sum()
}
