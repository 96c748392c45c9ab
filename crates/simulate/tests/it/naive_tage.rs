//! Implements TAGE directly from the paper, with the whole history in a list. Every fold is
//! computed again.

use std::collections::HashMap;

use afterimage_simulate::TageSpec;

#[derive(Clone, Copy, Default)]
struct Entry {
    tag: u32,
    counter: i32,
    useful: u32,
}

pub struct NaiveTage {
    spec: TageSpec,
    lengths: Vec<u32>,
    base: HashMap<u64, i32>,
    tables: Vec<HashMap<u64, Entry>>,
    /// The outcomes, newest first.
    history: Vec<bool>,
    distrust: i32,
    branches: u64,
    random: u32,
}

impl NaiveTage {
    pub fn new(spec: TageSpec, lengths: &[u32]) -> Self {
        Self {
            spec,
            lengths: lengths.to_vec(),
            base: HashMap::new(),
            tables: vec![HashMap::new(); lengths.len()],
            history: Vec::new(),
            distrust: 0,
            branches: 0,
            random: 0x9e37_79b9,
        }
    }

    fn fold(&self, length: u32, width: u32) -> u64 {
        let newest = self.history.iter().take(length as usize);
        newest.enumerate().fold(0, |fold, (i, &bit)| {
            fold ^ u64::from(bit) << (i as u32 % width)
        })
    }

    /// Returns the index and tag with which a table looks up a branch.
    fn look(&self, table: usize, place: u64) -> (u64, u32) {
        let TageSpec { bits, tag, .. } = self.spec;
        let length = self.lengths[table];
        let mixed = place ^ place >> bits ^ place >> (table as u32 % bits + 1);
        let index = (mixed ^ self.fold(length, bits)) % (1 << bits);
        let tagged = place ^ self.fold(length, tag) ^ self.fold(length, tag - 1) << 1;
        (index, (tagged % (1 << tag)) as u32)
    }

    fn entry(&mut self, table: usize, index: u64) -> &mut Entry {
        self.tables[table].entry(index).or_default()
    }

    pub fn next(&mut self, place: u64, taken: bool) -> bool {
        let looks: Vec<_> = (0..self.lengths.len())
            .map(|t| self.look(t, place))
            .collect();
        let hits: Vec<usize> = (0..looks.len())
            .filter(|&t| self.entry(t, looks[t].0).tag == looks[t].1)
            .collect();
        let base = *self.base.entry(place % (1 << self.spec.base)).or_insert(1) >= 2;
        let says = |this: &mut Self, t: usize| this.entry(t, looks[t].0).counter >= 0;
        let alternative = match hits.len() {
            0 | 1 => base,
            n => says(self, hits[n - 2]),
        };
        let mut predicted = base;
        if let Some(&t) = hits.last() {
            let own = says(self, t);
            let entry = *self.entry(t, looks[t].0);
            let fresh = entry.useful == 0 && (entry.counter == 0 || entry.counter == -1);
            predicted = if fresh && self.distrust >= 0 {
                alternative
            } else {
                own
            };
            if own != alternative {
                if fresh {
                    let step = if alternative == taken { 1 } else { -1 };
                    self.distrust = (self.distrust + step).clamp(-8, 7);
                }
                let entry = self.entry(t, looks[t].0);
                entry.useful = if own == taken {
                    3.min(entry.useful + 1)
                } else {
                    entry.useful.saturating_sub(1)
                };
            }
            let entry = self.entry(t, looks[t].0);
            entry.counter = (entry.counter + if taken { 1 } else { -1 }).clamp(-4, 3);
        } else {
            let counter = self.base.entry(place % (1 << self.spec.base)).or_insert(1);
            *counter = (*counter + if taken { 1 } else { -1 }).clamp(0, 3);
        }
        if predicted != taken {
            let longer = hits.last().map_or(0, |t| t + 1)..looks.len();
            let free: Vec<usize> = longer
                .clone()
                .filter(|&t| self.entry(t, looks[t].0).useful == 0)
                .collect();
            if free.is_empty() {
                for t in longer {
                    self.entry(t, looks[t].0).useful -= 1;
                }
            } else {
                let mut chosen = free[0];
                if free.len() > 1 {
                    self.random ^= self.random << 13;
                    self.random ^= self.random >> 17;
                    self.random ^= self.random << 5;
                    if self.random.is_multiple_of(3) {
                        chosen = free[1];
                    }
                }
                *self.entry(chosen, looks[chosen].0) = Entry {
                    tag: looks[chosen].1,
                    counter: if taken { 0 } else { -1 },
                    useful: 0,
                };
            }
        }
        self.branches += 1;
        if self.branches.is_multiple_of(1 << 18) {
            let bit = if (self.branches >> 18) % 2 == 1 { 1 } else { 2 };
            let entries = self.tables.iter_mut().flat_map(HashMap::values_mut);
            entries.for_each(|entry| entry.useful &= bit);
        }
        self.remember(taken);
        predicted
    }

    pub fn remember(&mut self, outcome: bool) {
        self.history.insert(0, outcome);
        self.history.truncate(700);
    }
}
