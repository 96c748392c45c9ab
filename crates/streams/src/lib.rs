//! Compact streams of numbers that can be read in both directions. They are tier 2 of whole
//! execution traces (Zhang and Gupta 2005, section 4).
//!
//! [`encode`] encodes a stream in blocks of [`BLOCK`] values. Each block uses the codec with the
//! shortest estimated result, or a codec that is much faster to read and takes little more space.
//! [`Stream`] opens a stream, and [`Cursor`] moves along it. Each block is decoded alone, so moving
//! to any position means decoding one block.
//!
//! | codec | for | decoding |
//! |---|---|---|
//! | [`Codec::Plain`] | a handful of values | |
//! | [`Codec::Runs`] | constant and arithmetic runs, including streams of any length | as fast as memory |
//! | [`Codec::Packed`] | narrow ranges, differences, periods, interleaved strides; exceptions are patched in | 400 to 1,000 million values a second |
//! | [`Codec::Dictionary`] | few distinct values, in a block or in the stream | as its ranks |
//! | [`Codec::Decimal`] | floats with few digits after the point | as its numbers |
//! | [`Codec::Predicted`] | values that recur in context | 5 million values a second where most are new, 35 where most recur |
//!
//! # Format
//!
//! A stream of no values has no bytes. Any other stream begins with a tag, whose lower three bits
//! are the codec and whose upper five bits are its parameter. Up to [`BLOCK`] values, or any number
//! of values in runs, are one block. More values are stored as a directory and several blocks, or
//! as a dictionary and ranks in blocks. A directory has the smallest block size, the width of the
//! excesses over it, and the packed excesses. The columns of runs, dictionaries and decimal floats
//! are themselves blocks, nested at most three deep. Each codec's module describes its bytes.
//! Neither a stream nor a block stores its number of values.
//!
//! The bytes may be hostile. Reading them never panics, and takes at most 300 KB of memory, plus a
//! small multiple of the size of the bytes and the values.
//!
//! ```
//! use afterimage_streams::{Stream, encode};
//!
//! let values: Vec<u64> = (0..1_000_000).map(|i| 5 + 4 * i).collect();
//! let mut bytes = Vec::new();
//! encode(&values, &mut bytes);
//! assert_eq!(bytes.len(), 3);
//!
//! let stream = Stream::open(&bytes, 1_000_000)?;
//! let mut cursor = stream.cursor();
//! cursor.seek(500_000)?;
//! assert_eq!(cursor.next()?, Some(2_000_005));
//! assert_eq!(cursor.previous()?, Some(2_000_005));
//! assert_eq!(cursor.get(1)?, 9);
//! # Ok::<(), afterimage_streams::StreamError>(())
//! ```

mod bits;
mod block;
mod blocks;
mod codec;
mod cursor;
mod encode;
mod error;
mod estimate;
mod explain;
mod layout;
mod predicted;
mod primer;
mod stream;
mod varint;

pub use codec::Codec;
pub use cursor::Cursor;
pub use encode::encode;
pub use error::StreamError;
pub use estimate::estimate;
pub use explain::{Part, explain};
pub use stream::Stream;

/// The number of values in a block. The last block of a stream may have fewer.
pub const BLOCK: usize = 1024;
