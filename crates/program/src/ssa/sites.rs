//! Finds the blocks in which variables get new values, and thus the places of φs.
//!
//! A variable's *sites* are the blocks that write it and their iterated dominance frontier (Cytron
//! et al. 1991, "Efficiently computing static single assignment form", section 4). A variable's
//! value at the end of a block is its value at the nearest site that dominates the block. A
//! variable's sites are computed at the first query about it.

use std::collections::HashMap;

use afterimage_graph::{DominatorTree, FlowGraph};
use afterimage_ids::{BlockId, EntityRef};

use super::build::{Variable, Walked};

/// The sites of all variables.
pub(super) struct Sites {
    pub(super) dominators: DominatorTree,
    /// The dominance frontier of each block.
    frontiers: Vec<Vec<BlockId>>,
    /// The blocks that write a variable, ascending by variable.
    writes: Vec<(Variable, BlockId)>,
    /// The blocks at whose start a variable has a new value because edges move it there.
    moves: Vec<(Variable, BlockId)>,
    known: HashMap<Variable, VariableSites>,
}

/// The sites of one variable.
struct VariableSites {
    /// The blocks that may begin with a φ, ascending. These blocks and the blocks that write the
    /// variable are all its sites.
    phis: Vec<BlockId>,
    /// Ascending preorder numbers in the dominator tree, each with the nearest dominating site from
    /// that number on.
    nearest: Vec<(u32, Option<BlockId>)>,
}

impl Sites {
    pub(super) fn new(walked: &Walked<'_>) -> Self {
        let graph = &walked.cfg.graph;
        let dominators = DominatorTree::compute(graph);
        let frontiers = frontiers(graph, &dominators);
        let blocks = walked.writes.iter();
        let mut writes: Vec<_> = blocks
            .flat_map(|(block, writes)| writes.iter().map(move |(variable, _)| (*variable, block)))
            .collect();
        let mut moves: Vec<_> = walked
            .carried
            .iter()
            .flat_map(|(&edge, carried)| {
                let slots = carried.base..carried.base + carried.count;
                slots.map(move |slot| (walked.locals + slot, graph.to(edge)))
            })
            .collect();
        writes.sort_unstable();
        moves.sort_unstable();
        Self {
            dominators,
            frontiers,
            writes,
            moves,
            known: HashMap::new(),
        }
    }

    /// Whether a φ for a variable may be at the start of a block.
    pub(super) fn is_phi(&mut self, block: BlockId, variable: Variable) -> bool {
        self.of(variable).phis.binary_search(&block).is_ok()
    }

    /// Returns the nearest site of a variable that dominates a block or is the block itself.
    /// Returns the root if there is no other site.
    pub(super) fn nearest(&mut self, block: BlockId, variable: Variable) -> Option<BlockId> {
        let (number, _) = self.dominators.preorder_interval(block);
        let nearest = &self.of(variable).nearest;
        let after = nearest.partition_point(|(from, _)| *from <= number);
        nearest[..after].last().and_then(|(_, site)| *site)
    }

    fn of(&mut self, variable: Variable) -> &VariableSites {
        // The map is looked up twice, because the borrow checker does not see that an early return
        // ends the first borrow.
        if !self.known.contains_key(&variable) {
            let sites = self.find(variable);
            self.known.insert(variable, sites);
        }
        &self.known[&variable]
    }

    fn find(&self, variable: Variable) -> VariableSites {
        let of = |list: &[(Variable, BlockId)]| {
            let start = list.partition_point(|(v, _)| *v < variable);
            let count = list[start..].partition_point(|(v, _)| *v == variable);
            list[start..start + count]
                .iter()
                .map(|(_, block)| *block)
                .collect::<Vec<_>>()
        };
        let mut phis = of(&self.moves);
        phis.dedup();
        let mut sites = of(&self.writes);
        sites.extend(&phis);
        // At the root, every variable has a value.
        sites.push(BlockId::new(0));
        sites.sort_unstable();
        sites.dedup();

        let mut is_phi: std::collections::HashSet<BlockId> = phis.iter().copied().collect();
        let mut work = sites.clone();
        while let Some(site) = work.pop() {
            for &join in &self.frontiers[site.index()] {
                if is_phi.insert(join) {
                    phis.push(join);
                    work.push(join);
                }
            }
        }
        phis.sort_unstable();
        sites.extend(&phis);
        VariableSites {
            nearest: self.nearest_of(sites),
            phis,
        }
    }

    /// Sweeps the dominator tree in preorder, with a stack of the sites above the current block.
    fn nearest_of(&self, mut sites: Vec<BlockId>) -> Vec<(u32, Option<BlockId>)> {
        let interval = |site: BlockId| self.dominators.preorder_interval(site);
        sites.sort_unstable_by_key(|site| interval(*site).0);
        sites.dedup();
        let mut nearest = Vec::with_capacity(2 * sites.len());
        let mut under: Vec<BlockId> = Vec::new();
        let close = |under: &mut Vec<BlockId>, nearest: &mut Vec<_>, upto: u32| {
            while let Some(done) = under.pop_if(|site| interval(*site).1 < upto) {
                nearest.push((interval(done).1 + 1, under.last().copied()));
            }
        };
        for site in sites {
            let (first, _) = interval(site);
            close(&mut under, &mut nearest, first);
            nearest.push((first, Some(site)));
            under.push(site);
        }
        close(&mut under, &mut nearest, u32::MAX);
        nearest
    }
}

/// Computes the dominance frontiers (Cooper, Harvey and Kennedy 2001, "A simple, fast dominance
/// algorithm", figure 5). Takes linear time in the size of the frontiers, which is about blocks ×
/// depth of loops.
fn frontiers(graph: &FlowGraph, dominators: &DominatorTree) -> Vec<Vec<BlockId>> {
    let mut frontiers = vec![Vec::new(); graph.vertex_count()];
    for join in graph.vertices().filter(|&v| graph.in_edges(v).len() > 1) {
        let above = dominators.immediate_dominator(join);
        for block in graph.predecessors(join) {
            let mut runner = Some(block);
            while let Some(v) = runner.filter(|_| runner != above) {
                let frontier: &mut Vec<BlockId> = &mut frontiers[v.index()];
                // Another edge into the join has already passed this block and continued.
                if frontier.last() == Some(&join) {
                    break;
                }
                frontier.push(join);
                runner = dominators.immediate_dominator(v);
            }
        }
    }
    frontiers
}
