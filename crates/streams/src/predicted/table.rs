//! Remembers the value that last followed each context, in a table.

use super::history::hash;

/// A fixed-size table from contexts to their successors. One context may evict another (Sazeides
/// and Smith 1997).
#[derive(Clone, Debug)]
pub(super) struct Table {
    entries: Box<[Entry]>,
    shift: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The value that last followed the context.
    value: u64,
    /// The lowest two bits are the confidence, which is 0 if there has been no successor yet. The
    /// other bits are more bits of the context's hash.
    mark: u16,
}

/// A context's position in a table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    index: u16,
    mark: u16,
}

/// The highest confidence.
pub(super) const SURE: u16 = 3;

impl Table {
    /// Returns a table of 2^`log` entries, `0 < log <= 16`.
    pub(super) fn new(log: u32) -> Self {
        Self {
            entries: vec![Entry::default(); 1 << log].into(),
            shift: 64 - log,
        }
    }

    /// Returns the position of a context.
    #[inline]
    pub(super) fn slot(&self, context: u64) -> Slot {
        let hash = hash(context);
        Slot {
            index: (hash >> self.shift) as u16,
            mark: hash as u16 & !SURE,
        }
    }

    /// Returns the successor of a context, and the confidence, which is 0 if there was no
    /// successor.
    #[inline]
    pub(super) fn predict(&self, slot: Slot) -> (u64, usize) {
        let Entry { value, mark } = self.entries[usize::from(slot.index)];
        let known = mark & !SURE == slot.mark;
        (value, if known { usize::from(mark & SURE) } else { 0 })
    }

    /// Learns a successor.
    #[inline]
    pub(super) fn update(&mut self, slot: Slot, value: u64) {
        let Entry { value: held, mark } = &mut self.entries[usize::from(slot.index)];
        // Which case occurs is unpredictable, so this code avoids a branch.
        let confidence = *mark & SURE;
        let known = (*mark & !SURE == slot.mark) & (confidence > 0);
        let right = *held == value;
        // A successor that has been right twice gets a second chance.
        let stays = known & (confidence == SURE);
        let next = if known & right {
            (confidence + 1).min(SURE)
        } else {
            1 + u16::from(stays)
        };
        *held = if stays { *held } else { value };
        *mark = slot.mark | next;
    }

    /// Copies an entry from another table of the same size.
    #[inline]
    pub(super) fn restore(&mut self, slot: Slot, from: &Self) {
        let at = usize::from(slot.index);
        self.entries[at] = from.entries[at];
    }
}
