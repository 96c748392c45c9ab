//! A bounded cache of data read from checkpoints.

use crate::locked;
use std::fmt::{Debug, Formatter, Result as FmtResult};
use std::hash::Hash;
use std::sync::Arc;
use std::sync::Mutex;

use quick_cache::Weighter;
use quick_cache::unsync::{self, DefaultLifecycle};
use rustc_hash::FxBuildHasher;

/// Data with a size in memory.
pub(super) trait Room {
    /// Returns the approximate size in bytes, at least half of the exact size.
    fn bytes(&self) -> usize;
}

/// A cache that keeps entries that are used repeatedly. A scan of more data than fits does not
/// evict all entries.
pub(super) struct Cache<K, V>(Mutex<unsync::Cache<K, Arc<V>, Bytes, FxBuildHasher>>);

/// Weighs entries in bytes. An entry that is larger than `most` counts as `most`, so that it fits
/// into the cache.
struct Bytes {
    most: u64,
}

impl<K, V: Room> Weighter<K, Arc<V>> for Bytes {
    fn weight(&self, _: &K, value: &Arc<V>) -> u64 {
        self.most.min((value.bytes() + OWN) as u64)
    }
}

/// The overhead in bytes per entry.
const OWN: usize = 128;

impl<K: Eq + Hash, V: Room> Cache<K, V> {
    /// Creates an empty cache with a limit in bytes, for entries of about `each` bytes.
    pub fn new(room: usize, each: usize) -> Self {
        let most = room as u64 / 10 * 9;
        Self(Mutex::new(unsync::Cache::with(
            room / each,
            room as u64,
            Bytes { most },
            FxBuildHasher,
            DefaultLifecycle::default(),
        )))
    }

    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        locked(&self.0).get(key).cloned()
    }

    /// Adds an entry, and evicts other entries if necessary.
    pub fn keep(&self, key: K, value: &Arc<V>) {
        locked(&self.0).insert(key, Arc::clone(value));
    }

    /// Returns the number of bytes used.
    #[cfg(test)]
    pub fn bytes(&self) -> u64 {
        locked(&self.0).weight()
    }
}

impl<K, V> Debug for Cache<K, V> {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use afterimage_testkit::modules::SplitMix64;

    use super::{Arc, Cache, Room};

    struct Large(u64, usize);

    impl Room for Large {
        fn bytes(&self) -> usize {
            self.1
        }
    }

    const ROOM: usize = 1 << 20;

    #[test]
    fn what_is_kept_has_room_and_is_what_was_given() {
        let mut random = SplitMix64(1);
        let cache = Cache::new(ROOM, 1 << 12);
        let mut found = 0;
        for _ in 0..20_000 {
            let key = random.below(1000) as u64;
            match cache.get(&key) {
                Some(known) => {
                    let Large(of, _) = *known;
                    assert_eq!(of, key);
                    found += 1;
                }
                None => {
                    let bytes = match random.below(50) {
                        0 => 2 * ROOM,
                        _ => random.below(1 << 13),
                    };
                    cache.keep(key, &Arc::new(Large(key, bytes)));
                }
            }
            assert!(cache.bytes() <= ROOM as u64);
        }
        assert!(found > 1000, "{found} were found");
    }

    /// An entry that is requested many times in succession stays in the cache.
    #[test]
    fn what_is_larger_than_the_room_is_kept() {
        let cache = Cache::new(ROOM, 1 << 12);
        for key in 0..100 {
            cache.keep(key, &Arc::new(Large(key, 3 * ROOM)));
            assert!(cache.get(&key).is_some_and(|known| known.0 == key));
        }
        assert!(cache.bytes() <= ROOM as u64);
    }

    /// A backward walk through a run reads the same data again and again. Even if this data exceeds
    /// the limit, part of it stays in the cache.
    #[test]
    fn going_over_twice_the_room_finds_a_part_each_time() {
        let cache = Cache::new(ROOM, 1 << 12);
        let all = 2 * (ROOM >> 12) as u64;
        let mut found = 0;
        for time in 0..10 {
            found = 0;
            for key in 0..all {
                match cache.get(&key) {
                    Some(_) => found += 1,
                    None => cache.keep(key, &Arc::new(Large(key, 1 << 12))),
                }
            }
            assert!(time > 0 || found == 0);
        }
        assert!(found > all / 4, "{found} of {all} were found");
    }
}
