//! Implements a sink that only counts.

use afterimage_ids::{BlockId, FuncId, NodeId};
use afterimage_paths::witness::PathSink;
use afterimage_paths::{ExecutedPath, Sink};

/// Receives paths or blocks, and only counts them.
#[derive(Default)]
pub(crate) struct Tally {
    nodes: u32,
    pub paths: u64,
    /// The number of blocks; 0 if the sink receives paths.
    pub blocks: u64,
}

impl Sink for Tally {
    fn define(&mut self, _: ExecutedPath<'_>) -> NodeId {
        self.nodes += 1;
        NodeId::from_u32(self.nodes - 1)
    }

    fn path(&mut self, _: NodeId) {
        self.paths += 1;
    }

    fn enter(&mut self, _: FuncId) {}

    fn leave(&mut self) {}
}

impl PathSink for Tally {
    fn enter(&mut self, _: FuncId) {}

    fn blocks(&mut self, blocks: &[BlockId]) {
        self.blocks += blocks.len() as u64;
    }

    fn leave(&mut self) {}
}
