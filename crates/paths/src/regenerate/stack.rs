//! Open activations.

use afterimage_ids::BlockId;

/// Stands for no start.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Stands for no start because the activation ends there.
pub(super) const LEAVES: u32 = u32::MAX - 1;

/// An activation, and where it continues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activation {
    /// The defined function, by its index.
    pub function: u32,
    /// The start of its next path, as the index of one of the function's starts.
    pub start: u32,
    /// The start of its next path if an exception leaves the call that it waits for.
    pub throws: u32,
    /// The block whose call it waits for.
    pub block: BlockId,
    /// The place of the table for `start`, if known.
    pub place: u32,
    /// Its first block, if the run was observed then.
    pub entered: u64,
    /// The block of the call that it waits for, if the run was observed then.
    pub called: u64,
}
