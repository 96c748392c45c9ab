//! The layout of a stream's bytes: nothing, one block, runs, many blocks, or ranks and their
//! dictionary.

use std::sync::OnceLock;

use crate::block::runs::Piece;
use crate::block::{self, Nesting, dictionary, runs};
use crate::blocks::Directory;
use crate::predicted::Model;
use crate::primer::{self, Primer};
use crate::{BLOCK, Codec, StreamError, varint};

/// The bytes of a stream, decoded as far as opening requires.
#[derive(Debug)]
pub(crate) enum Layout<'a> {
    /// No values, and no bytes.
    Empty,
    /// One block of any codec. It is already decoded, because only decoding reveals its end.
    Single(Box<[u64]>),
    /// Runs, of any length.
    Runs {
        pieces: Vec<Piece>,
        /// The end of each piece, in values.
        ends: Vec<u64>,
    },
    /// Many blocks.
    Blocks {
        directory: Directory<'a>,
        /// The blocks that prime the predictors, if some blocks are predicted.
        primer: Option<Primer>,
        /// The model with which all blocks except the primer's begin, once a block has needed it.
        model: OnceLock<Result<Box<Model>, StreamError>>,
    },
    /// Blocks of ranks in one dictionary.
    Ranked {
        distinct: Box<[u64]>,
        ranks: Box<Layout<'a>>,
    },
}

/// The parts of a stream.
pub(crate) enum Parts<'s, 'a> {
    None,
    One,
    Blocks(&'s Directory<'a>),
}

impl<'a> Layout<'a> {
    /// Returns the parts of the stream.
    pub(crate) fn parts(&self) -> Parts<'_, 'a> {
        match self {
            Self::Empty => Parts::None,
            Self::Single(_) | Self::Runs { .. } => Parts::One,
            Self::Blocks { directory, .. } => Parts::Blocks(directory),
            Self::Ranked { ranks, .. } => ranks.parts(),
        }
    }

    /// Decodes a block.
    pub(crate) fn load(&self, index: u64, out: &mut [u64]) -> Result<(), StreamError> {
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

    /// Parses a stream's bytes.
    pub(crate) fn decode(input: &mut &'a [u8], len: u64) -> Result<Self, StreamError> {
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

/// Writes the values from position `from` on.
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
