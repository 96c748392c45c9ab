//! Stores checkpoints of the machine and the changes to memory between them. With them, the state
//! at any time can be restored without following the run from its beginning.
//!
//! A run is cut into *intervals* of about [`INTERVAL`] instructions. Each interval is stored with a
//! checkpoint of the machine at its end, and with the bytes of all *words* of [`WORD`] bytes that
//! it wrote. So a word's bytes at a checkpoint are stored with the last earlier interval that wrote
//! the word. Each interval also stores the words that it read and wrote. For each written word, it
//! stores the time of the last write, and the *sites* (parts of nodes that write memory) that wrote
//! the word. Intervals are the leaves of a tree. Its inner vertices store the words that the
//! intervals below them read and wrote. So a search for the last interval that wrote a word before
//! a moment examines only a few sets per level.
//!
//! The bytes of words that the host wrote last are already in the log, so they are left out.
//! Checkpoints depend only on the run, so checkpoints of parts of a run have the same bytes as
//! checkpoints of the whole run.

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

/// The approximate number of instructions per interval.
pub const INTERVAL: u64 = 1 << 19;
/// The number of bytes in a line.
pub const LINE: u64 = 64;
/// The number of bytes in a word.
pub const WORD: u64 = 4;
/// The maximum number of children of a vertex in the tree.
pub(crate) const CHILDREN: usize = 16;

/// A line of a memory, as one number with the memory in the upper half.
pub(crate) type Key = u64;

/// Returns the line that contains a byte of a memory.
pub(crate) fn key_of(memory: u32, address: u64) -> Key {
    (u64::from(memory) << 32) | (address / LINE)
}

/// Returns the memory of a line, and the address of the line's first byte.
pub(crate) fn place_of(key: Key) -> (u32, u64) {
    ((key >> 32) as u32, (key & 0xffff_ffff) * LINE)
}

/// Returns the words of a line that overlap the bytes from `first` to `last`, as a bit for each
/// word. Both bytes are in the line.
pub(crate) fn words(first: u64, last: u64) -> u16 {
    let (first, last) = (first % LINE / WORD, last % LINE / WORD);
    ((2u32 << last) - (1 << first)) as u16
}

/// Returns the words that overlap a range of bytes.
pub(crate) fn spans(memory: u32, address: u64, length: u64) -> Set {
    let end = address + length;
    let mut set = Set::default();
    let mut at = address;
    while at < end {
        let line = at / LINE;
        // Whole lines are one span.
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
