//! Remembers the tokens that followed each context, in a hash table. Each slot is a short list of
//! candidates.

use super::levels::MOST;
use super::step::Token;

/// The number of candidates that a context remembers.
pub(super) const CANDIDATES: usize = 3;
/// The width of a count in bits.
const WIDTH: usize = 6;
/// The mask of the bits of all counts.
const COUNTS: u32 = (1 << (WIDTH * CANDIDATES)) - 1;

/// The candidates of a context, most frequent first. A slot takes a quarter of a cache line. A new
/// token competes with the last candidate.
#[derive(Clone, Copy, Default)]
#[repr(align(16))]
pub(super) struct Slot {
    /// The candidates, with all bits inverted, so that an empty slot is all zeros. The allocator
    /// provides zeros cheaply.
    tokens: [u32; CANDIDATES],
    /// The counts, with the first in the lowest bits. The bits above contain a tag that
    /// distinguishes contexts with the same slot.
    meta: u32,
}

impl Slot {
    /// Returns a candidate, or [`Token::NONE`] if there are fewer candidates.
    #[inline]
    pub(super) fn token(&self, at: usize) -> Token {
        Token(!self.tokens[at])
    }

    /// Returns the number of times that a candidate followed.
    #[inline]
    fn at(&self, at: usize) -> u32 {
        self.meta >> (WIDTH * at) & MOST
    }

    /// If only one token has ever followed, returns the number of times that it did. Returns 0 if
    /// no token has followed, and `None` if several have.
    #[inline]
    pub(super) fn only(&self) -> Option<u32> {
        let counts = self.meta & COUNTS;
        (counts <= MOST).then_some(counts)
    }

    /// Returns the number of times that a token followed.
    #[inline]
    pub(super) fn count(&self, token: Token) -> u32 {
        let mut count = 0;
        for at in 0..CANDIDATES {
            if self.token(at) == token {
                count = self.at(at);
            }
        }
        count
    }

    /// Returns the total of the remembered counts.
    #[inline]
    pub(super) fn total(&self) -> u32 {
        self.at(0) + self.at(1) + self.at(2)
    }

    /// Counts a token that followed.
    #[inline]
    pub(super) fn update(&mut self, token: Token) {
        if self.token(0) == token && self.at(0) < MOST {
            self.meta += 1;
        } else if self.meta & COUNTS != MOST || self.token(0) != token {
            self.count_other(token);
        }
    }

    fn count_other(&mut self, token: Token) {
        let at = match (0..CANDIDATES).find(|&at| self.token(at) == token) {
            Some(at) => at,
            None => {
                let free = (0..CANDIDATES).find(|&at| self.at(at) == 0);
                let at = free.unwrap_or(CANDIDATES - 1);
                self.tokens[at] = !token.0;
                self.meta &= !(MOST << (WIDTH * at));
                at
            }
        };
        if self.at(at) == MOST {
            let halved =
                (0..CANDIDATES).fold(0, |sum, at| sum | self.at(at).div_ceil(2) << (WIDTH * at));
            self.meta = self.meta & !COUNTS | halved;
        }
        self.meta += 1 << (WIDTH * at);
        if at > 0 && self.at(at) >= self.at(at - 1) {
            let change = self.at(at) ^ self.at(at - 1);
            self.meta ^= change << (WIDTH * at) | change << (WIDTH * (at - 1));
            self.tokens.swap(at, at - 1);
        }
    }
}

/// The slots for the contexts of one order.
pub(super) struct Table {
    slots: Vec<Slot>,
    shift: u32,
}

impl Table {
    pub(super) fn new(bits: u32) -> Self {
        Self {
            slots: vec![Slot::default(); 1 << bits],
            shift: 64 - bits,
        }
    }

    /// Returns the position and contents of a context's slot. If another context has occupied the
    /// slot, that context is forgotten.
    #[inline]
    pub(super) fn find(&mut self, context: u64) -> (usize, Slot) {
        let at = (context >> self.shift) as usize;
        let check = ((context >> 20) as u32 | 1) << (WIDTH * CANDIDATES);
        let slot = &mut self.slots[at];
        if slot.meta & !COUNTS != check {
            *slot = Slot {
                tokens: [0; CANDIDATES],
                meta: check,
            };
        }
        (at, *slot)
    }

    #[inline]
    pub(super) fn slot_mut(&mut self, at: usize) -> &mut Slot {
        &mut self.slots[at]
    }
}

/// Mixes a number into a context. The upper bits are mixed best.
#[inline]
pub(super) fn hash(context: u64, number: u32) -> u64 {
    let mixed = (context ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}
