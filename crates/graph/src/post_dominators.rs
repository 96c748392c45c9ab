//! Post-dominators, on graphs with or without a path to EXIT.

use afterimage_ids::{BlockId, EntityRef};

use crate::{Adjacency, Components, DepthFirst, DominatorTree, FlowGraph};

/// The post-dominator tree. `a` post-dominates `b` if every path from `b` to EXIT goes through `a`.
///
/// If a vertex cannot reach EXIT, the graph is first completed by *virtual exits*. Every vertex
/// without successors gets an edge to EXIT. So does one vertex of every region that no edge leaves,
/// namely the vertex that depth-first search discovers first. In an infinite loop, this is the
/// header. Every vertex then reaches EXIT and has a place in the tree. An infinite loop thus
/// behaves like a loop that can end at its header. Edges that leave EXIT are ignored.
#[derive(Clone, Debug)]
pub struct PostDominatorTree {
    tree: DominatorTree,
    virtual_exits: Vec<BlockId>,
}

impl PostDominatorTree {
    /// Finds the post-dominators of all vertices. Time: O(E log V), no recursion.
    pub fn compute(graph: &FlowGraph) -> Self {
        let virtual_exits = virtual_exits(graph);
        let exit = graph.exit().index();
        let ends = inner_edges(graph).chain(virtual_exits.iter().map(|v| (v.index(), exit)));
        let n = graph.vertex_count();
        let succ = Adjacency::new(n, ends.clone());
        let pred = Adjacency::new(n, ends.map(|(a, b)| (b, a)));
        Self {
            tree: DominatorTree::of_digraph(exit, &pred, &succ),
            virtual_exits,
        }
    }

    /// Returns the closest strict post-dominator, or `None` for EXIT only.
    pub fn immediate_post_dominator(&self, v: BlockId) -> Option<BlockId> {
        self.tree.immediate_dominator(v)
    }

    /// Whether `a` post-dominates `b`. Every vertex post-dominates itself. Time: O(1).
    pub fn post_dominates(&self, a: BlockId, b: BlockId) -> bool {
        self.tree.dominates(a, b)
    }

    /// Returns the vertices that got a virtual edge to EXIT, ascending.
    pub fn virtual_exits(&self) -> &[BlockId] {
        &self.virtual_exits
    }
}

fn inner_edges(graph: &FlowGraph) -> impl Iterator<Item = (usize, usize)> + Clone + '_ {
    graph
        .edges()
        .map(|e| (graph.from(e).index(), graph.to(e).index()))
        .filter(|&(from, _)| from != graph.exit().index())
}

/// For every strongly connected component that no edge leaves, except EXIT's, returns one vertex.
/// This is the vertex that depth-first search from the root discovers first, or the lowest vertex
/// if the root does not reach the component. The vertices ascend. Time: O(V + E).
pub fn virtual_exits(graph: &FlowGraph) -> Vec<BlockId> {
    let components = Components::compute(&Adjacency::new(graph.vertex_count(), inner_edges(graph)));
    let mut is_left = vec![false; components.count()];
    is_left[components.of(graph.exit().index())] = true;
    for (a, b) in inner_edges(graph) {
        if components.of(a) != components.of(b) {
            is_left[components.of(a)] = true;
        }
    }
    let search = DepthFirst::compute(graph);
    let discovery = |v: BlockId| (search.number(v).unwrap_or(usize::MAX), v);
    let mut exits: Vec<BlockId> = (0..components.count())
        .filter(|&c| !is_left[c])
        .filter_map(|c| {
            let members = components.members(c).iter();
            members
                .map(|&v| BlockId::new(v as usize))
                .min_by_key(|&v| discovery(v))
        })
        .collect();
    exits.sort_unstable();
    exits
}
