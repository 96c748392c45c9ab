//! Keeps the most recently used epochs in memory, up to a number of bytes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::build::LastWriters;
use crate::epoch::Epoch;

/// The default limit on the bytes of epochs in memory, with their last writers.
const MOST_BYTES: usize = 256 << 20;

/// An epoch in memory.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// The epoch, in coded form with its directory.
    pub epoch: Arc<Epoch>,
    /// The last writers in the epoch, if it was built on demand.
    pub writers: Option<Arc<LastWriters>>,
}

impl Loaded {
    fn bytes(&self) -> usize {
        let writers = self.writers.as_ref().map_or(0, |writers| writers.bytes());
        self.epoch.bytes_in_memory() + writers
    }
}

/// The most recently used epochs. Together, they take at most [`most`](Self::keep) bytes. The epoch
/// used last always stays, even if it is larger.
#[derive(Debug)]
pub(crate) struct Recent {
    /// The epochs by position, with the size in bytes and the moment of the last use.
    epochs: HashMap<usize, (Loaded, usize, u64)>,
    bytes: usize,
    most: usize,
    uses: u64,
    dropped: u64,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            epochs: HashMap::new(),
            bytes: 0,
            most: MOST_BYTES,
            uses: 0,
            dropped: 0,
        }
    }
}

impl Recent {
    /// Changes the limit.
    pub(crate) fn keep(&mut self, most: usize) {
        self.most = most;
        self.drop_oldest();
    }

    /// Whether an epoch is in memory.
    pub(crate) fn has(&self, position: usize) -> bool {
        self.epochs.contains_key(&position)
    }

    /// Returns the number of epochs dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns an epoch by its position, and counts this as a use.
    pub(crate) fn get(&mut self, position: usize) -> Option<Loaded> {
        let (loaded, _, used) = self.epochs.get_mut(&position)?;
        self.uses += 1;
        *used = self.uses;
        Some(loaded.clone())
    }

    /// Adds an epoch, and drops the least recently used epochs if there are too many bytes. Returns
    /// the epoch in memory, which another thread may have added first.
    pub(crate) fn put(&mut self, position: usize, loaded: Loaded) -> Loaded {
        if let Some(known) = self.get(position) {
            return known;
        }
        let bytes = loaded.bytes();
        self.uses += 1;
        self.bytes += bytes;
        let entry = (loaded.clone(), bytes, self.uses);
        self.epochs.insert(position, entry);
        self.drop_oldest();
        loaded
    }

    /// Drops the least recently used epochs. Takes O(epochs) for each, but loading an epoch takes
    /// far longer.
    fn drop_oldest(&mut self) {
        while self.bytes > self.most && self.epochs.len() > 1 {
            let oldest = self.epochs.iter().min_by_key(|(_, (_, _, used))| *used);
            let Some((&position, &(_, bytes, _))) = oldest else {
                return;
            };
            self.epochs.remove(&position);
            self.bytes -= bytes;
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Loaded, Recent};
    use crate::epoch::Epoch;

    fn empty() -> Loaded {
        let epoch = Epoch::open(vec![0]).unwrap();
        Loaded {
            epoch: epoch.into(),
            writers: None,
        }
    }

    #[test]
    fn the_epoch_used_longest_ago_is_dropped() {
        let mut recent = Recent::default();
        recent.keep(2 * empty().bytes());
        recent.put(7, empty());
        recent.put(3, empty());
        assert!(recent.get(7).is_some());
        recent.put(5, empty());
        assert_eq!([3, 5, 7].map(|at| recent.has(at)), [false, true, true]);
        assert_eq!(recent.dropped(), 1);
        recent.keep(0);
        assert_eq!([3, 5, 7].map(|at| recent.has(at)), [false, true, false]);
        assert_eq!(recent.bytes, empty().bytes());
    }

    #[test]
    fn an_epoch_that_another_thread_added_is_kept() {
        let mut recent = Recent::default();
        let first = recent.put(1, empty());
        let second = recent.put(1, empty());
        assert!(std::sync::Arc::ptr_eq(&first.epoch, &second.epoch));
        assert_eq!(recent.bytes, empty().bytes());
    }
}
