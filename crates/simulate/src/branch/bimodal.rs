//! A counter for each branch, as far as there is room (Smith 1981).

use super::counter::Counter;

/// 2^bits counters of two bits, by the lowest bits of the branch's place.
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

    /// The counter of a branch.
    #[inline]
    pub(super) fn counter(&mut self, place: u64) -> &mut Counter {
        let mask = self.counters.len() - 1;
        &mut self.counters[place as usize & mask]
    }

    /// What is predicted of a branch that goes so.
    #[inline]
    pub(super) fn next(&mut self, place: u64, taken: bool) -> bool {
        let counter = self.counter(place);
        let predicted = counter.taken();
        counter.update(taken);
        predicted
    }
}
