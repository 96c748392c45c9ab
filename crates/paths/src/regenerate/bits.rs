//! Reads numbers from words.

use super::RegenerateError;

/// The words that the probes write. Below its highest set bit, a word contains numbers in sequence,
/// the first at the top. No number crosses a word's end.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    /// The rest of the current word.
    word: u64,
    /// The number of bits left in the current word.
    left: u32,
    /// The next word, which has at least one bit, or 0 for none.
    next: u64,
}

impl Bits {
    /// Holds back a word, and returns the word held back before, if there was one.
    pub(super) fn push(&mut self, word: u64) -> Result<Option<u64>, RegenerateError> {
        if word == 0 {
            return Err(RegenerateError::Bits);
        }
        // Nothing was written into this word.
        if word == 1 {
            return Ok(None);
        }
        let ready = std::mem::replace(&mut self.next, word);
        Ok((ready != 0).then_some(ready))
    }

    /// Takes the word that was held back, if there is one.
    pub(super) fn last(&mut self) -> Option<u64> {
        let last = std::mem::take(&mut self.next);
        (last != 0).then_some(last)
    }

    /// Starts reading a word.
    pub(super) fn open(&mut self, word: u64) {
        self.word = word;
        self.left = 63 - word.leading_zeros();
    }

    /// Creates a reader that holds back this word, or no word if it is 0. Returns `None` if the
    /// word is invalid.
    pub(super) fn keeping(word: u64) -> Option<Self> {
        (word != 1).then_some(Self {
            next: word,
            ..Self::default()
        })
    }

    /// Returns the word held back, or 0.
    pub(super) fn kept(&self) -> u64 {
        self.next
    }

    /// Continues in a word that has `left` bits left.
    pub(super) fn go_on(&mut self, word: u64, left: u32) {
        (self.word, self.left) = (word, left);
    }

    /// Returns the number of bits left in the word.
    pub(super) fn remaining(&self) -> u32 {
        self.left
    }

    /// Whether any bits are left in the word.
    #[inline]
    pub(super) fn left(&self) -> bool {
        self.left > 0
    }

    /// Reads the next number of `width` bits.
    #[inline]
    pub(super) fn take(&mut self, width: u8) -> Result<u32, RegenerateError> {
        let number = self.peek(width)?;
        self.left -= u32::from(width);
        Ok(number)
    }

    /// Reads like [`take`](Self::take), without consuming the bits.
    #[inline]
    pub(super) fn peek(&self, width: u8) -> Result<u32, RegenerateError> {
        let width = u32::from(width);
        if width > self.left {
            return Err(RegenerateError::Bits);
        }
        let mask = (1u64 << width) - 1;
        Ok((self.word >> (self.left - width) & mask) as u32)
    }

    /// Whether bits are left after the next number of `width` bits.
    pub(super) fn more_than(&self, width: u8) -> bool {
        self.left > u32::from(width)
    }
}
