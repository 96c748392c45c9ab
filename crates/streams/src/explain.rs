//! Explains how a stream's bytes are used.

use crate::block;
use crate::layout::Parts;
use crate::{Codec, Stream, StreamError};

/// A part of an encoded stream, as returned by [`explain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The codec of a block, or [`Codec::Blocks`] for the overhead of a stream of several blocks.
    pub codec: Codec,
    /// The number of values in the block.
    pub values: u64,
    /// The size of the part in bytes.
    pub bytes: u64,
}

/// Returns the parts of the stream of `len` values at the beginning of `bytes`, in order. The parts
/// are blocks and overhead. The parts' bytes add up to [`Stream::coded_len`], and their values to
/// `len`. Decodes no values, except in streams of one block.
///
/// # Errors
/// Returns the errors of [`Stream::open`].
pub fn explain(bytes: &[u8], len: u64) -> Result<Vec<Part>, StreamError> {
    let stream = Stream::open(bytes, len)?;
    let coded_len = stream.coded_len() as u64;
    let codec = |bytes: &[u8]| match bytes.first() {
        Some(&tag) => Ok(block::untag(tag)?.0),
        None => Err(StreamError::Truncated),
    };
    match stream.parts() {
        Parts::None => Ok(Vec::new()),
        Parts::One => Ok(vec![Part {
            codec: codec(bytes)?,
            values: len,
            bytes: coded_len,
        }]),
        Parts::Blocks(directory) => {
            let mut parts = vec![Part {
                codec: Codec::Blocks,
                values: 0,
                bytes: coded_len,
            }];
            for index in 0..stream.blocks() {
                let block = directory.block(index);
                let bytes = block.len() as u64;
                parts[0].bytes -= bytes;
                parts.push(Part {
                    codec: codec(block)?,
                    values: stream.block_len(index) as u64,
                    bytes,
                });
            }
            Ok(parts)
        }
    }
}
