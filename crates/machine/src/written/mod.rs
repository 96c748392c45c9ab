//! Records the lines of memory that a run writes, stretch by stretch. The search for the last
//! writer of a byte uses this record to find the right stretch.
//!
//! Moments of a run cut it into *stretches*, and memory is cut into *lines* of 64 bytes. A section
//! of kind [`Kind::WRITTEN`](afterimage_trace::Kind::WRITTEN) contains the lines written in each
//! stretch, in each group of 16 stretches, in each group of 16 of these groups, and so on.
//! `docs/FORMAT.md` describes the section. [`WrittenLinesBuilder`] collects the lines while the run
//! is executed or followed. [`WrittenLines`] reads them, and searches a tree for the last stretch
//! that wrote a line.

mod build;
mod read;
mod set;
mod watched;

pub use build::WrittenLinesBuilder;
pub use read::{WrittenLines, WrittenLinesError};
pub use set::{LineRun, LineSet};
pub use watched::{WATCHED, WatchedBytes};

/// The number of bytes in a line.
pub const LINE: u64 = 64;
/// The number of vertices of a level that form one vertex of the next level.
const FAN: usize = 16;
/// The size in bytes at which a chunk is complete.
const CHUNK: usize = 1 << 20;
/// The maximum size of a set in bytes, which allows 33 million runs.
const LARGEST: u64 = 1 << 26;
/// The version of the section.
const VERSION: u64 = 1;
