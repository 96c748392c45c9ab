//! Gshare prediction, with counters indexed by branch and global history (McFarling, "Combining
//! branch predictors", 1993, section 7).

use super::bimodal::Bimodal;

/// A table of 2^bits counters, indexed by place XOR history.
#[derive(Clone, Debug)]
pub(super) struct Gshare {
    counters: Bimodal,
    /// Selects the history bits that enter the index.
    mask: u64,
}

impl Gshare {
    pub(super) fn new(bits: u32, history: u32) -> Self {
        Self {
            counters: Bimodal::new(bits),
            mask: (1 << history) - 1,
        }
    }

    #[inline]
    pub(super) fn next(&mut self, place: u64, history: u64, taken: bool) -> bool {
        self.counters.next(place ^ history & self.mask, taken)
    }
}
