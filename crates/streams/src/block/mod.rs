//! Codes one block, as a one-byte tag followed by the codec's bytes. A block stores neither its
//! number of values nor, if it comes last, its size in bytes.

mod decimal;
pub(crate) mod dictionary;
pub(crate) mod packed;
pub(crate) mod plain;
pub(crate) mod runs;

use crate::predicted::{self, Model};
use crate::{BLOCK, Codec, StreamError, varint};

/// The number of tag bits that name the codec. The other bits are its parameter.
const CODEC_BITS: u32 = 3;

/// Predictors cannot learn anything in blocks of fewer values than this.
const PREDICTABLE: usize = 32;

/// Predicted blocks take ten times as long to read as other blocks, so they are used only if they
/// save at least one byte in this many.
const PREDICTED_MARGIN: usize = 7;

/// In blocks of more values than this, storing each value in its own bytes is never the shortest
/// form.
const PLAIN: usize = 64;

/// A block of this many runs may take as little as one byte.
const PIECES: usize = 2;

/// The depth at which a block is nested in other blocks. The columns of a codec are themselves
/// blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nesting {
    depth: u32,
    /// Whether the outermost block may use a primed model. If so, predicting its columns is not
    /// worth the time.
    primed: bool,
}

impl Nesting {
    /// Columns below this depth are packed or plain.
    const DEEPEST: u32 = 3;

    /// A block of a long stream.
    pub(crate) const PRIMED: Self = Self {
        depth: 0,
        primed: true,
    };

