//! Remembers the latest values of a block.

/// The latest values and differences, in the form that the contexts need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    /// The last two values.
    pub(super) values: [u64; 2],
    /// The last difference.
    pub(super) difference: u64,
    /// The difference before the last difference, [hashed](hash).
    difference_before: u64,
    /// The second-to-last and the third-to-last value, [joined](join).
    pair_before: u64,
    /// The last two values, joined.
    pair: u64,
    /// The [`Outcome`]s of the last values, two bits each, with the latest in the lowest bits.
    outcomes: usize,
}

/// The way in which a value was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The first prediction was right.
    First = 0,
    /// A later prediction was right.
    Later = 1,
    /// No prediction was right.
    Escape = 2,
}

impl History {
    /// The number of possible [`outcomes`](Self::outcomes).
    pub(super) const OUTCOMES: usize = 16;

    #[inline(always)]
    pub(super) fn push(&mut self, value: u64, outcome: Outcome) {
        let [last, _] = self.values;
        self.difference_before = hash(self.difference);
        self.difference = value.wrapping_sub(last);
        self.pair_before = self.pair;
        self.pair = join(hash(last), value);
        self.values = [value, last];
        self.outcomes = (self.outcomes << 2 | outcome as usize) % Self::OUTCOMES;
    }

    /// Returns the outcomes of the last two values.
    #[inline]
    pub(super) fn outcomes(&self) -> usize {
        self.outcomes
    }

    /// Returns the context of the last three values.
    #[inline]
    pub(super) fn values3(&self) -> u64 {
        join(hash(self.pair_before), self.values[0])
    }

    /// Returns the context of the last two differences.
    #[inline]
    pub(super) fn differences2(&self) -> u64 {
        join(self.difference_before, self.difference)
    }
}

/// Combines two contexts. The first must be [hashed](hash).
#[inline]
fn join(hashed: u64, context: u64) -> u64 {
    hashed.rotate_left(29).wrapping_add(context)
}

/// Spreads a context over all bits. The upper bits are mixed best.
#[inline]
pub(super) fn hash(context: u64) -> u64 {
    let mixed = context.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}
