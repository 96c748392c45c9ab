//! Bimodal prediction, with one counter per branch. Branches share counters if the table is too
//! small (Smith 1981).

use super::counter::Counter;

/// A table of 2^bits two-bit counters, indexed by the low bits of the branch's place.
#[derive(Clone, Debug)]
pub(super) struct Bimodal {
    counters: Vec<Counter>,
}

impl Bimodal {
    pub(super) fn new(bits: u32) -> Self {
        Self {
            counters: vec![Counter::WEAK; 1 << bits],
        }
    }

    /// Returns the counter of a branch.
    #[inline]
    pub(super) fn counter(&mut self, place: u64) -> &mut Counter {
        let mask = self.counters.len() - 1;
        &mut self.counters[place as usize & mask]
    }

    /// Returns the prediction for a branch and updates its counter with the outcome.
    #[inline]
    pub(super) fn next(&mut self, place: u64, taken: bool) -> bool {
        let counter = self.counter(place);
        let predicted = counter.taken();
        counter.update(taken);
        predicted
    }
}
