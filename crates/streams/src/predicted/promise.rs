//! Estimates whether predictors are worthwhile, at a fraction of a model's cost.

use super::history::hash;
use crate::{bits, varint};

/// The number of entries of the tables.
const TABLE: usize = 512;

/// Records which values and differences followed which contexts, to find out how often they recur.
pub(crate) struct Recurrence {
    /// Some bits of each value's successor.
    after_value: [u16; TABLE],
    after_difference: [u16; TABLE],
    last: u64,
    last_difference: u64,
}

impl Recurrence {
    /// Creates a record without values.
    pub(crate) fn new() -> Self {
        Self {
            after_value: [0; TABLE],
            after_difference: [0; TABLE],
            last: 0,
            last_difference: 0,
        }
    }

    /// Whether a value, or its difference from the previous value, follows the same context as
    /// before.
    #[inline]
    fn hit(&mut self, value: u64) -> bool {
        // The upper bits choose an entry, and other bits identify its content.
        let place = |context: u64| (hash(context) >> (64 - TABLE.ilog2())) as usize;
        let mark = |value: u64| (hash(value) >> 16) as u16 | 1;
        let difference = value.wrapping_sub(self.last);
        let by_value = &mut self.after_value[place(self.last)];
        let by_difference = &mut self.after_difference[place(self.last_difference)];
        let hit = (*by_value == mark(value)) | (*by_difference == mark(difference));
        *by_value = mark(value);
        *by_difference = mark(difference);
        (self.last, self.last_difference) = (value, difference);
        hit
    }

    /// Returns the approximate cost of values in eighths of a bit.
    pub(crate) fn cost(&mut self, values: &[u64]) -> u64 {
        /// The cost of a recurring value.
        const HIT: u64 = 2;
        /// The cost of any other value, apart from its bits.
        const MISS: u64 = 16;
        let mut cost = 0;
        for &value in values {
            let difference = varint::zigzag(value.wrapping_sub(self.last));
            let least = bits::length(value.min(difference));
            cost += if self.hit(value) {
                HIT
            } else {
                MISS + 8 * u64::from(least)
            };
        }
        cost
    }
}

/// Whether at least one value in eight recurs.
pub(crate) fn recurs(values: &[u64]) -> bool {
    let mut recurrence = Recurrence::new();
    let hits = values.iter().filter(|&&value| recurrence.hit(value));
    hits.count() * 8 >= values.len()
}
