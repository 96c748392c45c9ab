//! What was read of checkpoints and may be needed again, as long as there is room for it.

use crate::locked;
use std::fmt::{Debug, Formatter, Result as FmtResult};
use std::hash::Hash;
use std::sync::Arc;
use std::sync::Mutex;

use quick_cache::Weighter;
use quick_cache::unsync::{self, DefaultLifecycle};
use rustc_hash::FxBuildHasher;

/// What takes room in memory.
pub(super) trait Room {
    /// About how many bytes, and not fewer than half of them.
    fn bytes(&self) -> usize;
}

/// Things by keys, of which those stay that are asked for again: going over more than there is room for does not drive out everything.
pub(super) struct Cache<K, V>(Mutex<unsync::Cache<K, Arc<V>, Bytes, FxBuildHasher>>);

/// Counts bytes. What has no room even alone counts as something that just has, so that it is kept, alone.
struct Bytes {
    most: u64,
}

impl<K, V: Room> Weighter<K, Arc<V>> for Bytes {
    fn weight(&self, _: &K, value: &Arc<V>) -> u64 {
        self.most.min((value.bytes() + OWN) as u64)
    }
}

/// Bytes that each one takes besides.
const OWN: usize = 128;

impl<K: Eq + Hash, V: Room> Cache<K, V> {
    /// An empty one with room for so many bytes, of things of about so many each.
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

    /// Keeps it, and lets others go if there is no room for all.
    pub fn keep(&self, key: K, value: &Arc<V>) {
        locked(&self.0).insert(key, Arc::clone(value));
    }

    /// How many bytes are taken.
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

    /// It is asked for many times in a row.
    #[test]
    fn what_is_larger_than_the_room_is_kept() {
        let cache = Cache::new(ROOM, 1 << 12);
        for key in 0..100 {
            cache.keep(key, &Arc::new(Large(key, 3 * ROOM)));
            assert!(cache.get(&key).is_some_and(|known| known.0 == key));
        }
        assert!(cache.bytes() <= ROOM as u64);
    }

    /// Whoever goes back through a run goes over the same again and again; if that is too much, a part of it stays all the same.
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
