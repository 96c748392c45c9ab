//! A coded stream, opened for reading.

use std::sync::OnceLock;

use crate::block::runs::Piece;
use crate::block::{self, Nesting, dictionary, runs};
use crate::blocks::Directory;
use crate::predicted::Model;
use crate::primer::{self, Primer};
use crate::{BLOCK, Codec, Cursor, StreamError, varint};

/// A coded stream. Of a long one, nothing but a directory is decoded until values are asked for.
#[derive(Debug)]
pub struct Stream<'a> {
    len: u64,
    coded_len: usize,
    layout: Layout<'a>,
}

#[derive(Debug)]
enum Layout<'a> {
    /// No values, no bytes.
    Empty,
    /// One block of any codec, decoded: only that tells where it ends.
    Single(Box<[u64]>),
    /// Runs, of any length.
    Runs {
        pieces: Vec<Piece>,
        /// Where each piece ends, in values.
        ends: Vec<u64>,
    },
    /// Many blocks.
    Blocks {
        directory: Directory<'a>,
        /// If some are predicted, what primes the predictors.
        primer: Option<Primer>,
        /// The model that all but the primer's blocks begin with, once it was needed.
        model: OnceLock<Result<Box<Model>, StreamError>>,
    },
    /// Blocks of ranks in one dictionary.
    Ranked {
        distinct: Box<[u64]>,
        ranks: Box<Layout<'a>>,
    },
}

/// What a stream is made of.
pub(crate) enum Parts<'s, 'a> {
    None,
    One,
    Blocks(&'s Directory<'a>),
}

impl<'a> Stream<'a> {
    /// Opens the stream of `len` values with which `bytes` begin. Bytes behind it are left alone: see
    /// [`coded_len`](Self::coded_len).
    ///
    /// Time and memory: linear in the number of blocks.
    ///
    /// # Errors
    /// If the bytes end too early or are none that [`encode`](crate::encode) writes. Not all that can be wrong is found
    /// here; the rest is when it is read.
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

    /// How many values there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many of the bytes it was opened with belong to the stream.
    pub fn coded_len(&self) -> usize {
        self.coded_len
    }

    /// A cursor before the first value.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self)
    }

    /// Appends all values to `out`. On an error, `out` is as before.
    ///
    /// # Errors
    /// If bytes are malformed, or there is no memory for so many values.
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

    /// How many blocks there are.
    pub(crate) fn blocks(&self) -> u64 {
        self.len.div_ceil(BLOCK as u64)
    }

    /// What the stream is made of.
    pub(crate) fn parts(&self) -> Parts<'_, 'a> {
        self.layout.parts()
    }

    /// How many values a block holds.
    pub(crate) fn block_len(&self, index: u64) -> usize {
        (self.len - index * BLOCK as u64).min(BLOCK as u64) as usize
    }

    /// Decodes a block, of [`block_len`](Self::block_len) values.
    pub(crate) fn load(&self, index: u64, out: &mut [u64]) -> Result<(), StreamError> {
        self.layout.load(index, out)
    }
}

impl<'a> Layout<'a> {
    /// What it is made of.
    fn parts(&self) -> Parts<'_, 'a> {
        match self {
            Self::Empty => Parts::None,
            Self::Single(_) | Self::Runs { .. } => Parts::One,
            Self::Blocks { directory, .. } => Parts::Blocks(directory),
            Self::Ranked { ranks, .. } => ranks.parts(),
        }
    }

    /// Decodes a block.
    fn load(&self, index: u64, out: &mut [u64]) -> Result<(), StreamError> {
        match self {
            Self::Empty => Ok(()),
            Self::Single(values) => {
                out.copy_from_slice(values);
                Ok(())
            }
            Self::Runs { pieces, ends } => {
                load_runs(pieces, ends, index * BLOCK as u64, out);
                Ok(())
            }
            Self::Blocks {
                directory,
                primer,
                model,
            } => primer::decode(directory.block(index), out, || match *primer {
                None => Err(StreamError::Malformed("predictions without a model")),
                Some(primer) if primer.contains(index) => primer.model(directory, Some(index)),
                Some(primer) => {
                    let primed = || primer.model(directory, None).map(Box::new);
                    model.get_or_init(primed).clone().map(|model| *model)
                }
            }),
            Self::Ranked { distinct, ranks } => {
                ranks.load(index, out)?;
                dictionary::look_up(distinct, out)
            }
        }
    }

    /// Takes a stream's bytes.
    fn decode(input: &mut &'a [u8], len: u64) -> Result<Self, StreamError> {
        if len == 0 {
            return Ok(Self::Empty);
        }
        let whole = *input;
        let (codec, parameter) = block::untag(varint::byte(input)?)?;
        match codec {
            Codec::Runs => {
                let pieces = runs::decode(input, parameter, len, Nesting::default())?;
                let ends = pieces
                    .iter()
                    .scan(0, |end, piece| {
                        *end += piece.len;
                        Some(*end)
                    })
                    .collect();
                Ok(Self::Runs { pieces, ends })
            }
            Codec::Blocks if len > BLOCK as u64 => {
                let blocks = len.div_ceil(BLOCK as u64);
                let primer = match parameter {
                    0 => None,
                    _ => Some(Primer::from_parameter(parameter, blocks)?),
                };
                Ok(Self::Blocks {
                    directory: Directory::decode(input, len)?,
                    primer,
                    model: OnceLock::new(),
                })
            }
            Codec::Dictionary if len > BLOCK as u64 && parameter == 0 => {
                let distinct = dictionary::decode_values(input, len, Nesting::default())?;
                if block::untag(input.first().copied().unwrap_or(0))?.0 != Codec::Blocks {
                    return Err(StreamError::Malformed("ranks that are not in blocks"));
                }
                let ranks = Box::new(Self::decode(input, len)?);
                Ok(Self::Ranked { distinct, ranks })
            }
            _ if len <= BLOCK as u64 => {
                *input = whole;
                let mut values = vec![0; len as usize];
                block::decode(input, &mut values, Nesting::default())?;
                Ok(Self::Single(values.into()))
            }
            _ => Err(StreamError::Malformed("a long stream in one block")),
        }
    }
}

/// The values from position `from` on.
fn load_runs(pieces: &[Piece], ends: &[u64], mut from: u64, mut out: &mut [u64]) {
    let mut index = ends.partition_point(|&end| end <= from);
    while !out.is_empty() {
        let piece = pieces[index];
        let into = from - (ends[index] - piece.len);
        let count = (out.len() as u64).min(ends[index] - from);
        let (slots, rest) = out.split_at_mut(count as usize);
        runs::fill(piece, into, slots);
        (out, from, index) = (rest, from + count, index + 1);
    }
}
