//! TAGE prediction, with a base predictor and tagged tables with geometrically growing history
//! lengths (Seznec and Michaud, "A case for (partially) TAgged GEometric history length branch
//! prediction", Journal of Instruction-Level Parallelism 8, 2006, section 3).
//!
//! Among the tables that have an entry with the branch's tag, the table with the longest history
//! predicts. An entry contains a three-bit counter, a tag, and a two-bit useful counter. The useful
//! counter rises when the entry is right and the next shorter history is wrong. A misprediction
//! replaces an entry that is not useful in a table with a longer history. If all candidates are
//! useful, their useful counters drop instead. Every 2^18 conditional branches, all useful counters
//! lose one bit, alternately the upper and the lower. New entries are ignored while the predictions
//! without them are better (`USE_ALT_ON_NA` of section 3.2).
//!
//! For indices and tags, the history is folded to their width in rotating registers (Michaud, "A
//! PPM-like, tag-based branch predictor", 2005).

use super::bimodal::Bimodal;
use crate::spec::SpecError;

/// The largest number of tagged tables.
pub(super) const MOST_TABLES: u32 = 12;
/// The longest permitted history.
pub(super) const LONGEST: u32 = 640;
/// The number of conditional branches after which useful counters lose a bit.
const PERIOD: u64 = 1 << 18;

/// The sizes of a TAGE predictor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TageSpec {
    /// Log2 of the number of counters in the base predictor.
    pub base: u32,
    /// Log2 of the number of entries in each tagged table.
    pub bits: u32,
    /// The number of tagged tables.
    pub tables: u32,
    /// The width of a tag, in bits.
    pub tag: u32,
    /// The length of the shortest history.
    pub min: u32,
    /// The length of the longest history.
    pub max: u32,
}

impl Default for TageSpec {
    fn default() -> Self {
        Self {
            base: 13,
            bits: 10,
            tables: 7,
            tag: 11,
            min: 5,
            max: 130,
        }
    }
}

impl TageSpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.tables > 1 && self.max - self.min.min(self.max) < self.tables - 1 {
            return Err(SpecError(format!(
                "tage: {} different histories do not fit between min={} and max={}; make max greater",
                self.tables, self.min, self.max
            )));
        }
        Ok(())
    }

    /// Returns the history length of each table: min · (max / min)^(i / (tables - 1)), rounded, and
    /// always longer than the previous length. The lengths are computed with integers, so all
    /// machines agree.
    pub(super) fn lengths(&self) -> Vec<u32> {
        let (min, max) = (u128::from(self.min), u128::from(self.max));
        let steps = self.tables - 1;
        let mut lengths = Vec::new();
        let mut least = 0;
        for i in 0..self.tables {
            // x is the largest value with x - 1/2 <= the exact length, so (2x - 1)^steps <= 2^steps
            // · min^(steps - i) · max^i.
            let bound = (1u128 << steps) * min.pow(steps - i) * max.pow(i);
            let mut x = max;
            while steps > 0 && x > min && (2 * x - 1).pow(steps) > bound {
                x -= 1;
            }
            let length = if steps == 0 { min } else { x };
            // Leave room for the remaining lengths.
            let most = self.max.saturating_sub(self.tables - 1 - i);
            let length = (length as u32).min(most).max(least + 1);
            least = length;
            lengths.push(length);
        }
        lengths
    }
}

/// An entry of a tagged table.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    tag: u16,
    /// A number from -4 to 3. Numbers from 0 on predict taken.
    counter: i8,
    /// A number from 0 to 3.
    useful: u8,
}

impl Entry {
    fn taken(self) -> bool {
        self.counter >= 0
    }

    /// Whether the entry is still in its newly allocated state.
    fn is_new(self) -> bool {
        self.useful == 0 && matches!(self.counter, -1 | 0)
    }
}

/// The last bits of the history, XOR-folded to a given width.
#[derive(Clone, Copy, Debug)]
struct Folded {
    value: u32,
    width: u32,
    /// The position in the fold of the bit that is about to leave the history.
    oldest: u32,
}

