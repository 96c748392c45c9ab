//! Depth-first search from the root.

use afterimage_ids::{BlockId, EdgeId, EntityRef};

use crate::FlowGraph;

/// A depth-first spanning tree of the vertices that the root reaches, and the two orders in which
/// the search enters and leaves them.
///
/// Successors are visited in edge order, so the result depends only on the graph.
#[derive(Clone, Debug)]
pub struct DepthFirst {
    preorder: Vec<BlockId>,
    postorder: Vec<BlockId>,
    /// The position of each vertex in `preorder`, or `u32::MAX` for a vertex that was not reached.
    number: Vec<u32>,
    /// The preorder number of the last vertex in each vertex's subtree.
    last: Vec<u32>,
    parent: Vec<Option<EdgeId>>,
}

impl DepthFirst {
    /// Searches the graph. Time: O(V + E), no recursion.
    pub fn compute(graph: &FlowGraph) -> Self {
        let n = graph.vertex_count();
        let mut this = Self {
            preorder: Vec::with_capacity(n),
            postorder: Vec::with_capacity(n),
            number: vec![u32::MAX; n],
            last: vec![0; n],
            parent: vec![None; n],
        };
        let mut stack = Vec::new();
        this.enter(graph.root(), &mut stack);
        while let Some((v, next)) = stack.last_mut() {
            let v = *v;
            match graph.out_edges(v).get(*next) {
                Some(&edge) => {
                    *next += 1;
                    let w = graph.to(edge);
                    if !this.is_reached(w) {
                        this.parent[w.index()] = Some(edge);
                        this.enter(w, &mut stack);
                    }
                }
                None => {
                    stack.pop();
                    this.postorder.push(v);
                    this.last[v.index()] = this.preorder.len() as u32 - 1;
                }
            }
        }
        this
    }

    fn enter(&mut self, v: BlockId, stack: &mut Vec<(BlockId, usize)>) {
        self.number[v.index()] = self.preorder.len() as u32;
        self.preorder.push(v);
        stack.push((v, 0));
    }

    /// Returns the reached vertices in the order of discovery.
    pub fn preorder(&self) -> &[BlockId] {
        &self.preorder
    }

    /// Returns the reached vertices in the order in which the search left them.
    pub fn postorder(&self) -> &[BlockId] {
        &self.postorder
    }

    /// Returns the reached vertices, each before its successors, except along retreating edges.
    pub fn reverse_postorder(&self) -> impl DoubleEndedIterator<Item = BlockId> + '_ {
        self.postorder.iter().rev().copied()
    }

    /// Whether the root reaches `v`.
    pub fn is_reached(&self, v: BlockId) -> bool {
        self.number[v.index()] != u32::MAX
    }

    /// Returns the position of `v` in preorder, if it was reached.
    pub fn number(&self, v: BlockId) -> Option<usize> {
        self.is_reached(v).then(|| self.number[v.index()] as usize)
    }

    /// Returns the edge by which the search discovered `v`, or `None` for the root and for vertices
    /// that were not reached.
    pub fn parent_edge(&self, v: BlockId) -> Option<EdgeId> {
        self.parent[v.index()]
    }

    /// Whether `a` is `b` or an ancestor of `b` in the depth-first tree. Time: O(1).
    pub fn is_ancestor(&self, a: BlockId, b: BlockId) -> bool {
        let (a, b) = (a.index(), b.index());
        self.number[a] != u32::MAX
            && self.number[b] != u32::MAX
            && (self.number[a]..=self.last[a]).contains(&self.number[b])
    }
}
