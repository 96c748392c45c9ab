//! Choosing the edges that write.

use afterimage_ids::EntityRef;

use super::{Placement, TraceGraph, blockers, chords, delete_hot};

/// A cheap placement: blocking witnesses, the chords of a maximum spanning tree of what is left, and then
/// without those witnesses that tell nothing apart. O(E log E), and a constant for every witness.
///
/// `weight` holds what a witness on each edge costs.
pub fn place(view: &TraceGraph<'_>, weight: &[f64]) -> Placement {
    let mut placement = Placement::new(view.graph(), []);
    blockers(view, &mut placement);
    chords(view, &mut placement, weight);
    delete_hot(view, &mut placement, weight);
    placement
}

/// What a placement costs: the sum of its edges' weights.
pub fn cost(placement: &Placement, weight: &[f64]) -> f64 {
    placement.edges().map(|e| weight[e.index()]).sum()
}
