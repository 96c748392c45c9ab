//! TAGE: a base predictor and tagged tables by histories of geometrically growing lengths (Seznec and Michaud, "A case for (partially) TAgged
//! GEometric history length branch prediction", Journal of Instruction-Level Parallelism 8, 2006, section 3).
//!
//! The longest history that has an entry with the branch's tag predicts. An entry has a counter of three bits, a tag, and a useful counter
//! of two bits: it is worth something if it was right where the next shorter history was wrong. A misprediction allocates an entry in
//! a table of a longer history, where one is not useful; if all are, all become less so. Every 2^18 branches all useful counters lose
//! one of their bits, the upper and the lower in turn. New entries are distrusted as long as that has paid (`USE_ALT_ON_NA` of section 3.2).
//!
//! History enters indices and tags folded to their width, in registers that are rotated (Michaud, "A PPM-like, tag-based branch predictor",
//! 2005).

use super::bimodal::Bimodal;
use crate::spec::SpecError;

/// Most tagged tables.
pub(super) const MOST_TABLES: u32 = 12;
/// The longest history.
pub(super) const LONGEST: u32 = 640;
/// After how many branches useful counters lose a bit.
const PERIOD: u64 = 1 << 18;

/// The sizes of a TAGE predictor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TageSpec {
    /// 2 to this power are the base predictor's counters.
    pub base: u32,
    /// 2 to this power are the entries of each tagged table.
    pub bits: u32,
    /// How many tagged tables there are.
    pub tables: u32,
    /// Bits of a tag.
    pub tag: u32,
    /// The shortest history.
    pub min: u32,
    /// The longest.
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

    /// The lengths of the tables' histories: min · (max / min)^(i / (tables - 1)), rounded, but each longer than the one before. In integers, so
    /// that every machine finds the same.
    pub(super) fn lengths(&self) -> Vec<u32> {
        let (min, max) = (u128::from(self.min), u128::from(self.max));
        let steps = self.tables - 1;
        let mut lengths = Vec::new();
        let mut least = 0;
        for i in 0..self.tables {
            // x is the largest with x - 1/2 <= the exact length, that is (2x - 1)^steps <= 2^steps · min^(steps - i) · max^i.
            let bound = (1u128 << steps) * min.pow(steps - i) * max.pow(i);
            let mut x = max;
            while steps > 0 && x > min && (2 * x - 1).pow(steps) > bound {
                x -= 1;
            }
            let length = if steps == 0 { min } else { x };
            // What must follow has to have room, too.
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
    /// -4 to 3; taken from 0 on.
    counter: i8,
    /// 0 to 3.
    useful: u8,
}

impl Entry {
    fn taken(self) -> bool {
        self.counter >= 0
    }

    /// As it is allocated.
    fn is_new(self) -> bool {
        self.useful == 0 && matches!(self.counter, -1 | 0)
    }
}

/// The last bits of the history, folded to a width by exclusive or.
#[derive(Clone, Copy, Debug)]
struct Folded {
    value: u32,
    width: u32,
    /// Where in the fold the oldest bit stands.
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

    /// A bit enters, and the oldest leaves.
    #[inline]
    fn push(&mut self, newest: bool, left: bool) {
        let value = self.value << 1 | u32::from(newest);
        let value = value ^ u32::from(left) << self.oldest;
        let mask = (1 << self.width) - 1;
        self.value = (value ^ value >> self.width) & mask;
    }
}

/// A tagged table.
#[derive(Clone, Debug)]
struct Table {
    entries: Vec<Entry>,
    length: u32,
    index: Folded,
    tag: Folded,
    /// A second fold, so that tags do not repeat what the index says.
    tag2: Folded,
}

/// The predictor.
#[derive(Clone, Debug)]
pub(super) struct Tage {
    base: Bimodal,
    tables: Vec<Table>,
    bits: u32,
    tag_mask: u32,
    /// A ring of the last outcomes.
    history: Vec<bool>,
    /// Where the newest one is.
    newest: usize,
    /// -8 to 7; from 0 on, new entries are distrusted.
    distrust: i8,
    branches: u64,
    /// For choosing a table to allocate in: xorshift (Marsaglia 2003).
    random: u32,
    /// Where each table would look for the branch at hand, and its tag.
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

    /// What is predicted of a branch that goes so.
    pub(super) fn next(&mut self, place: u64, taken: bool) -> bool {
        let (mut provider, mut second) = (None, None);
        for (i, table) in self.tables.iter().enumerate() {
            let index = index(place, self.bits, i) ^ table.index.value as usize;
            let tag = (place as u32 ^ table.tag.value ^ table.tag2.value << 1) & self.tag_mask;
            self.places[i] = (index, tag as u16);
            // A tag of 0 is that of an empty entry, too: that one predicts weakly taken, is not useful, and is soon overwritten.
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

    /// The counters of who predicted, or could have.
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

    /// Takes an entry that is not useful in one of the tables from `first` on: of two that could be had next to each other in length, the
    /// shorter one twice as often (section 3.2.2).
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

    /// Now and then useful counters lose a bit.
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

    /// An outcome enters the history.
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

/// The place's part of an index: another one for each table.
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
        // Table 1 of the paper's 8-component predictor: 5 to 130.
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
