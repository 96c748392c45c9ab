//! Nodes: the paths that were executed.

use afterimage_ids::{BlockId, FuncId};

/// A path that was executed: blocks of one activation, one after the other, with no call between them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Whose blocks these are.
    pub function: FuncId,
    /// The blocks, at least one; empty for a stretch that was left out by a filter.
    pub blocks: Box<[BlockId]>,
    /// How many blocks were left out; 0 for a path.
    pub left_out: u64,
}

impl Node {
    /// How many executed blocks it stands for: the time that passes.
    pub fn length(&self) -> u64 {
        self.blocks.len() as u64 + self.left_out
    }
}

/// What the builder has to know of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// How many executed blocks it stands for, at least 1.
    pub length: u64,
    /// The headers of the loops around its first block, the outermost first, as numbers that mean something
    /// within its function only.
    pub loops: Box<[u32]>,
    /// Its first block is the header of the last of these loops, so that an iteration begins with it.
    pub header: bool,
}
