//! Defines nodes, which are executed paths.

use afterimage_ids::{BlockId, FuncId};

/// An executed path, which consists of consecutive blocks of one activation without a call between
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The function of these blocks.
    pub function: FuncId,
    /// The blocks, at least one. They are empty for a stretch that a filter left out.
    pub blocks: Box<[BlockId]>,
    /// The number of blocks left out, or 0 for a path.
    pub left_out: u64,
}

impl Node {
    /// Returns the number of executed blocks that the node represents, which is the time that it
    /// takes.
    pub fn length(&self) -> u64 {
        self.blocks.len() as u64 + self.left_out
    }
}

/// The properties of a node that the builder needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The number of executed blocks that the node represents, at least 1.
    pub length: u64,
    /// The headers of the loops around its first block, outermost first. Their numbers are
    /// meaningful only within its function.
    pub loops: Box<[u32]>,
    /// Whether its first block is the header of the last of these loops. If so, an iteration begins
    /// with it.
    pub header: bool,
}
