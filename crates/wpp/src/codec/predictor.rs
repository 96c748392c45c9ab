//! What follows in several contexts at once: their candidates, and the mixed opinions about each.

use super::coder::Coder;
use super::logistic::{Chance, Mixer};
use super::step::Token;
use super::successors::{CANDIDATES, Table};

/// How many contexts are asked, the most specific last.
pub(super) const ORDERS: usize = 6;
/// Levels of how often something was seen.
const LEVELS: usize = 24;
/// How fast the mixers learn.
const RATE: i32 = 2;

/// Codes tokens, one after the other, each in contexts of its own.
pub(super) struct Predictor {
    tables: [Table; ORDERS],
    /// How likely a candidate is, by how often it and the candidates that are left followed.
    chances: [Vec<Chance>; ORDERS],
    mixers: Vec<Mixer<ORDERS>>,
    /// Where the contexts of the last token are.
    places: [usize; ORDERS],
    /// How many candidates are asked for at most.
    most_tries: usize,
}

impl Predictor {
    /// With tables of two to the power of `bits` contexts, by order.
    pub(super) fn new(bits: [u32; ORDERS], most_tries: usize) -> Self {
        let chance = |at: usize| {
            let (hits, rest) = (LEVEL_VALUES[at / LEVELS], LEVEL_VALUES[at % LEVELS]);
            let p = (10 * hits + 4) * 65_536 / (10 * (hits + rest) + 10);
            Chance::new(p.min(65_000), 6)
        };
        Self {
            tables: std::array::from_fn(|order| Table::new(bits[order])),
            chances: std::array::from_fn(|_| (0..LEVELS * LEVELS).map(chance).collect()),
            mixers: vec![Mixer::new(20_000); 16 * ORDERS * 2],
            places: [0; ORDERS],
            most_tries,
        }
    }

    /// Asks for the candidates, those of the most specific context first, whether the token is one of them. Does not
    /// ask for tokens that are not allowed here.
    #[inline]
    pub(super) fn code(
        &mut self,
        coder: &mut impl Coder,
        given: Token,
        contexts: [u64; ORDERS],
        is_allowed: impl Fn(Token) -> bool,
    ) -> Option<Token> {
        // All places are looked at before any is used: the cache misses overlap.
        let found: [_; ORDERS] =
            std::array::from_fn(|order| self.tables[order].find(contexts[order]));
        for (order, (at, is_others)) in found.into_iter().enumerate() {
            self.places[order] = at;
            if is_others {
                self.tables[order].clear(at, contexts[order]);
            }
        }
        let slots: [_; ORDERS] =
            std::array::from_fn(|order| *self.tables[order].slot(self.places[order]));
        let mut rest: [u32; ORDERS] = std::array::from_fn(|order| slots[order].total());
        let confidence = (rest[5].min(3) * 4 + rest[4].min(3)) as usize;
        let mut tried = [Token::NONE; ORDERS * CANDIDATES];
        let mut tries = 0;
        for order in (0..ORDERS).rev() {
            for token in slots[order].tokens {
                if token == Token::NONE {
                    break;
                }
                if tried[..tries].contains(&token) || !is_allowed(token) {
                    continue;
                }
                let mut opinions = [0; ORDERS];
                let mut states = [0; ORDERS];
                let mut counts = [0; ORDERS];
                for other in 0..ORDERS {
                    counts[other] = slots[other].count(token);
                    states[other] =
                        level(counts[other]) * LEVELS + level(rest[other] - counts[other]);
                    if rest[other] > 0 {
                        opinions[other] = self.chances[other][states[other]].stretch();
                    }
                }
                let mixer =
                    &mut self.mixers[(confidence * ORDERS + order) * 2 + usize::from(tries > 0)];
                let p = mixer.mix(&opinions);
                let bit = coder.bit(token == given, p);
                mixer.update(&opinions, p, bit, RATE);
                for other in 0..ORDERS {
                    if rest[other] > 0 {
                        self.chances[other][states[other]].update(bit);
                    }
                    rest[other] -= counts[other];
                }
                if bit {
                    return Some(token);
                }
                tried[tries] = token;
                tries += 1;
                if tries == self.most_tries {
                    return None;
                }
            }
        }
        None
    }

    /// Learns what the last token was, in its contexts.
    #[inline]
    pub(super) fn update(&mut self, token: Token) {
        if token != Token::NONE {
            for (table, &place) in self.tables.iter_mut().zip(&self.places) {
                table.slot_mut(place).update(token);
            }
        }
    }
}

/// The smallest number of each level.
const LEVEL_VALUES: [u32; LEVELS] = [
    0, 1, 2, 3, 4, 5, 7, 9, 12, 16, 22, 30, 42, 58, 80, 110, 150, 200, 280, 400, 560, 780, 1100,
    1530,
];

static LEVEL_OF: [u8; 1531] = {
    let mut table = [0; 1531];
    let mut level = 0;
    let mut n = 0;
    while n < table.len() {
        while level + 1 < LEVELS && LEVEL_VALUES[level + 1] <= n as u32 {
            level += 1;
        }
        table[n] = level as u8;
        n += 1;
    }
    table
};

#[inline]
fn level(count: u32) -> usize {
    LEVEL_OF[count as usize].into()
}
