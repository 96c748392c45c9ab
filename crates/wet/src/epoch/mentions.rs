//! Which inputs and copies of an epoch name a write: the way from definitions to uses.

use std::collections::HashMap;

use afterimage_ids::NodeId;
use rustc_hash::FxBuildHasher;

use super::read::Reader;
use super::{Epoch, EpochError, LABELS, slot_of_copy, slot_of_input};
use crate::def::Origin;

/// What is named: a write, whatever execution of it, or the host, whatever call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// The host.
    Host,
    /// A write of a node.
    Write {
        /// The node.
        node: NodeId,
        /// Which of its writes.
        write: u32,
    },
}

impl Target {
    /// What an origin names. `None` for what was there before the run.
    pub(crate) fn of(origin: Origin) -> Option<Self> {
        match origin {
            Origin::Initial | Origin::Before => None,
            Origin::Host => Some(Self::Host),
            Origin::Write { node, write, .. } => Some(Self::Write { node, write }),
        }
    }

    /// Whether an origin names it.
    pub(crate) fn names(self, origin: Origin) -> bool {
        Self::of(origin) == Some(self)
    }
}

/// What is told of where something comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Mention {
    /// Of an input of a node.
    Input(NodeId, usize),
    /// Of a write of a node that copies.
    Copy(NodeId, usize),
}

impl Mention {
    /// The node.
    pub(crate) fn node(self) -> NodeId {
        match self {
            Self::Input(node, _) | Self::Copy(node, _) => node,
        }
    }
}

/// What names each write.
pub(crate) type Mentions = HashMap<Target, Vec<Mention>, FxBuildHasher>;

impl Epoch {
    /// What names each write, in the order of nodes. O(entries and patterns); of streams only those in front of a copy's origins are
    /// passed over, none is decoded.
    ///
    /// # Errors
    /// If it is damaged.
    pub(crate) fn mentions(&self) -> Result<Mentions, EpochError> {
        let mut mentions = Mentions::default();
        for &((node, slot), (start, end)) in &self.entries {
            let mut reader = Reader {
                all: &self.bytes[..end as usize],
                at: start as usize,
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

/// Where a read comes from, all that occurs.
fn of_input(reader: &mut Reader<'_>) -> Result<Vec<Origin>, EpochError> {
    if reader.byte()? & LABELS == 0 {
        return Ok(Vec::new());
    }
    // How many labels there are, and of which execution the first one is.
    reader.number()?;
    reader.number()?;
    let patterns = reader.patterns()?;
    let pieces = patterns.iter().flatten();
    Ok(pieces.map(|piece| piece.origin).collect())
}

/// Where what is copied comes from, all that occurs.
fn of_copy(reader: &mut Reader<'_>) -> Result<Vec<Origin>, EpochError> {
    // How many copies there are, and how many runs; then the streams of both and of the runs' lengths and elements.
    reader.number()?;
    reader.number()?;
    for _ in 0..4 {
        reader.coded()?;
    }
    let count = reader.count()?;
    (0..count).map(|_| reader.origin()).collect()
}
