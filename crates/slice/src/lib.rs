//! Dynamic slices: what an execution depends on, found by going back over the run.
//!
//! The run is followed forward in stretches, from checkpoints, by the [`Machine`](afterimage_machine::Machine), which a [`Stretch`] watches; then
//! each stretch is gone over backward by [`Backward`].
//!
//! Who has a recording uses `afterimage_analyses::slices`, which follows the run and goes back over it, and has an example. What is asked for is told like this:
//!
//! ```
//! use afterimage_slice::{Criterion, Follows, Reach, Want};
//!
//! // What the third instruction of the node execution that begins with block 4711 depends on, however far that is ...
//! let criterion = Criterion { start: 4711, wants: vec![Want::Inst(2)], reach: Reach::ALL };
//! // ... through data alone.
//! let follows = Follows::DATA;
//! # assert!(follows.data && criterion.wants.len() == 1);
//! ```

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
