//! The edges that write a witness.

use afterimage_graph::FlowGraph;
use afterimage_ids::{EdgeId, EntityRef};

/// A set of edges that write witnesses, called *epl* in Ball and Larus 1992. The other edges are
/// *silent*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    writes: Vec<bool>,
}

impl Placement {
    /// Returns the placement with these edges.
    pub fn new(graph: &FlowGraph, edges: impl IntoIterator<Item = EdgeId>) -> Self {
        let mut this = Self {
            writes: vec![false; graph.edge_count()],
        };
        for e in edges {
            this.set(e, true);
        }
        this
    }

    /// Whether an edge writes a witness.
    pub fn writes(&self, edge: EdgeId) -> bool {
        self.writes[edge.index()]
    }

    /// Sets whether an edge writes a witness.
    pub fn set(&mut self, edge: EdgeId, writes: bool) {
        self.writes[edge.index()] = writes;
    }

    /// Returns the edges that write, ascending.
    pub fn edges(&self) -> impl Iterator<Item = EdgeId> + '_ {
        let edges = self.writes.iter().enumerate();
        edges.filter(|(_, w)| **w).map(|(i, _)| EdgeId::new(i))
    }
}
