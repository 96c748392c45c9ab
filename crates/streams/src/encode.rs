//! Codes a stream.

use crate::block::{self, Nesting, runs};
use crate::{BLOCK, Codec, blocks};

/// Appends one coded stream to `out`: nothing for no values, 2 to 6 bytes for a constant or arithmetic one of small numbers.
///
/// How many values there are is not stored: [`Stream::open`](crate::Stream::open) wants to be told. Time: linear.
pub fn encode(values: &[u64], out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    if values.len() <= BLOCK {
        return block::encode(values, Nesting::default(), out);
    }
    let start = out.len();
    let pieces = runs::pieces(values, BLOCK);
    if let Some(pieces) = &pieces {
        block::push(Codec::Runs, out, |out| {
            runs::encode(pieces, Nesting::default(), out)
        });
        if out.len() - start <= 2 * values.len() / BLOCK {
            // A block takes two bytes at least.
            return;
        }
    }
    let in_blocks = |out: &mut Vec<u8>| {
        let mut bytes = Vec::new();
        let ends: Vec<_> = values
            .chunks(BLOCK)
            .map(|chunk| {
                block::encode(chunk, Nesting::default(), &mut bytes);
                bytes.len()
            })
            .collect();
        blocks::encode(&ends, &bytes, out);
        0
    };
    if pieces.is_some() {
        block::keep_shorter(start, Codec::Blocks, out, in_blocks);
    } else {
        block::push(Codec::Blocks, out, in_blocks);
    }
}
