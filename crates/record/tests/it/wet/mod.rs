//! Whole execution traces answer as if everything had been written down.
//!
//! Whatever a guest does, a recorder that writes everything down uncompressed, and the trace built by the crate under test, say the same.

mod compare;
mod epochs;
mod follow;
mod forward;
mod naive;
mod shapes;

pub use follow::{agree, agree_on_many};