impl Folded {
    fn new(length: u32, width: u32) -> Self {
        Self {
            value: 0,
            width,
            oldest: length % width,
        }
    }

    /// Shifts in the newest bit and removes the oldest.
    #[inline]
    fn push(&mut self, newest: bool, left: bool) {
        let value = self.value << 1 | u32::from(newest);
        let value = value ^ u32::from(left) << self.oldest;
        let mask = (1 << self.width) - 1;
        self.value = (value ^ value >> self.width) & mask;
    }
}

#[derive(Clone, Debug)]
struct Table {
    entries: Vec<Entry>,
    length: u32,
    index: Folded,
    tag: Folded,
    /// A second fold, which makes tags differ from the index.
    tag2: Folded,
}

#[derive(Clone, Debug)]
pub(super) struct Tage {
    base: Bimodal,
    tables: Vec<Table>,
    bits: u32,
    tag_mask: u32,
    /// A ring buffer of recent outcomes.
    history: Vec<bool>,
    /// The position of the newest outcome.
    newest: usize,
    /// A number from -8 to 7. At 0 and above, new entries are not trusted.
    distrust: i8,
    branches: u64,
    /// The xorshift state that picks a table for allocation (Marsaglia 2003).
    random: u32,
    /// The index and tag of the current branch in each table.
    places: Vec<(usize, u16)>,
}

impl Tage {
    pub(super) fn new(spec: &TageSpec) -> Self {
        let tables = spec.lengths().into_iter().map(|length| Table {
            entries: vec![Entry::default(); 1 << spec.bits],
            length,
            index: Folded::new(length, spec.bits),
            tag: Folded::new(length, spec.tag),
            tag2: Folded::new(length, spec.tag - 1),
        });
        let tables = Vec::from_iter(tables);
        Self {
            base: Bimodal::new(spec.base),
            places: vec![(0, 0); tables.len()],
            tables,
            bits: spec.bits,
            tag_mask: (1 << spec.tag) - 1,
            history: vec![false; (LONGEST as usize + 1).next_power_of_two()],
            newest: 0,
            distrust: 0,
            branches: 0,
            random: 0x9e37_79b9,
        }
    }

    /// Returns the prediction for a branch and learns its outcome.
    pub(super) fn next(&mut self, place: u64, taken: bool) -> bool {
        let (mut provider, mut second) = (None, None);
        for (i, table) in self.tables.iter().enumerate() {
            let index = index(place, self.bits, i) ^ table.index.value as usize;
            let tag = (place as u32 ^ table.tag.value ^ table.tag2.value << 1) & self.tag_mask;
            self.places[i] = (index, tag as u16);
            // An empty entry also has tag 0. It predicts weakly taken, is not useful, and is soon
            // overwritten.
            if table.entries[index].tag == tag as u16 {
                (second, provider) = (provider, Some(i));
            }
        }
        let base = self.base.counter(place).taken();
        let at = |i: usize| self.tables[i].entries[self.places[i].0];
        let alternative = second.map_or(base, |i| at(i).taken());
        let predicted = match provider {
            None => base,
            Some(i) if at(i).is_new() && self.distrust >= 0 => alternative,
            Some(i) => at(i).taken(),
        };
        self.learn(place, provider, alternative, taken);
        if predicted != taken {
            self.allocate(provider.map_or(0, |i| i + 1), taken);
        }
        self.age();
        self.remember(taken);
        predicted
    }

    /// Updates the counters of the matching entry with the longest history, or of the base
    /// predictor if no entry matched.
    fn learn(&mut self, place: u64, provider: Option<usize>, alternative: bool, taken: bool) {
        let Some(i) = provider else {
            self.base.counter(place).update(taken);
            return;
        };
        let entry = &mut self.tables[i].entries[self.places[i].0];
        let own = entry.taken();
        if own != alternative {
            if entry.is_new() {
                let step = if alternative == taken { 1 } else { -1 };
                self.distrust = (self.distrust + step).clamp(-8, 7);
            }
            entry.useful = if own == taken {
                (entry.useful + 1).min(3)
            } else {
                entry.useful.saturating_sub(1)
            };
        }
        let step = if taken { 1 } else { -1 };
        entry.counter = (entry.counter + step).clamp(-4, 3);
    }

