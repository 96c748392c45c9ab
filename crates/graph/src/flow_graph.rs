//! The graph on which all algorithms work.

use afterimage_ids::{BlockId, EdgeId, EntityRef};

/// A rooted directed multigraph with an EXIT vertex (Ball and Larus 1992, section 2).
///
/// Vertices are `0..vertices`. Edges keep the order in which they were given, so the caller's
/// [`EdgeId`]s are also the graph's. Parallel edges and self-loops are allowed. The edge EXIT→root
/// is *not* among the edges. Algorithms that need this edge add it themselves.
#[derive(Clone, Debug)]
pub struct FlowGraph {
    root: BlockId,
    exit: BlockId,
    ends: Vec<(BlockId, BlockId)>,
    succ_start: Vec<u32>,
    succ: Vec<EdgeId>,
    pred_start: Vec<u32>,
    pred: Vec<EdgeId>,
}

impl FlowGraph {
    /// Builds the graph. Time: O(V + E).
    ///
    /// # Panics
    /// Panics if `root`, `exit` or an edge names a vertex that is not below `vertices`.
    pub fn new(
        vertices: usize,
        root: BlockId,
        exit: BlockId,
        edges: impl IntoIterator<Item = (BlockId, BlockId)>,
    ) -> Self {
        let ends: Vec<_> = edges.into_iter().collect();
        assert!(
            root.index() < vertices && exit.index() < vertices,
            "root and EXIT are vertices"
        );
        let bucket = |key: &dyn Fn(&(BlockId, BlockId)) -> BlockId| {
            let mut start = vec![0u32; vertices + 1];
            for end in &ends {
                start[key(end).index() + 1] += 1;
            }
            for v in 0..vertices {
                start[v + 1] += start[v];
            }
            let mut fill = start.clone();
            let mut list = vec![EdgeId::new(0); ends.len()];
            for (i, end) in ends.iter().enumerate() {
                let slot = &mut fill[key(end).index()];
                list[*slot as usize] = EdgeId::new(i);
                *slot += 1;
            }
            (start, list)
        };
        let (succ_start, succ) = bucket(&|e| e.0);
        let (pred_start, pred) = bucket(&|e| e.1);
        Self {
            root,
            exit,
            ends,
            succ_start,
            succ,
            pred_start,
            pred,
        }
    }

    /// Returns the vertex where every execution begins.
    pub fn root(&self) -> BlockId {
        self.root
    }

    /// Returns the vertex where every complete execution ends. It may be unreachable.
    pub fn exit(&self) -> BlockId {
        self.exit
    }

    /// Returns the number of vertices, including EXIT.
    pub fn vertex_count(&self) -> usize {
        self.succ_start.len() - 1
    }

    /// Returns the number of edges, excluding EXIT→root.
    pub fn edge_count(&self) -> usize {
        self.ends.len()
    }

    /// Returns all vertices, ascending.
    pub fn vertices(
        &self,
    ) -> impl DoubleEndedIterator<Item = BlockId> + ExactSizeIterator + Clone + use<> {
        (0..self.vertex_count()).map(BlockId::new)
    }

    /// Returns all edges, ascending.
    pub fn edges(
        &self,
    ) -> impl DoubleEndedIterator<Item = EdgeId> + ExactSizeIterator + Clone + use<> {
        (0..self.edge_count()).map(EdgeId::new)
    }

    /// Returns the vertex that an edge leaves.
    pub fn from(&self, edge: EdgeId) -> BlockId {
        self.ends[edge.index()].0
    }

    /// Returns the vertex that an edge enters.
    pub fn to(&self, edge: EdgeId) -> BlockId {
        self.ends[edge.index()].1
    }

    /// Returns the edges that leave a vertex, ascending.
    pub fn out_edges(&self, vertex: BlockId) -> &[EdgeId] {
        let v = vertex.index();
        &self.succ[self.succ_start[v] as usize..self.succ_start[v + 1] as usize]
    }

    /// Returns the edges that enter a vertex, ascending.
    pub fn in_edges(&self, vertex: BlockId) -> &[EdgeId] {
        let v = vertex.index();
        &self.pred[self.pred_start[v] as usize..self.pred_start[v + 1] as usize]
    }

    /// Returns the successors of a vertex, one per outgoing edge.
    pub fn successors(&self, vertex: BlockId) -> impl DoubleEndedIterator<Item = BlockId> + '_ {
        self.out_edges(vertex).iter().map(|&e| self.to(e))
    }

    /// Returns the predecessors of a vertex, one per incoming edge.
    pub fn predecessors(&self, vertex: BlockId) -> impl DoubleEndedIterator<Item = BlockId> + '_ {
        self.in_edges(vertex).iter().map(|&e| self.from(e))
    }

    /// Whether a vertex is a predicate, which has edges to two distinct vertices (Ball and Larus
    /// 1992, section 2).
    pub fn is_predicate(&self, vertex: BlockId) -> bool {
        let mut successors = self.successors(vertex);
        successors
            .next()
            .is_some_and(|first| successors.any(|next| next != first))
    }
}
