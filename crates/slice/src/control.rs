//! Finds the decisions made when control goes from one block of an activation to the next.

use std::rc::Rc;

use afterimage_graph::PostDominatorTree;
use afterimage_ids::BlockId;
use afterimage_program::{BlockKind, Cfg};
use rustc_hash::FxHashMap;

/// The decisions made when control takes one edge.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    /// The vertex that the edge leaves.
    pub from: BlockId,
    /// Whether the vertex only dispatches an exception to its handler and executes nothing.
    pub dispatches: bool,
    /// The vertices that depend on the edge, ascending.
    pub decided: Box<[BlockId]>,
}

/// The decisions made when control goes from one block to another, from the last edge to the first.
/// There are several edges only where an exception chooses its handler.
pub(crate) type Decisions = Rc<[Decision]>;

/// The control dependences of a function, computed on demand.
///
/// A block depends on an edge if it post-dominates the edge's target and does not strictly
/// post-dominate its source (Ferrante, Ottenstein and Warren 1987).
pub(crate) struct FunctionControl {
    post_dominators: PostDominatorTree,
    /// For each vertex, whether it depends on an edge.
    conditional: Vec<bool>,
    known: FxHashMap<(BlockId, BlockId), Decisions>,
    handlers: FxHashMap<BlockId, Rc<[BlockId]>>,
}

impl FunctionControl {
    /// Computes the dependences in O(vertices × log vertices + dependences).
    pub fn new(cfg: &Cfg) -> Self {
        let post_dominators = PostDominatorTree::compute(&cfg.graph);
        let mut conditional = vec![false; cfg.graph.vertex_count()];
        for from in cfg.graph.vertices() {
            let stop = post_dominators.immediate_post_dominator(from);
            for to in cfg.graph.successors(from) {
                let mut v = Some(to);
                while v != stop
                    && let Some(vertex) = v
                {
                    conditional[vertex.as_u32() as usize] = true;
                    v = post_dominators.immediate_post_dominator(vertex);
                }
            }
        }
        Self {
            post_dominators,
            conditional,
            known: FxHashMap::default(),
            handlers: FxHashMap::default(),
        }
    }

    /// Whether a block depends on an edge of its function. If not, it depends on the activation's
    /// call.
    pub fn is_conditional(&self, block: BlockId) -> bool {
        self.conditional
            .get(block.as_u32() as usize)
            .is_some_and(|&conditional| conditional)
    }

    /// Whether the exit from a block may decide something.
    pub fn forks(&self, cfg: &Cfg, block: BlockId) -> bool {
        let after = self.post_dominators.immediate_post_dominator(block);
        let mut next = cfg.graph.successors(block);
        next.any(|next| Some(next) != after || is_dispatch(cfg, next))
    }

    /// Returns the decisions made when control goes from one block to another.
    pub fn decisions(&mut self, cfg: &Cfg, from: BlockId, to: BlockId) -> Decisions {
        if let Some(known) = self.known.get(&(from, to)) {
            return Rc::clone(known);
        }
        let mut found = Vec::new();
        let way = way(cfg, from, to);
        for pair in way.windows(2).rev() {
            found.push(Decision {
                from: pair[0],
                dispatches: is_dispatch(cfg, pair[0]),
                decided: self.decided(pair[0], pair[1]),
            });
        }
        let found: Decisions = found.into();
        self.known.insert((from, to), Rc::clone(&found));
        found
    }

    /// Returns the vertices that may depend on an exception that this block handles. They depend on
    /// the edges from the dispatch to the block. If the dispatch also depends on these vertices,
    /// they depend on the edges to the dispatch instead.
    pub fn handled(&mut self, cfg: &Cfg, handler: BlockId) -> Rc<[BlockId]> {
        if let Some(known) = self.handlers.get(&handler) {
            return Rc::clone(known);
        }
        let mut all = Vec::new();
        let mut seen = Vec::new();
        let mut work = vec![handler];
        while let Some(to) = work.pop() {
            for from in cfg.graph.predecessors(to) {
                let dispatches = is_dispatch(cfg, from);
                if (dispatches || to != handler) && !seen.contains(&(from, to)) {
                    seen.push((from, to));
                    all.extend(self.decided(from, to));
                    if dispatches {
                        work.push(from);
                    }
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        let all: Rc<[BlockId]> = all.into();
        self.handlers.insert(handler, Rc::clone(&all));
        all
    }

    fn decided(&self, from: BlockId, to: BlockId) -> Box<[BlockId]> {
        let stop = self.post_dominators.immediate_post_dominator(from);
        let up = |&v: &BlockId| self.post_dominators.immediate_post_dominator(v);
        let chain = std::iter::successors(Some(to), up);
        let mut decided = Vec::from_iter(chain.take_while(|&v| Some(v) != stop));
        decided.sort_unstable();
        decided.into()
    }
}

fn is_dispatch(cfg: &Cfg, v: BlockId) -> bool {
    let block = cfg.blocks.get(v);
    block.is_some_and(|block| matches!(block.kind, BlockKind::Dispatch(_)))
}

/// Returns the vertices on a path from one block to another, through vertices that execute nothing.
/// Returns only the two blocks if there is no such path.
fn way(cfg: &Cfg, from: BlockId, to: BlockId) -> Vec<BlockId> {
    let graph = &cfg.graph;
    if graph.successors(from).any(|next| next == to) {
        return vec![from, to];
    }
    let mut before: FxHashMap<BlockId, BlockId> = FxHashMap::default();
    let mut work = vec![from];
    while let Some(v) = work.pop() {
        for next in graph.successors(v) {
            if next == to {
                let mut way = vec![to, v];
                let mut v = v;
                while let Some(&earlier) = before.get(&v)
                    && v != from
                {
                    way.push(earlier);
                    v = earlier;
                }
                way.reverse();
                return way;
            }
            if is_dispatch(cfg, next) && next != from && !before.contains_key(&next) {
                before.insert(next, v);
                work.push(next);
            }
        }
    }
    vec![from, to]
}
