//! Where each pair of neighbours occurs.

use super::arena::{Arena, Code, NodeId};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// A hash table of the nodes with which pairs begin. The pairs themselves are read from the nodes, so an entry is 4 bytes; an entry
/// must be removed before its pair changes.
#[derive(Clone, Debug, Default)]
pub(super) struct DigramIndex {
    table: HashTable<NodeId>,
}

impl DigramIndex {
    /// The occurrence of `digram` that is known; if none is, `node` is from now on.
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

    /// Removes `node` if it is the known occurrence of its `digram`.
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
