//! Counters by branch and global history (McFarling, "Combining branch predictors", 1993, section 7).

use super::bimodal::Bimodal;

/// 2^bits counters, by the exclusive or of place and history.
#[derive(Clone, Debug)]
pub(super) struct Gshare {
    counters: Bimodal,
    /// Which bits of the history are used.
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
