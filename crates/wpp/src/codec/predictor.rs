//! Predicts the next token from several contexts, which provide candidates and their probabilities.

use super::coder::Coder;
use super::levels::{COARSE, COARSE_LEVELS, COARSE_MEANS, FINE, FINE_LEVELS, FINE_MEANS, MOST};
use super::logistic::{Chance, Mixer};
use super::step::Token;
use super::successors::{CANDIDATES, Slot, Table};

/// The learning rate of the mixers.
const RATE: i32 = 2;
/// The most specific context decides alone if only one token has followed in it, at least this
/// often.
const SURE: u32 = 3;
/// The maximum number of contexts, and of candidates offered.
const MOST_ORDERS: usize = 5;
const MOST_TRIES: usize = 8;

/// The result of asking the most specific context.
#[derive(Clone, Copy)]
struct First {
    place: usize,
    slot: Slot,
    /// The only successor in the context, if it was offered and refused.
    refused: Token,
}

/// Codes tokens in sequence, each in `N` contexts (three to five), the most specific last.
///
/// In most cases, only one token has ever followed in the most specific context. If it has followed
/// at least [`SURE`] times, such a token takes one look-up and one decision. Other tokens are
/// searched for among the candidates of all contexts. A candidate's probability mixes two opinions.
/// One comes from the two most specific contexts together, and the other from the remaining
/// contexts.
pub(super) struct Predictor<const N: usize> {
    tables: [Table; N],
    /// The probability that the only successor follows again, by how often it has followed.
    sure: Vec<Chance>,
    upper: Vec<Chance>,
    lower: Vec<Chance>,
    /// The mixers, one for each level of a candidate in the most specific context.
    mixers: Vec<Mixer<2>>,
    /// The slots of the last token's contexts, unless the token has been learnt.
    places: [usize; N],
    is_learnt: bool,
    /// The maximum number of candidates offered.
    most_tries: usize,
}

impl<const N: usize> Predictor<N> {
    /// Creates a predictor. The table of each order has 2 to the power of its `bits` contexts.
    pub(super) fn new(bits: [u32; N], most_tries: usize) -> Self {
        const { assert!(3 <= N && N <= MOST_ORDERS) };
        let upper =
            |at: usize| first_known([FINE_MEANS[at % FINE_LEVELS], FINE_MEANS[at / FINE_LEVELS]]);
        let lower = |at: usize| {
            let levels = [at, at / COARSE_LEVELS, at / COARSE_LEVELS / COARSE_LEVELS];
            first_known(levels.map(|level| COARSE_MEANS[level % COARSE_LEVELS]))
        };
        Self {
            tables: std::array::from_fn(|order| Table::new(bits[order])),
            sure: vec![Chance::new(64_000, 1); MOST as usize + 1],
            upper: (0..FINE_LEVELS.pow(2)).map(upper).collect(),
            lower: (0..COARSE_LEVELS.pow(3)).map(lower).collect(),
            mixers: vec![Mixer::new(36_000); FINE_LEVELS],
            places: [0; N],
            is_learnt: true,
            most_tries: most_tries.min(MOST_TRIES),
        }
    }

    /// Offers the candidates, beginning with the most specific context, and codes whether each is
    /// the token. Skips tokens that are not allowed at this point. Returns `None` if no offer is
    /// right.
    #[inline]
    pub(super) fn code(
        &mut self,
        coder: &mut impl Coder,
        given: Token,
        contexts: [u64; N],
        is_allowed: impl Fn(Token) -> bool,
    ) -> Option<Token> {
        let (place, slot) = self.tables[N - 1].find(contexts[N - 1]);
        let only = slot.token(0);
        let mut refused = Token::NONE;
        if let Some(count) = slot.only()
            && count >= SURE
            && is_allowed(only)
        {
            if self.sure[count as usize].code(coder, only == given) {
                if count < MOST {
                    self.tables[N - 1].slot_mut(place).update(only);
                }
                self.is_learnt = true;
                return Some(only);
            }
            refused = only;
        }
        let first = First {
            place,
            slot,
            refused,
        };
        self.search(coder, given, contexts, first, is_allowed)
    }

    /// Offers the candidates of all contexts, except a candidate that has been refused.
    #[inline]
    fn search(
        &mut self,
        coder: &mut impl Coder,
        given: Token,
        contexts: [u64; N],
        first: First,
        is_allowed: impl Fn(Token) -> bool,
    ) -> Option<Token> {
        let First {
            place,
            slot,
            refused,
        } = first;
        let mut slots = [slot; N];
        let mut places = [place; N];
        for order in 0..N - 1 {
            (places[order], slots[order]) = self.tables[order].find(contexts[order]);
        }
        self.places = places;
        self.is_learnt = false;
        let mut rest = slots.map(|slot| slot.total());
        if refused != Token::NONE {
            for order in 0..N {
                rest[order] -= slots[order].count(refused);
            }
        }
        let mut tried = [Token::NONE; MOST_TRIES];
        tried[0] = refused;
        let mut tries = usize::from(refused != Token::NONE);
        for order in (0..N).rev() {
            for at in 0..CANDIDATES {
                let token = slots[order].token(at);
                if token == Token::NONE {
                    break;
                }
                if tried[..tries].contains(&token) || !is_allowed(token) {
                    continue;
                }
                let counts = slots.map(|slot| slot.count(token));
                if self.offer(coder, token == given, &counts, &rest) {
                    return Some(token);
                }
                for (rest, count) in rest.iter_mut().zip(counts) {
                    *rest -= count;
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

    /// Codes whether a candidate is right. In each context, it has followed `counts` times, and all
    /// remaining candidates together have followed `rest` times.
    #[inline]
    fn offer(
        &mut self,
        coder: &mut impl Coder,
        is_right: bool,
        counts: &[u32; N],
        rest: &[u32; N],
    ) -> bool {
        let last = FINE.of(counts[N - 1], rest[N - 1]);
        let both = last + FINE_LEVELS * FINE.of(counts[N - 2], rest[N - 2]);
        let others = (0..N - 2).rev().fold(0, |sum, order| {
            sum * COARSE_LEVELS + COARSE.of(counts[order], rest[order])
        });
        let (upper, lower) = (&mut self.upper[both], &mut self.lower[others]);
        let opinions = [upper.stretch(), lower.stretch()];
        let p = self.mixers[last].mix(&opinions);
        let bit = coder.bit(is_right, p);
        self.mixers[last].update(&opinions, p, bit, RATE);
        upper.update(bit);
        lower.update(bit);
        bit
    }

    /// Learns the last token in its contexts.
    #[inline]
    pub(super) fn update(&mut self, token: Token) {
        if !self.is_learnt && token != Token::NONE {
            for (table, &place) in self.tables.iter_mut().zip(&self.places) {
                table.slot_mut(place).update(token);
            }
        }
    }
}

/// Returns the probability of a candidate according to the first context that has counts.
fn first_known<const M: usize>(means: [(u32, u32); M]) -> Chance {
    let known = means.into_iter().find(|(hits, rest)| hits + rest > 0);
    let p = known.map_or(1 << 15, |(hits, rest)| {
        (10 * hits + 4) * 65_536 / (10 * (hits + rest) + 10)
    });
    Chance::new(p.min(65_000), 1)
}