    /// Replaces an entry that is not useful, in one of the tables from `first` on. It considers the
    /// two candidates with the shortest histories, and picks the shorter history twice as often
    /// (section 3.2.2).
    fn allocate(&mut self, first: usize, taken: bool) {
        let free = |i: &usize| self.tables[*i].entries[self.places[*i].0].useful == 0;
        let mut candidates = (first..self.tables.len()).filter(free);
        let (Some(mut chosen), other) = (candidates.next(), candidates.next()) else {
            for i in first..self.tables.len() {
                let entry = &mut self.tables[i].entries[self.places[i].0];
                entry.useful = entry.useful.saturating_sub(1);
            }
            return;
        };
        if let Some(other) = other {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 17;
            self.random ^= self.random << 5;
            if self.random.is_multiple_of(3) {
                chosen = other;
            }
        }
        let (index, tag) = self.places[chosen];
        self.tables[chosen].entries[index] = Entry {
            tag,
            counter: if taken { 0 } else { -1 },
            useful: 0,
        };
    }

    /// Clears one bit of all useful counters at the end of each period.
    fn age(&mut self) {
        self.branches += 1;
        if !self.branches.is_multiple_of(PERIOD) {
            return;
        }
        let upper = (self.branches / PERIOD) % 2 == 1;
        let kept = if upper { 1 } else { 2 };
        for entry in self.tables.iter_mut().flat_map(|table| &mut table.entries) {
            entry.useful &= kept;
        }
    }

    /// Adds an outcome to the history.
    #[inline]
    pub(super) fn remember(&mut self, outcome: bool) {
        let mask = self.history.len() - 1;
        self.newest = (self.newest + 1) & mask;
        self.history[self.newest] = outcome;
        for table in &mut self.tables {
            let oldest = self.newest.wrapping_sub(table.length as usize) & mask;
            let left = self.history[oldest];
            table.index.push(outcome, left);
            table.tag.push(outcome, left);
            table.tag2.push(outcome, left);
        }
    }
}

/// Returns the part of an index that depends on the place. It differs from table to table.
#[inline]
fn index(place: u64, bits: u32, table: usize) -> usize {
    let mixed = place ^ place >> bits ^ place >> (table as u32 % bits + 1);
    mixed as usize & ((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::{Folded, TageSpec};

    #[test]
    fn lengths_grow_geometrically() {
        // Table 1 of the paper has the lengths 5 to 130 for the 8-component predictor.
        let lengths = TageSpec::default().lengths();
        assert_eq!(lengths, [5, 9, 15, 25, 44, 76, 130]);
        let tight = TageSpec {
            tables: 12,
            min: 1,
            max: 12,
            ..TageSpec::default()
        };
        assert_eq!(tight.lengths(), Vec::from_iter(1..=12));
        let one = TageSpec {
            tables: 1,
            min: 7,
            max: 7,
            ..TageSpec::default()
        };
        assert_eq!(one.lengths(), [7]);
        let widest = TageSpec {
            tables: 12,
            min: 1,
            max: 640,
            ..TageSpec::default()
        };
        let lengths = widest.lengths();
        assert_eq!((lengths[0], lengths[11]), (1, 640));
        assert!(lengths.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_fold_is_the_exclusive_or_of_pieces() {
        let mut random = 1u32;
        for (length, width) in [(5, 10), (9, 10), (10, 10), (44, 11), (130, 7), (1, 3)] {
            let mut folded = Folded::new(length, width);
            let mut history = Vec::new();
            for _ in 0..400 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let bit = random >> 31 == 1;
                history.insert(0, bit);
                let left = history.get(length as usize).copied().unwrap_or(false);
                folded.push(bit, left);
                let mut naive = 0;
                for (i, &bit) in (0..length).zip(&history) {
                    naive ^= u32::from(bit) << (i % width);
                }
                assert_eq!(folded.value, naive, "{length} {width}");
            }
        }
    }
}
