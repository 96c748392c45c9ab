//! Represents the open activations.

use afterimage_ids::BlockId;

/// Represents the absence of a start.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Represents the absence of a start because the activation ends.
pub(super) const LEAVES: u32 = u32::MAX - 1;

/// An activation, and the place where it continues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activation {
    /// The defined function, by its index.
    pub function: u32,
    /// The start of the activation's next path, as an index among the function's starts.
    pub start: u32,
    /// The start of the activation's next path if an exception leaves the call for which it waits.
    pub throws: u32,
    /// The block with the call for which the activation waits.
    pub block: BlockId,
    /// The place of the table for `start`, if known.
    pub place: u32,
    /// The time of the activation's first block, if the run was observed then.
    pub entered: u64,
    /// The time of the call for which the activation waits, if the run was observed then.
    pub called: u64,
}
