//! Finds the blocks that end in a call.

use afterimage_ids::BlockId;
use afterimage_program::{BlockEnd, Callee, Cfg};

/// Returns the blocks of a function that end in a call or a tail call, with the callee.
pub(crate) fn call_blocks(cfg: &Cfg) -> impl Iterator<Item = (BlockId, Callee)> + '_ {
    cfg.blocks.iter().filter_map(|(v, block)| match block.end {
        BlockEnd::Call(callee) | BlockEnd::TailCall(callee) => Some((v, callee)),
        _ => None,
    })
}
