//! Derives the counts of blocks from the counts of edges, and checks the flow equations.

use afterimage_ids::{BlockId, EntityRef, FunctionCounts, SecondaryMap};
use afterimage_program::{BlockKind, Function};

use crate::ProfileError;

/// Counts the entries of each vertex of a function's graph.
///
/// The flow into a vertex must leave it or stay in it (Kirchhoff's law, Ball and Larus 1992,
/// section 2). The virtual edges of their Figure 4 represent the frames that are open at the end.
/// O(V + E).
///
/// # Errors
/// Returns an error if the counts have the wrong shape, break a flow equation or do not fit into 64
/// bits.
pub fn block_counts(
    function: &Function,
    counts: &FunctionCounts,
) -> Result<SecondaryMap<BlockId, u64>, ProfileError> {
    let (id, cfg) = (function.id, &function.cfg);
    if counts.edges.len() != cfg.edges.len() {
        return Err(ProfileError::Edges {
            function: id,
            expected: cfg.edges.len(),
            got: counts.edges.len(),
        });
    }
    let mut entered = SecondaryMap::<BlockId, u64>::with_capacity(cfg.blocks.len());
    let mut left = SecondaryMap::<BlockId, u64>::with_capacity(cfg.blocks.len());
    let add = |sum: &mut u64, count: u64| {
        *sum = sum
            .checked_add(count)
            .ok_or(ProfileError::Overflow { function: id })?;
        Ok(())
    };
    add(&mut entered[cfg.graph.root()], counts.entries)?;
    for (edge, ends) in cfg.edges.iter() {
        let count = counts.edges[edge.index()];
        add(&mut entered[ends.to], count)?;
        add(&mut left[ends.from], count)?;
    }
    for &(block, open) in &counts.open {
        if block.index() >= cfg.blocks.len() {
            return Err(ProfileError::OpenFrames {
                function: id,
                block,
                open,
                listed: 0,
            });
        }
        add(&mut left[block], open)?;
        add(&mut entered[cfg.graph.exit()], open)?;
    }
    add(&mut left[cfg.graph.exit()], counts.entries)?;
    for block in cfg.blocks.keys() {
        let (entered, left) = (entered[block], left[block]);
        if entered != left {
            return Err(ProfileError::Flow {
                function: id,
                block,
                entered,
                left,
            });
        }
    }
    Ok(entered)
}

/// Returns the number of basic blocks that a function executed. Dispatch vertices and EXIT are not
/// counted. Returns `None` if the sum does not fit into 64 bits.
pub fn executed_blocks(function: &Function, counts: &SecondaryMap<BlockId, u64>) -> Option<u64> {
    let code = function
        .cfg
        .blocks
        .iter()
        .filter(|(_, block)| block.kind == BlockKind::Code);
    code.map(|(block, _)| counts[block])
        .try_fold(0u64, u64::checked_add)
}
