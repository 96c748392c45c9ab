//! Checks that the machine re-runs recorded guests without the engine, and agrees with it.
//!
//! The law is that the machine follows the stored path to its end without a contradiction, whatever
//! the guest does and however its run ended. The machine leaves the same memories, globals and
//! tables as the engine.

mod captured;
mod checkpoints;
mod coverage;
mod follow;
mod mutations;
mod snapshots;
mod stretches;
mod written;

pub use follow::agree;
