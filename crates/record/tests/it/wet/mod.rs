//! Whole execution traces answer as if everything had been recorded.
//!
//! Whatever a guest does, a naive uncompressed record of everything agrees with the trace built by
//! the code under test.

mod compare;
mod epochs;
mod follow;
mod forward;
mod naive;
mod shapes;

pub use follow::{agree, agree_on_many};
