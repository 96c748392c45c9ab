//! Plans how a run records its path, and reads the path back.
//!
//! A run can record its path in two ways. It writes witnesses on edges (Ball and Larus, "Optimally
//! Profiling and Tracing Programs", 1992, section 4), or path numbers (Ball and Larus, "Efficient
//! Path Profiling", 1996). The crate does no input or output. Before a run, it computes a plan.
//! From the bits that the run wrote, it computes the sequence of the run's paths.

mod entry_ids;
mod numbering;
mod plan;
mod regenerate;
mod steps;
pub mod witness;
mod writers;

pub use entry_ids::EntryIds;
pub use numbering::{Cuts, Numbering};
pub use plan::{PathPlan, Spot};
pub use regenerate::{
    Boundary, Counter, ExecutedPath, FinalFrame, Finish, NullSink, RegenerateError, Regenerator,
    Sink, Tally, Waypoint,
};
pub use steps::Step;

/// Returns the number of bits needed to distinguish `things` items, which is 0 for one item or
/// none.
fn width_of(things: u64) -> u8 {
    (u64::BITS - things.saturating_sub(1).leading_zeros()) as u8
}