    fn deeper(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    /// Whether a block at this depth may have columns.
    fn has_columns(self) -> bool {
        self.depth < Self::DEEPEST
    }

    /// Whether predictors are tried for the block.
    fn is_predicted(self) -> bool {
        self.depth < 2 && !self.primed
    }
}

/// Builds the tag of a codec with a parameter.
pub(crate) fn tag(codec: Codec, parameter: u8) -> u8 {
    codec as u8 | parameter << CODEC_BITS
}

/// Splits a tag into a codec and its parameter.
pub(crate) fn untag(tag: u8) -> Result<(Codec, u8), StreamError> {
    let codec = match tag & ((1 << CODEC_BITS) - 1) {
        0 => Codec::Plain,
        1 => Codec::Runs,
        2 => Codec::Packed,
        3 => Codec::Dictionary,
        4 => Codec::Predicted,
        5 => Codec::Decimal,
        7 => Codec::Blocks,
        _ => return Err(StreamError::Malformed("an unknown codec")),
    };
    Ok((codec, tag >> CODEC_BITS))
}

/// Encodes between 1 and [`BLOCK`] values with each codec that may win according to estimates, and
/// keeps the shortest result.
pub(crate) fn encode(values: &[u64], nesting: Nesting, out: &mut Vec<u8>) {
    debug_assert!((1..=BLOCK).contains(&values.len()));
    let limit = if nesting.has_columns() {
        values.len() / 2
    } else {
        1
    };
    let pieces = runs::pieces(values, limit.max(1));
    if let Some(pieces) = &pieces
        && pieces.len() == 1
    {
        // No other codec is shorter.
        return push(Codec::Runs, out, |out| runs::encode(pieces, nesting, out));
    }
    let start = out.len();
    let plans = packed::plans(values, nesting);
    let mut plans = plans.into_iter();
    match plans.next() {
        Some(plan) => push(Codec::Packed, out, |out| {
            packed::encode(values, plan, nesting, out)
        }),
        None => push(Codec::Plain, out, |out| plain::encode(values, out)),
    }
    let size = |out: &Vec<u8>| out.len() - start;
    if values.len() <= PLAIN {
        keep_shorter(start, Codec::Plain, out, |out| plain::encode(values, out));
    }
    for plan in plans {
        if plan.bytes() <= size(out) + size(out) / 16 {
            keep_shorter(start, Codec::Packed, out, |out| {
                packed::encode(values, plan, nesting, out)
            });
        }
    }
    if let Some(pieces) = &pieces
        && pieces.len() <= size(out) * PIECES
    {
        keep_shorter(start, Codec::Runs, out, |out| {
            runs::encode(pieces, nesting, out)
        });
    }
    if nesting.has_columns()
        && size(out) > values.len()
        && let Some(plan) = decimal::plan(values)
    {
        keep_shorter(start, Codec::Decimal, out, |out| {
            decimal::encode(&plan, nesting, out)
        });
    }
    if nesting.has_columns()
        && size(out) * 4 > values.len()
        && let Some(plan) = dictionary::plan(values, dictionary::limit(values.len()))
        && plan.bytes() < size(out) + size(out) / 4
    {
        keep_shorter(start, Codec::Dictionary, out, |out| {
            dictionary::encode(&plan, nesting, out)
        });
    }
    if nesting.is_predicted()
        && values.len() >= PREDICTABLE
        && out.len() - start > values.len() / 64
        && predicted::recurs(values)
    {
        keep_predicted(start, out, |most, out| {
            predicted::encode_alone(values, most, out)
        });
    }
}

/// Replaces a block with a predicted block if that is sufficiently shorter. Returns whether it was
/// replaced.
pub(crate) fn replace_predicted(
    block: &mut Vec<u8>,
    write: impl FnOnce(usize, &mut Vec<u8>) -> Option<u8>,
) -> bool {
    keep_predicted(0, block, write)
}

/// Appends a predicted block, if `write` succeeds. Returns whether the block was appended.
pub(crate) fn push_predicted(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Option<u8>,
) -> bool {
    let at = out.len();
    out.push(0);
    match write(out) {
        Some(parameter) => out[at] = tag(Codec::Predicted, parameter),
        None => out.truncate(at),
    }
    out.len() > at
}

/// Replaces the block that begins at `start` with a predicted block if that is sufficiently
/// shorter. Returns whether it was replaced. `write` receives the maximum number of bytes.
fn keep_predicted(
    start: usize,
    out: &mut Vec<u8>,
    write: impl FnOnce(usize, &mut Vec<u8>) -> Option<u8>,
) -> bool {
    let end = out.len();
    let size = end - start;
    // The saving must justify the slower reading. The tag takes one byte.
    let most = (size - size / PREDICTED_MARGIN).saturating_sub(2);
    let shorter = push_predicted(out, |out| write(most, out));
    if shorter {
        out.drain(start..end);
    }
    shorter
}

/// Appends a block. `write` appends everything except the tag, and returns the tag's parameter.
pub(crate) fn push(codec: Codec, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> u8) {
    let at = out.len();
    out.push(0);
    let parameter = write(out);
    out[at] = tag(codec, parameter);
}

/// Replaces the block that begins at `start` with another encoding, if that is shorter.
pub(crate) fn keep_shorter(
    start: usize,
    codec: Codec,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> u8,
) {
    let end = out.len();
    push(codec, out, write);
    if out.len() - end < end - start {
        out.drain(start..end);
    } else {
        out.truncate(end);
    }
}

/// Decodes a block into `out`, whose length is the number of values.
pub(crate) fn decode(
    input: &mut &[u8],
    out: &mut [u64],
    nesting: Nesting,
) -> Result<(), StreamError> {
    debug_assert!((1..=BLOCK).contains(&out.len()));
    let (codec, parameter) = untag(varint::byte(input)?)?;
    match codec {
        Codec::Plain => plain::decode(input, parameter, out),
        Codec::Runs if parameter == runs::PIECES && !nesting.has_columns() => Err(TOO_DEEP),
        Codec::Runs => {
            let pieces = runs::decode(input, parameter, out.len() as u64, nesting)?;
            runs::expand(&pieces, out);
            Ok(())
        }
        Codec::Packed => packed::decode(input, parameter, out, nesting),
        Codec::Dictionary | Codec::Decimal if !nesting.has_columns() => Err(TOO_DEEP),
        Codec::Decimal => decimal::decode(input, parameter, out, nesting),
        Codec::Dictionary => dictionary::decode(input, parameter, out, nesting),
        Codec::Predicted => {
            let model = Model::fresh(out.len());
            predicted::decode(input, parameter, model, out)
        }
        Codec::Blocks => Err(StreamError::Malformed(
            "a codec that is not allowed in a block",
        )),
    }
}

const TOO_DEEP: StreamError = StreamError::Malformed("columns that are nested too deeply");

/// Appends a column, which may be empty.
fn encode_nested(values: &[u64], nesting: Nesting, out: &mut Vec<u8>) {
    if !values.is_empty() {
        encode(values, nesting.deeper(), out);
    }
}

/// Decodes a column.
fn decode_nested(input: &mut &[u8], out: &mut [u64], nesting: Nesting) -> Result<(), StreamError> {
    if out.is_empty() {
        return Ok(());
    }
    decode(input, out, nesting.deeper())
}
