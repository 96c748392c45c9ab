//! Implements the index of known pairs of neighbours.

use super::arena::{Arena, Code, NodeId};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// A hash table of the known pairs, each represented by the node at which it begins. The pairs are
/// read from the nodes, so an entry takes 4 bytes. An entry must be removed before its pair
/// changes.
#[derive(Clone, Debug, Default)]
pub(super) struct DigramIndex {
    table: HashTable<NodeId>,
}

impl DigramIndex {
    /// Returns the known occurrence of `digram`. If there is none, `node` becomes the known
    /// occurrence.
    pub(super) fn find_or_insert(
        &mut self,
        digram: (Code, Code),
        node: NodeId,
        arena: &Arena,
    ) -> Option<NodeId> {
        let entry = self.table.entry(
            hash(digram),
            |&other| digram_at(arena, other) == digram,
            |&other| hash(digram_at(arena, other)),
        );
        match entry {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(vacant) => {
                vacant.insert(node);
                None
            }
        }
    }

    /// Removes `node` if it is the known occurrence of `digram`.
    pub(super) fn remove(&mut self, digram: (Code, Code), node: NodeId) {
        if let Ok(known) = self.table.find_entry(hash(digram), |&other| other == node) {
            known.remove();
        }
    }
}

fn digram_at(arena: &Arena, node: NodeId) -> (Code, Code) {
    (arena.code(node), arena.code(arena.next(node)))
}

fn hash((first, second): (Code, Code)) -> u64 {
    FxBuildHasher.hash_one(u64::from(first.0) << 32 | u64::from(second.0))
}
