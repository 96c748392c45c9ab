//! A cache that keeps the most recently used data while there is room.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The most recently used data, by key.
pub(crate) struct Recent<K, T> {
    kept: HashMap<K, Kept<T>, FxBuildHasher>,
    /// The keys, by the number of their last use.
    uses: BTreeMap<u64, K>,
    /// The total size of the data in bytes.
    bytes: usize,
    /// The size limit. At least one entry is kept.
    room: usize,
}

struct Kept<T> {
    what: Arc<T>,
    bytes: usize,
    /// The number of the last use.
    used: u64,
}

impl<K: Clone + Eq + Hash, T> Recent<K, T> {
    /// Creates an empty cache.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            kept: HashMap::default(),
            uses: BTreeMap::new(),
            bytes: 0,
            room,
        }
    }

    /// Returns the data of a key, if cached. Time: O(log n) in the number of entries.
    pub(crate) fn get(&mut self, key: &K) -> Option<Arc<T>> {
        let used = self.next_use();
        let kept = self.kept.get_mut(key)?;
        if let Some(key) = self.uses.remove(&kept.used) {
            self.uses.insert(used, key);
        }
        kept.used = used;
        Some(Arc::clone(&kept.what))
    }

    /// Adds the data of a key. Time: O(log n) in the number of entries, for each entry that it
    /// evicts.
    pub(crate) fn insert(&mut self, key: K, what: &Arc<T>, bytes: usize) {
        self.remove(&key);
        while self.bytes.saturating_add(bytes) > self.room
            && let Some((_, oldest)) = self.uses.pop_first()
        {
            self.remove(&oldest);
        }
        let used = self.next_use();
        let what = Arc::clone(what);
        self.uses.insert(used, key.clone());
        self.kept.insert(key, Kept { what, bytes, used });
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn remove(&mut self, key: &K) {
        if let Some(kept) = self.kept.remove(key) {
            self.uses.remove(&kept.used);
            self.bytes -= kept.bytes;
        }
    }

    /// Returns a number for a new use. It is larger than the numbers of all earlier uses.
    fn next_use(&self) -> u64 {
        self.uses.last_key_value().map_or(0, |(last, _)| last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut recent = Recent::new(10);
        let kept = |recent: &Recent<usize, usize>| -> Vec<usize> {
            let mut all: Vec<_> = recent.kept.values().map(|kept| *kept.what).collect();
            all.sort_unstable();
            all
        };
        for segment in [4, 0, 2] {
            recent.insert(segment, &Arc::new(segment), 3);
        }
        assert_eq!(kept(&recent), [0, 2, 4]);
        assert_eq!(recent.get(&4).as_deref(), Some(&4));
        assert_eq!(recent.get(&3), None);
        recent.insert(3, &Arc::new(3), 2);
        assert_eq!(kept(&recent), [2, 3, 4]);
        // This entry alone exceeds the limit.
        recent.insert(9, &Arc::new(9), 11);
        assert_eq!(kept(&recent), [9]);
        recent.insert(1, &Arc::new(1), 10);
        assert_eq!(kept(&recent), [1]);
        assert_eq!(recent.bytes, 10);
    }
}
