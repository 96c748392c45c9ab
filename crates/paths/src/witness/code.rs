//! Reads the tokens of a group.

use super::{Token, TokenReader};

/// Tokens up to this width are found in one step.
const SHORT: u8 = 8;

/// The prefix-free code of a group. A token is identified by its rank among the tokens of its
/// group.
#[derive(Debug)]
pub(super) struct Code {
    /// The tokens of a canonical code, ascending by width and value.
    tokens: Vec<Token>,
    /// The rank and width of the token with which the next bits begin, indexed by these bits. The
    /// longest short token determines the number of these bits.
    short: Vec<(u32, u8)>,
    short_width: u8,
    longest: u8,
}

impl Code {
    /// Returns the code with these tokens. They may be in any order, with repetitions.
    pub(super) fn new(mut tokens: Vec<Token>) -> Self {
        tokens.sort_unstable_by_key(|t| (t.width, t.value));
        tokens.dedup();
        let longest = tokens.last().map_or(1, |t| t.width);
        let short_width = longest.min(SHORT);
        let mut short = vec![(u32::MAX, 0); 1 << short_width];
        for (rank, token) in tokens.iter().enumerate() {
            if token.width <= short_width {
                let free = short_width - token.width;
                let first = (token.value as usize) << free;
                short[first..first + (1 << free)].fill((rank as u32, token.width));
            }
        }
        Self {
            tokens,
            short,
            short_width,
            longest,
        }
    }

    /// Returns the rank of a token.
    pub(super) fn rank(&self, token: Token) -> Option<u32> {
        let key = |t: &Token| (t.width, t.value);
        let found = self.tokens.binary_search_by_key(&key(&token), key);
        found.ok().map(|rank| rank as u32)
    }

    /// Returns the rank of the next token, or `None` if the next bits are not a token.
    #[inline]
    pub(super) fn read<R: TokenReader>(&self, reader: &mut R) -> Option<u32> {
        let (rank, width) = self.short[reader.peek(self.short_width) as usize];
        if width == 0 {
            return self.read_long(reader);
        }
        reader.take(width).then_some(rank)
    }

    /// Reads a token of more than [`SHORT`] bits. Tokens of one width are consecutive numbers,
    /// below the prefixes of longer tokens.
    #[cold]
    fn read_long<R: TokenReader>(&self, reader: &mut R) -> Option<u32> {
        let next = reader.peek(self.longest);
        let reaches = |t: &Token| u64::from(t.value) << (self.longest - t.width) <= u64::from(next);
        let rank = self.tokens.partition_point(reaches).checked_sub(1)?;
        let token = self.tokens[rank];
        let begins = next >> (self.longest - token.width) == token.value;
        (begins && reader.take(token.width)).then_some(rank as u32)
    }
}
