//! Indexes the inputs and copies of an epoch by the writes that they name.

use std::collections::HashMap;

use afterimage_ids::NodeId;
use rustc_hash::FxBuildHasher;

use super::read::Reader;
use super::{Epoch, EpochError, LABELS, slot_of_copy, slot_of_input};
use crate::def::Origin;

/// A write in any execution, or the host's writes in any call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// The host's writes.
    Host,
    /// A write of a node.
    Write {
        /// The node that contains the write.
        node: NodeId,
        /// The number of the write in the node.
        write: u32,
    },
}

impl Target {
    /// Returns the target that an origin names, or `None` for initial contents.
    pub(crate) fn of(origin: Origin) -> Option<Self> {
        match origin {
            Origin::Initial | Origin::Before => None,
            Origin::Host => Some(Self::Host),
            Origin::Write { node, write, .. } => Some(Self::Write { node, write }),
        }
    }

    /// Whether an origin names this target.
    pub(crate) fn names(self, origin: Origin) -> bool {
        Self::of(origin) == Some(self)
    }
}

/// An input or a copy whose data names a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Mention {
    /// An input of a node.
    Input(NodeId, usize),
    /// A copying write of a node.
    Copy(NodeId, usize),
}

impl Mention {
    /// Returns the node of the input or the copy.
    pub(crate) fn node(self) -> NodeId {
        match self {
            Self::Input(node, _) | Self::Copy(node, _) => node,
        }
    }
}

/// The mentions of each write.
pub(crate) type Mentions = HashMap<Target, Vec<Mention>, FxBuildHasher>;

impl Epoch {
    /// Returns the mentions of each write, in the order of nodes. Time: O(entries and patterns).
    /// Decodes no stream.
    ///
    /// # Errors
    /// Returns an error if the epoch is damaged.
    pub(crate) fn mentions(&self) -> Result<Mentions, EpochError> {
        let mut mentions = Mentions::default();
        for &((node, slot), (start, end)) in &self.entries {
            let mut reader = Reader {
                all: &self.bytes[..end as usize],
                at: start as usize,
                epoch: self.number,
            };
            let node = NodeId::from_u32(node);
            let half = slot as usize / 2;
            let (place, origins) = if slot == slot_of_copy(half) {
                (Mention::Copy(node, half), of_copy(&mut reader)?)
            } else {
                debug_assert_eq!(slot, slot_of_input(half));
                (Mention::Input(node, half), of_input(&mut reader)?)
            };
            for target in origins.into_iter().filter_map(Target::of) {
                let places = mentions.entry(target).or_default();
                if places.last() != Some(&place) {
                    places.push(place);
                }
            }
        }
        Ok(mentions)
    }
}

/// Returns all origins that occur in a read.
fn of_input(reader: &mut Reader<'_>) -> Result<Vec<Origin>, EpochError> {
    if reader.byte()? & LABELS == 0 {
        return Ok(Vec::new());
    }
    // Skip the number of labels, and the execution of the first label.
    reader.number()?;
    reader.number()?;
    let patterns = reader.patterns()?;
    let pieces = patterns.iter().flatten();
    Ok(pieces.map(|piece| piece.origin).collect())
}

/// Returns all origins that occur in a copy.
fn of_copy(reader: &mut Reader<'_>) -> Result<Vec<Origin>, EpochError> {
    // Skip the numbers of copies and runs, and the streams before the origins.
    reader.number()?;
    reader.number()?;
    for _ in 0..4 {
        reader.coded()?;
    }
    let count = reader.count()?;
    (0..count).map(|_| reader.origin()).collect()
}
