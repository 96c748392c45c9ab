//! Computes dynamic slices, that is, everything on which an execution depends, or everything that
//! depends on it.
//!
//! The input is a run that the [`Machine`](afterimage_machine::Machine) follows forward in
//! stretches, from checkpoints. A [`Stretch`] observes the machine. [`Backward`] walks back over
//! each stretch, and [`Forward`] processes the stretches in order. The output is a [`Slice`].
//!
//! To slice a recording, use `afterimage_analyses::slices`, which drives both walks and has an
//! example. A query has this form:
//!
//! ```
//! use afterimage_slice::{Criterion, Follows, Reach, Want};
//!
//! // What does the third instruction of the node execution that begins with block 4711 depend on,
//! // to any depth, ...
//! let criterion = Criterion { start: 4711, wants: vec![Want::Inst(2)], reach: Reach::ALL };
//! // ... through data alone?
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
pub use forward::{Forward, HostTook};
pub use instances::Instances;
pub use marks::Slice;
pub use potential::Potential;
pub use reach::Reach;
pub use stretch::Stretch;
