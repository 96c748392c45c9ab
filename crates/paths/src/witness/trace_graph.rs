//! Represents a graph in the form that tracing uses.

use afterimage_graph::FlowGraph;
use afterimage_ids::{BlockId, EdgeId, EntityRef};

/// The meaning of a vertex for the reader of witnesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Witnesses determine how control continues, if several edges leave the vertex.
    Plain,
    /// A call to a function that writes nothing. The call is transparent, and the callee determines
    /// how control continues.
    SilentCall,
    /// Other functions may write after this vertex, which is EXIT or a call to a function that may
    /// write. A witness of this graph cannot determine the next part of the trace, so no silent
    /// path may lead from a branch to this vertex (the blocking property, Ball and Larus 1992,
    /// section 4.2). The callee determines how control continues.
    Foreign,
}

/// A graph with the roles of its vertices.
///
/// A *branch* is a plain vertex that several edges leave. Parallel edges count separately, so this
/// term is slightly wider than the paper's *predicate*.
#[derive(Clone, Debug)]
pub struct TraceGraph<'a> {
    graph: &'a FlowGraph,
    roles: Vec<Role>,
    /// For each edge, whether it cannot carry a witness.
    mute: Vec<bool>,
}

impl<'a> TraceGraph<'a> {
    /// Returns the graph of a single procedure without calls, in which every vertex is plain.
    pub fn single(graph: &'a FlowGraph) -> Self {
        Self::new(graph, |_| Role::Plain, |_| false)
    }

    /// Returns a graph with roles. `mute` selects the edges that cannot carry a witness. No cycle,
    /// directed or not, may consist only of these edges, and none of them may leave a branch.
    pub fn new(
        graph: &'a FlowGraph,
        role: impl FnMut(BlockId) -> Role,
        mute: impl FnMut(EdgeId) -> bool,
    ) -> Self {
        Self {
            graph,
            roles: graph.vertices().map(role).collect(),
            mute: graph.edges().map(mute).collect(),
        }
    }

    /// Returns the graph.
    pub fn graph(&self) -> &'a FlowGraph {
        self.graph
    }

    /// Returns the role of a vertex.
    pub fn role(&self, vertex: BlockId) -> Role {
        self.roles[vertex.index()]
    }

    /// Whether other functions may write after a vertex.
    pub fn is_foreign(&self, vertex: BlockId) -> bool {
        self.role(vertex) == Role::Foreign
    }

    /// Whether witnesses must determine how control continues from a vertex.
    pub fn is_branch(&self, vertex: BlockId) -> bool {
        self.role(vertex) == Role::Plain && self.graph.out_edges(vertex).len() > 1
    }

    /// Whether an edge cannot carry a witness.
    pub fn is_mute(&self, edge: EdgeId) -> bool {
        self.mute[edge.index()]
    }
}
