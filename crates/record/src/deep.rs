//! Functions for which the engine's optimiser takes the square of their size.
//!
//! Some of the engine's passes go up the dominator tree from instructions: `depth_of_block_in_gvn_map` in Cranelift's `EgraphPass`, `dominates` in regalloc2. That takes
//! operators times depth. Compiled code of people's programs is broad, and stays far below the limit here; in 50,000 branches in a row each
//! depends on the one before. What else such functions need is added when they are rewritten: see `hinges` and `carry` in `crates/rewrite`.

use afterimage_graph::DominatorTree;
use afterimage_ids::EntityRef;
use afterimage_program::{Cfg, Program};
use afterimage_rewrite::Large;

/// Operators times depth, beyond which a function is not optimised: about half a second.
const MOST: u64 = 100_000_000;

/// Blocks, from which on a function gets hinges, however broad it is.
const BROAD: usize = 20_000;

/// How large functions are treated, in each execution of a program alike.
pub(crate) struct Treatment {
    pub large: Large,
    /// Off if any function is too deep to be optimised: the engine optimises all or none.
    pub optimised: bool,
}

impl Treatment {
    /// O(blocks × log blocks of large functions).
    pub(crate) fn of(program: &Program) -> Self {
        let mut found = Self {
            large: Large::default(),
            optimised: true,
        };
        for function in &program.functions {
            let blocks = function.cfg.blocks.len();
            // No tree is deeper than it has blocks.
            let most = blocks as u64 * u64::from(function.operators);
            let deep = most > MOST && cost(&function.cfg) > MOST;
            found.optimised &= !deep;
            if deep || blocks > BROAD {
                found.large.hinged.push(function.id);
            }
        }
        found
    }
}

/// The sum of the operators of all blocks, each times its block's depth in the dominator tree.
fn cost(cfg: &Cfg) -> u64 {
    let tree = DominatorTree::compute(&cfg.graph);
    let blocks = cfg.blocks.keys().filter(|&block| tree.is_reachable(block));
    let mut blocks = Vec::from_iter(blocks.map(|block| (tree.preorder_interval(block), block)));
    blocks.sort_unstable();
    // The last numbers below the blocks on the way to the one at hand.
    let mut way: Vec<u32> = Vec::new();
    let mut cost = 0;
    for ((first, last), block) in blocks {
        while way.last().is_some_and(|&end| end < first) {
            way.pop();
        }
        let ops = &cfg.blocks[block].ops;
        let operators = ops.end.index().saturating_sub(ops.start.index());
        cost += operators as u64 * way.len() as u64;
        way.push(last);
    }
    cost
}
