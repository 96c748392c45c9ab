//! Caches the parts of epochs that questions have opened.

use std::rc::Rc;
use std::sync::Arc;

use afterimage_ids::NodeId;
use rustc_hash::FxHashMap;
use self_cell::self_cell;

use super::Epochs;
use crate::epoch::{ColumnView, CopyView, Epoch};

type MaybeColumn<'e> = Option<ColumnView<'e>>;
type MaybeCopies<'e> = Option<CopyView<'e>>;

self_cell!(
    /// The data about a node's input, with the epoch that contains it.
    pub(super) struct Column {
        owner: Arc<Epoch>,
        #[covariant]
        dependent: MaybeColumn,
    }
);

self_cell!(
    /// The data about a node's copying write, with the epoch that contains it.
    pub(super) struct Copies {
        owner: Arc<Epoch>,
        #[covariant]
        dependent: MaybeCopies,
    }
);

impl Column {
    /// Returns the data, or `None` if nothing is stored.
    pub(super) fn view(&self) -> Option<&ColumnView<'_>> {
        self.borrow_dependent().as_ref()
    }
}

impl Copies {
    /// Returns the data, or `None` if nothing is stored.
    pub(super) fn view(&self) -> Option<&CopyView<'_>> {
        self.borrow_dependent().as_ref()
    }
}

/// The maximum number of parts kept open.
const MOST: usize = 1 << 16;

/// A node, and the number of its input or copying write.
pub(super) type Key = (NodeId, usize);

/// Open parts, by epoch. When an epoch is dropped from memory, its parts are closed, because they
/// would keep the epoch in memory.
#[derive(Default)]
pub(super) struct Views {
    columns: FxHashMap<usize, FxHashMap<Key, Rc<Column>>>,
    copies: FxHashMap<usize, FxHashMap<Key, Rc<Copies>>>,
    count: usize,
    /// The number of dropped epochs whose parts have been closed.
    dropped: u64,
}

impl Views {
    pub(super) fn column(&self, position: usize, key: Key) -> Option<Rc<Column>> {
        self.columns.get(&position)?.get(&key).map(Rc::clone)
    }

    pub(super) fn copies(&self, position: usize, key: Key) -> Option<Rc<Copies>> {
        self.copies.get(&position)?.get(&key).map(Rc::clone)
    }

    pub(super) fn put_column(&mut self, position: usize, key: Key, column: Rc<Column>) {
        self.columns
            .entry(position)
            .or_default()
            .insert(key, column);
        self.count += 1;
    }

    pub(super) fn put_copies(&mut self, position: usize, key: Key, copies: Rc<Copies>) {
        self.copies.entry(position).or_default().insert(key, copies);
        self.count += 1;
    }

    /// Makes room for one more part.
    pub(super) fn close(&mut self, epochs: &impl Epochs) {
        let dropped = epochs.dropped();
        if dropped != self.dropped {
            self.dropped = dropped;
            self.columns.retain(|&position, _| epochs.has(position));
            self.copies.retain(|&position, _| epochs.has(position));
            let columns = self.columns.values().map(FxHashMap::len);
            self.count = columns
                .chain(self.copies.values().map(FxHashMap::len))
                .sum();
        }
        if self.count >= MOST {
            self.columns.clear();
            self.copies.clear();
            self.count = 0;
        }
    }
}
