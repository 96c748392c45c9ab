//! Defines the stored origins of bytes, which give the node and the write but not the execution.

use afterimage_ids::NodeId;

/// The origin of bytes, without the number of the node's execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The initial contents of memory or of a global.
    Initial,
    /// A write before the stretch that was built alone, or no write at all.
    Before,
    /// A write by the host.
    Host,
    /// A write by the guest.
    Write {
        /// The node that contains the write.
        node: NodeId,
        /// The number of the write in the node.
        write: u32,
        /// The position of the first byte in the written value, or 0 for data that is not a value.
        offset: u8,
    },
}

impl Origin {
    /// Returns the origin of the byte that lies `bytes` bytes further on in the same write.
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

/// A part of a load's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The number of bytes, at least 1.
    pub length: u8,
    /// The origin of the first byte.
    pub origin: Origin,
}
