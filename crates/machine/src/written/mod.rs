//! Which lines of memory a run writes, stretch by stretch: who looks for the last writer of a byte finds the stretch that has it.
//!
//! Moments of a run cut it into *stretches*, and memory is cut into *lines* of 64 bytes. A section of kind [`Kind::WRITTEN`](afterimage_trace::Kind::WRITTEN) holds which lines are written in
//! each stretch, and in each 16 stretches together, and in 16 of these, and so on; `docs/FORMAT.md` describes it. Whoever executes or follows the run collects them ([`WrittenLinesBuilder`]);
//! [`WrittenLines`] reads them: the last stretch that wrote a line is found in a tree.

mod build;
mod read;
mod set;
mod watched;

pub use build::WrittenLinesBuilder;
pub use read::{WrittenLines, WrittenLinesError};
pub use set::{LineRun, LineSet};
pub use watched::{WATCHED, WatchedBytes};

/// Bytes of a line.
pub const LINE: u64 = 64;
/// How many vertices of a level are one of the next.
const FAN: usize = 16;
/// A chunk is complete when it has so many bytes.
const CHUNK: usize = 1 << 20;
/// Most bytes that a set may have: 33 million runs.
const LARGEST: u64 = 1 << 26;
/// The version of the section.
const VERSION: u64 = 1;
