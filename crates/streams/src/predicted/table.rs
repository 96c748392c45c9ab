//! What followed a context the last time.

use super::history::hash;

/// A table from contexts to what followed them, of fixed size; a context may push out another (Sazeides and Smith 1997).
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// What followed.
    values: Box<[u64]>,
    /// How sure that is, in the lowest two bits, 0 if nothing followed yet; above, more bits of the context's hash.
    marks: Box<[u16]>,
    shift: u32,
}

/// A context's place in a table.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    index: usize,
    mark: u16,
}

/// The highest confidence.
pub(super) const SURE: u16 = 3;

impl Table {
    /// A table of 2^`log` entries, `log > 0`.
    pub(super) fn new(log: u32) -> Self {
        Self {
            values: vec![0; 1 << log].into(),
            marks: vec![0; 1 << log].into(),
            shift: 64 - log,
        }
    }

    /// Where a context is.
    #[inline]
    pub(super) fn slot(&self, context: u64) -> Slot {
        let hash = hash(context);
        Slot {
            index: (hash >> self.shift) as usize,
            mark: hash as u16 & !SURE,
        }
    }

    /// What followed the context, and how sure that is: 0 if nothing did.
    #[inline]
    pub(super) fn predict(&self, slot: Slot) -> (u64, usize) {
        let mark = self.marks[slot.index];
        let known = mark & !SURE == slot.mark;
        (
            self.values[slot.index],
            if known { usize::from(mark & SURE) } else { 0 },
        )
    }

    /// Learns what followed.
    #[inline]
    pub(super) fn update(&mut self, slot: Slot, value: u64) {
        let mark = &mut self.marks[slot.index];
        let held = &mut self.values[slot.index];
        let known = *mark & !SURE == slot.mark && *mark & SURE > 0;
        let confidence = match (known, *held == value) {
            (true, true) => (*mark & SURE).max(1).saturating_add(1).min(SURE),
            // What was right twice gets a second chance.
            (true, false) if *mark & SURE == SURE => {
                *mark -= 1;
                return;
            }
            _ => 1,
        };
        *held = value;
        *mark = slot.mark | confidence;
    }
}
