//! Where the machine stood now and then, and what happened to memory in between: so that what was at a time is known without following
//! the run from its beginning.
//!
//! A run is cut into *intervals* of about [`INTERVAL`] instructions. At the end of each stand a checkpoint of the machine and the bytes of
//! all *words*, of [`WORD`] bytes each, that were written in the interval. So the bytes of a word at a checkpoint are those of the newest
//! interval before it that wrote the word. Of each interval it is known which words were read and written, and of each one when
//! it was written last, and which *sites*, things in nodes that write memory, wrote it at all. Intervals are the leaves of a tree whose inner vertices know what any of the intervals below read and wrote: who
//! looks for the interval nearest to a moment that wrote a word looks at a few sets for each level.
//!
//! What the host wrote is in the log already, so these words are left out. All of it follows from the run alone: parts of a run give the same bytes
//! as the whole of it.

mod cache;
mod file;
mod group;
mod image;
mod recorder;
mod set;
mod sites;
#[cfg(test)]
mod tests;
mod touched;
mod tree;
mod vertices;

pub use file::{CheckpointError, CheckpointWriter, FileCheckpoints};
pub use image::{Image, RestoreError};
pub(crate) use recorder::{Intervals, Recorder};
use set::{Set, Span};
pub use sites::{Site, SiteAddresses};
pub use vertices::Vertex;
pub(crate) use vertices::Vertices;

/// About how many instructions an interval has.
pub const INTERVAL: u64 = 1 << 19;
/// Bytes of a line.
pub const LINE: u64 = 64;
/// Bytes of a word.
pub const WORD: u64 = 4;
/// How many children a vertex of the tree has at most.
pub(crate) const CHILDREN: usize = 16;

/// A line of a memory, as one number: the memory in the upper half.
pub(crate) type Key = u64;

/// The line that a byte of a memory is in.
pub(crate) fn key_of(memory: u32, address: u64) -> Key {
    (u64::from(memory) << 32) | (address / LINE)
}

/// The memory of a line, and its first byte.
pub(crate) fn place_of(key: Key) -> (u32, u64) {
    ((key >> 32) as u32, (key & 0xffff_ffff) * LINE)
}

/// The words of a line that the bytes from `first` to `last`, both in it, are in: a bit for each.
pub(crate) fn words(first: u64, last: u64) -> u16 {
    let (first, last) = (first % LINE / WORD, last % LINE / WORD);
    ((2u32 << last) - (1 << first)) as u16
}

/// The words that a range of bytes is in.
pub(crate) fn spans(memory: u32, address: u64, length: u64) -> Set {
    let end = address + length;
    let mut set = Set::default();
    let mut at = address;
    while at < end {
        let line = at / LINE;
        // Lines that are whole are one span.
        let whole = (end / LINE).saturating_sub(line);
        let (count, next) = if at.is_multiple_of(LINE) && whole > 0 {
            (whole, (line + whole) * LINE)
        } else {
            (1, end.min((line + 1) * LINE))
        };
        let mask = words(at, (next - 1).min(line * LINE + LINE - 1));
        set.push(Span {
            first: key_of(memory, at),
            count: count as u32,
            mask,
        });
        at = next;
    }
    set
}
