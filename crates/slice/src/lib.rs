//! Dynamic slices: what an execution depends on, found by going back over the run.
//!
//! The run is followed forward in stretches, from checkpoints, by the [`Machine`](afterimage_machine::Machine), which a [`Stretch`] watches; then
//! each stretch is gone over backward by [`Backward`].

mod activation;
mod backward;
mod bytes;
mod control;
mod criterion;
mod domain;
mod exercised;
mod forward;
mod frame;
mod instances;
mod marks;
mod memo;
mod plan;
mod plans;
mod potential;
mod reach;
mod shadow;
mod stretch;
mod walk;

pub use backward::Backward;
pub use criterion::{Criterion, Follows, Want};
pub use domain::Why;
pub use exercised::{Edge, Exercised, Operator};
pub use forward::Forward;
pub use instances::Instances;
pub use marks::Slice;
pub use potential::Potential;
pub use reach::Reach;
pub use stretch::Stretch;
