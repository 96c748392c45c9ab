//! Reads the words of a run as a stream of tokens.

use afterimage_paths::witness::TokenReader;

/// A reader of words as the probes write them. Below its highest set bit, a word contains
/// consecutive tokens, the first in the highest bits. No token crosses the end of a word.
pub(crate) struct WordReader<'a> {
    rest: &'a [u64],
    word: u64,
    /// The number of remaining bits in the current word; 0 only at the end.
    left: u32,
}

impl<'a> WordReader<'a> {
    pub(crate) fn new(words: &'a [u64]) -> Self {
        let mut reader = Self {
            rest: words,
            word: 0,
            left: 0,
        };
        reader.fill();
        reader
    }

    fn fill(&mut self) {
        while let (0, Some((&word, rest))) = (self.left, self.rest.split_first()) {
            self.word = word;
            self.left = 63u32.saturating_sub(word.leading_zeros());
            self.rest = rest;
        }
    }
}

impl TokenReader for WordReader<'_> {
    #[inline]
    fn peek(&mut self, width: u8) -> u32 {
        let width = u32::from(width);
        let bits = match self.left.checked_sub(width) {
            Some(below) => self.word >> below,
            None => self.word << (width - self.left),
        };
        (bits & ((1u64 << width) - 1)) as u32
    }

    #[inline]
    fn take(&mut self, width: u8) -> bool {
        let Some(left) = self.left.checked_sub(u32::from(width)) else {
            return false;
        };
        self.left = left;
        self.fill();
        true
    }

    fn is_empty(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_from_the_top_of_each_word() {
        let mut reader = WordReader::new(&[0b11_0101, 1, 0b1_0011]);
        assert_eq!((reader.peek(3), reader.peek(5)), (0b101, 0b10101));
        assert!(reader.take(3) && !reader.take(3));
        // Zeros follow the end of the word.
        assert_eq!(reader.peek(4), 0b0100);
        assert!(reader.take(2));
        assert_eq!(reader.peek(4), 0b0011);
        assert!(reader.take(4) && reader.is_empty() && !reader.take(1));
    }
}
