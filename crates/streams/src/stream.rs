//! An encoded stream, opened for reading.

use crate::layout::{Layout, Parts};
use crate::{BLOCK, Cursor, StreamError};

/// An encoded stream. Opening a long stream decodes only a directory. Blocks are decoded when
/// values are requested.
#[derive(Debug)]
pub struct Stream<'a> {
    len: u64,
    coded_len: usize,
    layout: Layout<'a>,
}

impl<'a> Stream<'a> {
    /// Opens the stream of `len` values at the beginning of `bytes`. Further bytes are ignored; see
    /// [`coded_len`](Self::coded_len).
    ///
    /// Time and memory are linear in the number of blocks.
    ///
    /// # Errors
    /// Returns an error if the bytes end too early, or [`encode`](crate::encode) cannot have
    /// written them. Some faults are found only when values are read.
    pub fn open(bytes: &'a [u8], len: u64) -> Result<Self, StreamError> {
        let mut input = bytes;
        let layout = Layout::decode(&mut input, len)?;
        let coded_len = bytes.len() - input.len();
        Ok(Self {
            len,
            coded_len,
            layout,
        })
    }

    /// Returns the number of values.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of given bytes that belong to the stream.
    pub fn coded_len(&self) -> usize {
        self.coded_len
    }

    /// Returns a cursor before the first value.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self)
    }

    /// Appends all values to `out`. On an error, `out` is unchanged.
    ///
    /// # Errors
    /// Returns an error if the bytes are malformed, or there is not enough memory for the values.
    pub fn decode_all(&self, out: &mut Vec<u64>) -> Result<(), StreamError> {
        let before = out.len();
        let len = usize::try_from(self.len).map_err(|_| StreamError::TooLong(self.len))?;
        out.try_reserve_exact(len)
            .map_err(|_| StreamError::TooLong(self.len))?;
        if let Layout::Runs { pieces, .. } = &self.layout {
            for &piece in pieces {
                out.extend((0..piece.len).map(|index| piece.at(index)));
            }
            return Ok(());
        }
        out.resize(before + len, 0);
        let chunks = out[before..].chunks_mut(BLOCK);
        let result = (0..)
            .zip(chunks)
            .try_for_each(|(index, chunk)| self.load(index, chunk));
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    /// Returns the number of blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.len.div_ceil(BLOCK as u64)
    }

    /// Returns the parts of the stream.
    pub(crate) fn parts(&self) -> Parts<'_, 'a> {
        self.layout.parts()
    }

    /// Returns the number of values in a block.
    pub(crate) fn block_len(&self, index: u64) -> usize {
        (self.len - index * BLOCK as u64).min(BLOCK as u64) as usize
    }

    /// Decodes a block, which has [`block_len`](Self::block_len) values.
    pub(crate) fn load(&self, index: u64, out: &mut [u64]) -> Result<(), StreamError> {
        self.layout.load(index, out)
    }
}
