//! Saturating two-bit counters.

/// A two-bit counter (Smith, "A study of branch prediction strategies", 1981). The values 0 and 1
/// predict not taken, and 2 and 3 predict taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter(u8);

impl Counter {
    /// A counter that weakly predicts not taken.
    pub(super) const WEAK: Self = Self(1);

    #[inline]
    pub(super) fn taken(self) -> bool {
        self.0 >= 2
    }

    #[inline]
    pub(super) fn update(&mut self, taken: bool) {
        self.0 = if taken {
            (self.0 + 1).min(3)
        } else {
            self.0.saturating_sub(1)
        };
    }
}
