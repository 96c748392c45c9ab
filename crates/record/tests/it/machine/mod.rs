//! The machine runs recorded guests again without the engine, and both agree.
//!
//! One law is behind all of it: whatever the guest does and however its run ended, the machine follows the stored path to its end without
//! a contradiction, and leaves the memories, globals and tables that the engine leaves.

mod captured;
mod checkpoints;
mod coverage;
mod follow;
mod mutations;
mod snapshots;
mod stretches;
mod written;

pub use follow::agree;
