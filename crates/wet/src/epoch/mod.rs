//! Encodes and decodes epochs. An epoch is the coded form of a stretch of the run.
//!
//! For each node, an epoch stores the data about inputs and copies that cannot be inferred. A
//! directory at the front gives the positions, so that one input's data can be read alone.
//!
//! Numbers are LEB128. A stream of numbers is written as its length in bytes plus 1, followed by
//! its bytes. If the same node already has an equal stream, the new stream is written as 0, the
//! distance back to the equal stream in bytes, and its length in bytes.

mod blocks;
mod contents;
mod mentions;
mod read;
#[cfg(test)]
mod tests;
pub(crate) mod wire;
mod write;

pub(crate) use blocks::Blocks;
pub use contents::{Content, InputForm, Part, Role};
pub(crate) use mentions::{Mention, Mentions, Target};
pub(crate) use read::{Candidate, ColumnView, CopyView, Execution, Sought};
pub use read::{Epoch, EpochError};
pub use write::Sizes;
pub(crate) use write::Writer;

/// Returns the slot of a node's input in the directory.
pub(crate) fn slot_of_input(input: usize) -> u32 {
    2 * input as u32
}

/// Returns the slot of a node's copying write.
pub(crate) fn slot_of_copy(write: usize) -> u32 {
    2 * write as u32 + 1
}

/// The flag for an input with labels.
const LABELS: u8 = 1;
/// The flag for distant definitions of a variable.
const FAR: u8 = 2;
/// The flag for stored values.
const CUTS: u8 = 4;
/// The flag for stored values that are vectors.
const VECTORS: u8 = 8;

/// Represents the node of a write before a stretch that was built alone. It never occurs in a file.
const BEFORE: u64 = 1 << 40;

/// Represents the node that wrote a variable before a stretch that was built alone.
pub(crate) const BEFORE_NODE: u32 = u32::MAX - 1;
/// Represents the writer of a variable that received a result of the call that was pending in the
/// activation when the stretch began.
pub(crate) const CALLED_NODE: u32 = u32::MAX - 2;

/// Executions are stored as distances back.
const AGES: u8 = 0;
/// Executions are stored as numbers.
const ABSOLUTE: u8 = 1;
