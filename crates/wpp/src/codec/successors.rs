//! What followed so far in a context: a hash table of small lists of candidates.

use super::step::Token;

/// How many candidates a context remembers.
pub(super) const CANDIDATES: usize = 6;

/// The candidates of a context, the most frequent first, in half a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Slot {
    pub(super) tokens: [Token; CANDIDATES],
    pub(super) counts: [u8; CANDIDATES],
    /// Tells contexts apart that meet in a slot; the later one takes it over.
    check: u16,
}

impl Slot {
    const EMPTY: Self = Self {
        tokens: [Token::NONE; CANDIDATES],
        counts: [0; CANDIDATES],
        check: 0,
    };

    /// How often a token followed.
    #[inline]
    pub(super) fn count(&self, token: Token) -> u32 {
        let mut count = 0;
        for at in 0..CANDIDATES {
            if self.tokens[at] == token {
                count = u32::from(self.counts[at]);
            }
        }
        count
    }

    /// How often anything followed that is still remembered.
    #[inline]
    pub(super) fn total(&self) -> u32 {
        self.counts.iter().map(|&count| u32::from(count)).sum()
    }

    /// Counts what followed.
    #[inline]
    pub(super) fn update(&mut self, token: Token) {
        match self.tokens.iter().position(|&other| other == token) {
            Some(at) => {
                if self.counts[at] >= 254 {
                    self.counts
                        .iter_mut()
                        .for_each(|count| *count -= *count / 2);
                }
                self.counts[at] += 1;
                if at > 0 && self.counts[at] >= self.counts[at - 1] {
                    self.counts.swap(at, at - 1);
                    self.tokens.swap(at, at - 1);
                }
            }
            None => {
                let at = self
                    .counts
                    .iter()
                    .position(|&count| count == 0)
                    .unwrap_or(CANDIDATES - 1);
                self.tokens[at] = token;
                self.counts[at] = 1;
            }
        }
    }
}

/// The contexts of one order.
pub(super) struct Table {
    slots: Vec<Slot>,
    shift: u32,
}

impl Table {
    pub(super) fn new(bits: u32) -> Self {
        Self {
            slots: vec![Slot::EMPTY; 1 << bits],
            shift: 64 - bits,
        }
    }

    /// The place of a context, and whether it is another's now.
    #[inline]
    pub(super) fn find(&self, context: u64) -> (usize, bool) {
        let at = (context >> self.shift) as usize;
        (at, self.slots[at].check != check(context))
    }

    /// Empties a context's place.
    #[inline]
    pub(super) fn clear(&mut self, at: usize, context: u64) {
        let check = check(context);
        self.slots[at] = Slot {
            check,
            ..Slot::EMPTY
        };
    }

    #[inline]
    pub(super) fn slot(&self, at: usize) -> &Slot {
        &self.slots[at]
    }

    #[inline]
    pub(super) fn slot_mut(&mut self, at: usize) -> &mut Slot {
        &mut self.slots[at]
    }
}

#[inline]
fn check(context: u64) -> u16 {
    context as u16 | 1
}

/// Mixes a number into a context; the upper bits are the best.
#[inline]
pub(super) fn hash(context: u64, number: u32) -> u64 {
    let mixed = (context ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}
