//! An epoch: a stretch of the run in the file.
//!
//! It tells, node by node, what of the node's inputs and copies cannot be inferred. A directory in front says where what stands, so that one
//! input's part is read alone.
//!
//! Numbers are LEB128. A stream of numbers is written as its length in bytes plus 1 and its bytes, or, where the
//! same node has an equal one already, as 0, how many bytes before it stands, and its length in bytes.

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

/// The slot of an input of a node in the directory.
pub(crate) fn slot_of_input(input: usize) -> u32 {
    2 * input as u32
}

/// The slot of a write of a node that copies.
pub(crate) fn slot_of_copy(write: usize) -> u32 {
    2 * write as u32 + 1
}

/// There are labels.
const LABELS: u8 = 1;
/// There are definitions of a variable that are far away.
const FAR: u8 = 2;
/// There are values.
const CUTS: u8 = 4;
/// The values are vectors.
const VECTORS: u8 = 8;

/// In the place of a node: what was written before a stretch that was built alone. It is in no file.
const BEFORE: u64 = 1 << 40;

/// In the place of a node that wrote a variable: it was before a stretch that was built alone.
pub(crate) const BEFORE_NODE: u32 = u32::MAX - 1;
/// The same of what the call gave for which the activation waited when the stretch began.
pub(crate) const CALLED_NODE: u32 = u32::MAX - 2;

/// Executions are told by how many executions ago they were.
const AGES: u8 = 0;
/// Executions are told by their numbers.
const ABSOLUTE: u8 = 1;
