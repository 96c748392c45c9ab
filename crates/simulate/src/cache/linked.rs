//! Sets with many lines, as in a fully associative cache. Lines are found by number and linked in
//! the order of their last use.

use rustc_hash::FxHashMap;

use super::Touch;

/// Marks the absence of an entry.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    line: u64,
    written: bool,
    /// The entries that were used just before and just after this entry.
    older: u32,
    newer: u32,
}

/// A set, given by the two ends of its chain.
#[derive(Clone, Copy, Debug)]
struct Set {
    newest: u32,
    oldest: u32,
    count: u64,
}

/// All sets of a level.
#[derive(Clone, Debug)]
pub(super) struct Linked {
    entries: Vec<Entry>,
    /// Maps a line to its entry. An attacker can choose colliding addresses to slow the map down,
    /// but the map never outgrows the cache.
    places: FxHashMap<u64, u32>,
    sets: Vec<Set>,
    ways: u64,
    mask: u64,
}

impl Linked {
    /// Creates `sets` empty sets. `sets` is a power of two.
    pub(super) fn new(sets: u64, ways: u64) -> Self {
        let empty = Set {
            newest: NONE,
            oldest: NONE,
            count: 0,
        };
        Self {
            entries: Vec::new(),
            places: FxHashMap::default(),
            sets: vec![empty; sets as usize],
            ways,
            mask: sets - 1,
        }
    }

    #[inline]
    pub(super) fn touch(&mut self, line: u64, write: bool) -> Touch {
        let number = (line & self.mask) as usize;
        if let Some(&place) = self.places.get(&line) {
            self.entries[place as usize].written |= write;
            if self.sets[number].newest != place {
                self.unlink(number, place);
                self.link(number, place);
            }
            return Touch::Hit;
        }
        let set = self.sets[number];
        let (place, touch) = if set.count < self.ways {
            self.sets[number].count += 1;
            self.entries.push(Entry {
                line,
                written: write,
                older: NONE,
                newer: NONE,
            });
            (self.entries.len() as u32 - 1, Touch::Filled)
        } else {
            self.unlink(number, set.oldest);
            let entry = &mut self.entries[set.oldest as usize];
            let old = *entry;
            (entry.line, entry.written) = (line, write);
            self.places.remove(&old.line);
            let touch = if old.written {
                Touch::WroteBack(old.line)
            } else {
                Touch::Filled
            };
            (set.oldest, touch)
        };
        self.places.insert(line, place);
        self.link(number, place);
        touch
    }

    pub(super) fn dirty(&mut self, line: u64) {
        if let Some(&place) = self.places.get(&line) {
            self.entries[place as usize].written = true;
        }
    }

    /// Removes an entry from its set's chain.
    fn unlink(&mut self, set: usize, place: u32) {
        let Entry { older, newer, .. } = self.entries[place as usize];
        match self.entries.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.sets[set].oldest = newer,
        }
        match self.entries.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.sets[set].newest = older,
        }
    }

    /// Makes an entry the most recently used.
    fn link(&mut self, set: usize, place: u32) {
        let newest = std::mem::replace(&mut self.sets[set].newest, place);
        let entry = &mut self.entries[place as usize];
        (entry.older, entry.newer) = (newest, NONE);
        match self.entries.get_mut(newest as usize) {
            Some(before) => before.newer = place,
            None => self.sets[set].oldest = place,
        }
    }
}
