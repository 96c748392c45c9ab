//! Keeps the part of the recent past that predicts the next symbol.

use super::successors::hash;

/// The number of nodes remembered.
const DEPTH: usize = 6;

/// The last nodes of the innermost activation. Calls between them are folded into the node that
/// made them, because the continuation after a call depends far more on the caller's path than on
/// the callee's last path.
#[derive(Clone, Copy, Default)]
pub(super) struct History {
    /// The last nodes, latest first, each combined with its callees. At an entry, these are the
    /// entry and the caller's past.
    past: [u32; DEPTH],
    /// The hash of the activation that has ended since the last node, or 0 if none has.
    returned: u32,
    /// The repetition that has ended since the last node, or 0.
    looped: u32,
    /// The number of nodes executed in this activation, modulo 2^32.
    count: u32,
    /// The last node, plus 1, or 0 right after an entry.
    node: u32,
    /// The end point of the last node, plus 1, or 0. The next field is the number of consecutive
    /// nodes that ended there, which are the iterations of an innermost loop.
    point: u32,
    rounds: u32,
}

/// The effect of a rule on the history. It contains the history at the rule's end, and how much of
/// that history the rule itself has added.
#[derive(Clone, Copy)]
pub(super) struct Tail {
    history: History,
    own: u32,
}

impl History {
    /// Returns the last node of this activation.
    pub(super) fn last(&self) -> Option<u32> {
        self.node.checked_sub(1)
    }

    /// Whether an activation has ended since the last node.
    pub(super) fn has_returned(&self) -> bool {
        self.returned != 0
    }

    /// Returns five contexts. They are the point where the last node ended, the last node with the
    /// number of consecutive nodes that ended at its point, and the last 2, 3 and 6 nodes. Each
    /// context is a sum of products, which can be computed in parallel. Its upper bits are well
    /// mixed.
    #[inline]
    pub(super) fn contexts(&self, place: u32) -> [u64; 5] {
        let [first, second, third, fourth, fifth, sixth] = self.past;
        let returned = u32::from(self.has_returned());
        let one = times(0, first)
            .wrapping_add(times(1, self.looped))
            .wrapping_add(times(2, place << 1 | returned));
        // For an entry, or a node without a known end point, use the latest node instead of the
        // point.
        let (at, number) = if self.point == 0 {
            (0, first)
        } else {
            (3, self.point)
        };
        let start = times(at, number).wrapping_add(times(2, place << 1 | returned));
        let round = one.wrapping_add(times(3, self.rounds));
        let two = one
            .wrapping_add(times(4, second))
            .wrapping_add(times(5, self.returned));
        let three = two.wrapping_add(times(6, third));
        let six = three
            .wrapping_add(times(7, fourth))
            .wrapping_add(times(8, fifth))
            .wrapping_add(times(9, sixth));
        [start, round, two, three, six]
    }

    /// Records the execution of a node.
    #[inline]
    pub(super) fn push(&mut self, node: u32, point: u32) {
        self.shift(node + 1);
        self.node = node + 1;
        self.rounds = if self.point == point {
            self.rounds.saturating_add(1)
        } else {
            1
        };
        self.point = point;
        self.count = self.count.wrapping_add(1);
    }

    fn shift(&mut self, latest: u32) {
        let folded = if self.returned == 0 {
            self.past[0]
        } else {
            hash(self.past[0].into(), self.returned) as u32
        };
        let [_, second, third, fourth, fifth, _] = self.past;
        self.past = [latest, folded, second, third, fourth, fifth];
        self.returned = 0;
        self.looped = 0;
    }

    /// Returns the history at the entry of an activation that begins at this point.
    pub(super) fn entry(&self, function: u32) -> Self {
        let entry = hash(1 << 32, function) as u32;
        let mut inner = Self {
            returned: 0,
            ..*self
        };
        inner.shift(entry);
        Self {
            past: inner.past,
            ..Self::default()
        }
    }

    /// Records the end of an activation of `function`. `callee` is its last history.
    pub(super) fn returned(&mut self, function: u32, callee: &Self) {
        self.returned = hash(hash(2 << 32, function), callee.past[0]) as u32 | 1;
        self.looped = 0;
    }

    /// Records that the last symbols were repeated.
    pub(super) fn looped(&mut self, symbols: u32, times: u64) {
        if self.rounds >= symbols {
            let more = (times - 1).saturating_mul(symbols.into()).min(1 << 20) as u32;
            self.rounds = self.rounds.saturating_add(more);
        }
        self.looped = (self.looped << 8) + symbols;
    }

    /// Returns the part of the history that was added after `since`.
    pub(super) fn tail(&self, since: &Self) -> Tail {
        Tail {
            history: *self,
            own: self.count.wrapping_sub(since.count),
        }
    }

    /// Records that a rule was executed again.
    #[inline]
    pub(super) fn apply(&mut self, tail: &Tail) {
        let History {
            past,
            returned,
            looped,
            node,
            point,
            rounds,
            ..
        } = tail.history;
        let own = (tail.own as usize).min(DEPTH);
        if own > 0 {
            self.shift(0);
            let before = self.past;
            self.past = past;
            for at in own..DEPTH {
                self.past[at] = before[at - own + 1];
            }
            self.node = node;
            let all = self.point == point && rounds >= tail.own;
            self.rounds = if all {
                self.rounds.saturating_add(rounds)
            } else {
                rounds
            };
            self.point = point;
        }
        self.count = self.count.wrapping_add(tail.own);
        self.returned = returned;
        self.looped = looped;
    }
}

#[inline]
fn times(at: usize, number: u32) -> u64 {
    FACTORS[at].wrapping_mul(u64::from(number))
}

/// Odd numbers without a pattern, from Knuth's generator MMIX (2002).
const FACTORS: [u64; 10] = {
    let mut factors = [0; 10];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut at = 0;
    while at < 10 {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        factors[at] = state | 1;
        at += 1;
    }
    factors
};
