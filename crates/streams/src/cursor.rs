//! A position between two values of a stream.

use crate::{BLOCK, Stream, StreamError};

/// A position between two values of a stream. It can move over either value, and decodes one block
/// at a time.
#[derive(Clone, Debug)]
pub struct Cursor<'s> {
    stream: &'s Stream<'s>,
    position: u64,
    /// The block to which `values` belong, or `None` at first.
    block: Option<u64>,
    values: Vec<u64>,
}

impl<'s> Cursor<'s> {
    pub(crate) fn new(stream: &'s Stream<'s>) -> Self {
        Self {
            stream,
            position: 0,
            block: None,
            values: Vec::new(),
        }
    }

    /// Returns the number of values before the cursor.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Moves so that `position` values are before the cursor. Time: O(1), because the block is
    /// decoded only when a value is requested.
    ///
    /// # Errors
    /// Returns an error if the stream is shorter. The cursor then does not move.
    pub fn seek(&mut self, position: u64) -> Result<(), StreamError> {
        let len = self.stream.len();
        if position > len {
            return Err(StreamError::OutOfBounds { position, len });
        }
        self.position = position;
        Ok(())
    }

    /// Returns the value after the cursor and moves past it. Returns `None` at the end. Time:
    /// amortised O(1).
    ///
    /// # Errors
    /// Returns an error if the value's block is malformed. The cursor then does not move.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail and turn round, which iterators cannot"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<u64>, StreamError> {
        if self.position == self.stream.len() {
            return Ok(None);
        }
        let value = self.value(self.position)?;
        self.position += 1;
        Ok(Some(value))
    }

    /// Returns the value before the cursor and moves before it. Returns `None` at the beginning.
    /// Time: amortised O(1).
    ///
    /// # Errors
    /// Returns an error if the value's block is malformed. The cursor then does not move.
    #[inline]
    pub fn previous(&mut self) -> Result<Option<u64>, StreamError> {
        let Some(position) = self.position.checked_sub(1) else {
            return Ok(None);
        };
        let value = self.value(position)?;
        self.position = position;
        Ok(Some(value))
    }

    /// Returns the value at `index`, counted from 0. Does not move the cursor. Time: O(1) within
    /// the block used last. Otherwise, decodes a block.
    ///
    /// # Errors
    /// Returns an error if the stream is shorter, or the value's block is malformed.
    #[inline]
    pub fn get(&mut self, index: u64) -> Result<u64, StreamError> {
        let len = self.stream.len();
        if index >= len {
            return Err(StreamError::OutOfBounds {
                position: index,
                len,
            });
        }
        self.value(index)
    }

    #[inline]
    fn value(&mut self, index: u64) -> Result<u64, StreamError> {
        let block = index / BLOCK as u64;
        if self.block != Some(block) {
            self.load(block)?;
        }
        Ok(self.values[(index % BLOCK as u64) as usize])
    }

    #[cold]
    fn load(&mut self, block: u64) -> Result<(), StreamError> {
        self.block = None;
        self.values.resize(self.stream.block_len(block), 0);
        self.stream.load(block, &mut self.values)?;
        self.block = Some(block);
        Ok(())
    }
}
