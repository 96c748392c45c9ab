//! What went before in a block.

/// The last values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    /// The last value first.
    pub(super) values: [u64; 3],
    /// How the last values were found, two bits each, the last one lowest: see [`Outcome`].
    outcomes: usize,
}

/// How a value was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The first prediction was right.
    First = 0,
    /// A later one was.
    Later = 1,
    /// None was.
    Escape = 2,
}

impl History {
    /// How many [`outcomes`](Self::outcomes) there are.
    pub(super) const OUTCOMES: usize = 16;

    #[inline]
    pub(super) fn push(&mut self, value: u64, outcome: Outcome) {
        self.values = [value, self.values[0], self.values[1]];
        self.outcomes = (self.outcomes << 2 | outcome as usize) % Self::OUTCOMES;
    }

    /// How the last two values were found.
    #[inline]
    pub(super) fn outcomes(&self) -> usize {
        self.outcomes
    }

    /// The last difference.
    #[inline]
    pub(super) fn difference(&self) -> u64 {
        self.values[0].wrapping_sub(self.values[1])
    }

    /// The one before it.
    #[inline]
    pub(super) fn difference_before(&self) -> u64 {
        self.values[1].wrapping_sub(self.values[2])
    }
}

/// Two contexts as one.
#[inline]
pub(super) fn join(a: u64, b: u64) -> u64 {
    hash(a).rotate_left(29).wrapping_add(b)
}

/// Spreads a context over all bits, the upper ones best.
#[inline]
pub(super) fn hash(context: u64) -> u64 {
    let mixed = context.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}
