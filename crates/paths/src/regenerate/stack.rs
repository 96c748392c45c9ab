//! Open activations.

use afterimage_ids::BlockId;

/// No start.
pub(super) const NOWHERE: u32 = u32::MAX;

/// No start, because the activation ends there.
pub(super) const LEAVES: u32 = u32::MAX - 1;

/// An activation, and where it goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activation {
    /// Which defined function.
    pub function: u32,
    /// Where its next path begins: which of the function's starts.
    pub start: u32,
    /// Where its next path begins if an exception leaves the call that it waits for.
    pub throws: u32,
    /// The block whose call it waits for.
    pub block: BlockId,
    /// Where the table of several paths of `start` is, if that is known.
    pub place: u32,
    /// Its first block, if the run was seen then.
    pub entered: u64,
    /// The block of the call that it waits for, likewise.
    pub called: u64,
}
