//! Codes arithmetic runs, which are the l:h:s series of Zhang and Gupta 2001, section 3. A block or
//! a whole stream consists of several runs.
//!
//! A stream of any length with few pieces is a single block of runs. With other codecs, a block has
//! at most [`BLOCK`](crate::BLOCK) values. The lengths, first values and strides of the pieces are
//! columns, and each column is itself a block. So a loop nest that starts its inner loop at equal
//! distances costs only a few bytes.

use super::{Nesting, decode_nested, encode_nested};
use crate::{BLOCK, StreamError, varint};

/// A piece of `len` values, which are `first`, `first + stride`, …, modulo 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) first: u64,
    pub(crate) stride: u64,
    pub(crate) len: u64,
}

impl Piece {
    /// Returns the value `index` places after the first.
    #[inline]
    pub(crate) fn at(&self, index: u64) -> u64 {
        self.first.wrapping_add(self.stride.wrapping_mul(index))
    }
}

/// The tag's parameters, which say how the pieces of a block are stored.
pub(super) const CONSTANT: u8 = 0;
pub(super) const ARITHMETIC: u8 = 1;
pub(super) const PIECES: u8 = 2;

/// Returns the pieces of a stream, each as long as possible. Returns `None` if there are more than
/// `limit`.
///
/// The piece after a run starts as the single value that breaks the run, unless that value also
/// begins a run of three. So a break inside a run does not cost two pieces with false strides.
pub(crate) fn pieces(values: &[u64], limit: usize) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = values;
    while let Some(&first) = rest.first() {
        if pieces.len() == limit {
            return None;
        }
        let stride = match *rest {
            [_, second] => second.wrapping_sub(first),
            [_, second, third, ..] if third.wrapping_sub(second) == second.wrapping_sub(first) => {
                second.wrapping_sub(first)
            }
            _ => {
                let len = 1;
                pieces.push(Piece {
                    first,
                    stride: 0,
                    len,
                });
                rest = &rest[1..];
                continue;
            }
        };
        let len = 1 + rest
            .windows(2)
            .take_while(|pair| pair[1].wrapping_sub(pair[0]) == stride)
            .count();
        pieces.push(Piece {
            first,
            stride,
            len: len as u64,
        });
        rest = &rest[len..];
    }
    Some(pieces)
}

/// Appends pieces and returns the tag's parameter.
pub(crate) fn encode(pieces: &[Piece], nesting: Nesting, out: &mut Vec<u8>) -> u8 {
    if let &[piece] = pieces {
        varint::put(out, piece.first);
        if piece.stride == 0 {
            return CONSTANT;
        }
        varint::put(out, varint::zigzag(piece.stride));
        return ARITHMETIC;
    }
    varint::put(out, pieces.len() as u64);
    let lens: Vec<_> = pieces[..pieces.len() - 1]
        .iter()
        .map(|piece| piece.len - 1)
        .collect();
    // A first value is stored as its distance from the value with which the previous piece would
    // have continued.
    let mut expected = 0;
    let firsts: Vec<_> = pieces
        .iter()
        .map(|piece| {
            let jump = varint::zigzag(piece.first.wrapping_sub(expected));
            expected = piece.at(piece.len);
            jump
        })
        .collect();
    // The stride of a single value is arbitrary. The previous piece's stride costs the least.
    let mut last = 0;
    let strides: Vec<_> = pieces
        .iter()
        .map(|piece| {
            if piece.len > 1 {
                last = varint::zigzag(piece.stride);
            }
            last
        })
        .collect();
    for column in [lens, firsts, strides] {
        encode_nested(&column, nesting, out);
    }
    PIECES
}

/// Decodes the pieces of `len` values, `len > 0`.
pub(crate) fn decode(
    input: &mut &[u8],
    parameter: u8,
    len: u64,
    nesting: Nesting,
) -> Result<Vec<Piece>, StreamError> {
    match parameter {
        CONSTANT | ARITHMETIC => {
            let first = varint::get(input)?;
            let stride = match parameter {
                CONSTANT => 0,
                _ => varint::unzigzag(varint::get(input)?),
            };
            Ok(vec![Piece { first, stride, len }])
        }
        PIECES => {
            let count = varint::get(input)?;
            if count < 2 || count > len.min(BLOCK as u64) {
                return Err(StreamError::Malformed("an impossible number of runs"));
            }
            let count = count as usize;
            let mut columns = [vec![0; count - 1], vec![0; count], vec![0; count]];
            for column in &mut columns {
                decode_nested(input, column, nesting)?;
            }
            assemble(&columns, len)
        }
        _ => Err(StreamError::Malformed("an unknown kind of runs")),
    }
}

/// Builds pieces from their columns, which are the lengths (all but the last), first values, and
/// strides.
fn assemble([lens, firsts, strides]: &[Vec<u64>; 3], len: u64) -> Result<Vec<Piece>, StreamError> {
    let (mut left, mut expected) = (len, 0u64);
    let mut pieces = Vec::with_capacity(firsts.len());
    for (index, (first, stride)) in firsts.iter().zip(strides).enumerate() {
        let len = match lens.get(index) {
            Some(len) => {
                len.checked_add(1)
                    .filter(|&len| len < left)
                    .ok_or(StreamError::Malformed(
                        "runs that are longer than the stream",
                    ))?
            }
            None => left,
        };
        left -= len;
        let piece = Piece {
            first: expected.wrapping_add(varint::unzigzag(*first)),
            stride: varint::unzigzag(*stride),
            len,
        };
        // The encoder has no stride for a single value, so it continued from the value itself.
        expected = piece.at(if len > 1 { len } else { 0 });
        pieces.push(piece);
    }
    Ok(pieces)
}

/// Writes the values of pieces, from the beginning.
pub(crate) fn expand(pieces: &[Piece], out: &mut [u64]) {
    let mut rest = out;
    for piece in pieces {
        let (slots, behind) = rest.split_at_mut((piece.len as usize).min(rest.len()));
        fill(*piece, 0, slots);
        rest = behind;
    }
}

/// Writes the values of one piece, beginning with the value at `from`.
pub(crate) fn fill(piece: Piece, from: u64, out: &mut [u64]) {
    let first = piece.at(from);
    for (index, slot) in out.iter_mut().enumerate() {
        *slot = first.wrapping_add(piece.stride.wrapping_mul(index as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_break_costs_one_piece() {
        let values = [5, 7, 9, 100, 9, 11, 13];
        let found = pieces(&values, 10).unwrap();
        let lens: Vec<_> = found.iter().map(|piece| piece.len).collect();
        assert_eq!(lens, [3, 1, 3]);
        assert_eq!(pieces(&values, 2), None);
    }
}
