//! Defines a sink that discards its paths.

use afterimage_ids::{FuncId, NodeId};

use super::{ExecutedPath, Sink};

/// Receives paths and ignores them.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl Sink for NullSink {
    fn define(&mut self, _: ExecutedPath<'_>) -> NodeId {
        NodeId::from_u32(0)
    }

    fn path(&mut self, _: NodeId) {}

    fn enter(&mut self, _: FuncId) {}

    fn leave(&mut self) {}
}
