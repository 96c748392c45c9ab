//! Finds functions on which the engine's optimiser takes time quadratic in their size.
//!
//! Some of the engine's passes walk up the dominator tree from each instruction:
//! `depth_of_block_in_gvn_map` in Cranelift's `EgraphPass`, and `dominates` in regalloc2. They take
//! time proportional to operators times depth. Functions of real programs have shallow dominator
//! trees, and stay far below the limit defined here. In a function of 50,000 consecutive branches,
//! however, each branch dominates all later branches. The rewriter takes other measures for large
//! functions; see `hinges` and `carry` in `crates/rewrite`.

use afterimage_graph::DominatorTree;
use afterimage_ids::EntityRef;
use afterimage_program::{Cfg, Program};
use afterimage_rewrite::Large;

/// The limit on a function's operators times their depths. Programs with a function above the limit
/// are not optimised. Optimising a function at the limit takes about half a second.
const MOST: u64 = 100_000_000;

/// Functions with more blocks than this get hinges, even if they are not deep.
const BROAD: usize = 20_000;

/// The treatment of a program's large functions, which is the same in every execution.
pub(crate) struct Treatment {
    pub large: Large,
    /// Whether to optimise. The engine optimises all functions or none, so one function that is too
    /// deep turns this off.
    pub optimised: bool,
}

impl Treatment {
    /// Determines the treatment for a program. Time: O(blocks × log blocks) for each large
    /// function.
    pub(crate) fn of(program: &Program) -> Self {
        let mut found = Self {
            large: Large::default(),
            optimised: true,
        };
        for function in &program.functions {
            let blocks = function.cfg.blocks.len();
            // The depth of the tree is at most its number of blocks.
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

/// Sums the operators of all reachable blocks, each times its block's depth in the dominator tree.
fn cost(cfg: &Cfg) -> u64 {
    let tree = DominatorTree::compute(&cfg.graph);
    let blocks = cfg.blocks.keys().filter(|&block| tree.is_reachable(block));
    let mut blocks = Vec::from_iter(blocks.map(|block| (tree.preorder_interval(block), block)));
    blocks.sort_unstable();
    // For each block that dominates the current block, the last preorder number in its subtree.
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
