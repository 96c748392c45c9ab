//! Caches data about the most recently used segments, while there is room.

use std::sync::Arc;

/// Data about the most recently used segments.
pub(crate) struct Recent<T> {
    kept: Vec<Option<Kept<T>>>,
    /// The total size of the data in bytes.
    bytes: usize,
    /// The size limit. At least one entry is kept.
    room: usize,
    /// The number of uses so far.
    uses: u64,
}

struct Kept<T> {
    what: Arc<T>,
    bytes: usize,
    /// The number of the last use.
    used: u64,
}

impl<T> Recent<T> {
    /// Creates an empty cache.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            kept: Vec::new(),
            bytes: 0,
            room,
            uses: 0,
        }
    }

    /// Returns the data about a segment, if cached. Time: O(1).
    pub(crate) fn get(&mut self, segment: usize) -> Option<Arc<T>> {
        let kept = self.kept.get_mut(segment)?.as_mut()?;
        self.uses += 1;
        kept.used = self.uses;
        Some(Arc::clone(&kept.what))
    }

    /// Adds data about a segment that is not in the cache. Time: linear in the number of segments
    /// for each entry that must be evicted.
    pub(crate) fn insert(&mut self, segment: usize, what: &Arc<T>, bytes: usize) {
        while self.bytes.saturating_add(bytes) > self.room && self.drop_one() {}
        if segment >= self.kept.len() {
            self.kept.resize_with(segment + 1, || None);
        }
        self.uses += 1;
        let kept = Kept {
            what: Arc::clone(what),
            bytes,
            used: self.uses,
        };
        if let Some(before) = self.kept[segment].replace(kept) {
            self.bytes -= before.bytes;
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Evicts the least recently used entry. Returns `false` if the cache was empty.
    fn drop_one(&mut self) -> bool {
        let kept = self.kept.iter_mut().filter(|kept| kept.is_some());
        let oldest = kept.min_by_key(|kept| kept.as_ref().map(|kept| kept.used));
        match oldest.and_then(Option::take) {
            Some(kept) => {
                self.bytes -= kept.bytes;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut recent = Recent::new(10);
        let kept = |recent: &Recent<usize>| -> Vec<usize> {
            let all = recent.kept.iter().flatten();
            all.map(|kept| *kept.what).collect()
        };
        for segment in [4, 0, 2] {
            recent.insert(segment, &Arc::new(segment), 3);
        }
        assert_eq!(kept(&recent), [0, 2, 4]);
        assert_eq!(recent.get(4).as_deref(), Some(&4));
        assert_eq!(recent.get(3), None);
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
