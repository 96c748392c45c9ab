//! Streams of numbers, coded small and read in both directions: tier 2 of whole execution traces (Zhang and Gupta 2005,
//! section 4).
//!
//! [`encode`] codes a stream in blocks of [`BLOCK`] values, each by the codec that makes it shortest; [`Stream`] opens it and
//! [`Cursor`] walks it. Each block is decoded alone, so that going to any place costs one block.
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
mod explain;
mod predicted;
mod primer;
mod stream;
mod varint;

pub use codec::Codec;
pub use cursor::Cursor;
pub use encode::encode;
pub use error::StreamError;
pub use explain::{Part, explain};
pub use stream::Stream;

/// How many values a block holds, the last of a stream excepted.
pub const BLOCK: usize = 1024;
