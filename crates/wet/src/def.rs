//! Definitions as they are stored: which write of which node, without which execution.

use afterimage_ids::NodeId;

/// Where bytes come from, but for which execution of the node it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// They are what the memory or global held before the run.
    Initial,
    /// Somebody wrote them before the stretch that was built alone, or nobody did.
    Before,
    /// The host wrote them.
    Host,
    /// A write of the guest.
    Write {
        /// The node.
        node: NodeId,
        /// Which of its writes.
        write: u32,
        /// The first of the bytes in the value that was written; 0 for what is no value.
        offset: u8,
    },
}

impl Origin {
    /// So many bytes further on in the same write.
    pub(crate) fn at(self, bytes: u64) -> Self {
        match self {
            Origin::Write {
                node,
                write,
                offset,
            } => Origin::Write {
                node,
                write,
                offset: offset.wrapping_add(bytes as u8),
            },
            other => other,
        }
    }
}

/// A part of what a load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// How many bytes, at least 1.
    pub length: u8,
    /// Where they come from.
    pub origin: Origin,
}
