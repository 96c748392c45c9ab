//! Checks that whole execution traces answer as if everything had been recorded.
//!
//! Whatever a guest does, the trace built by the code under test must agree with a naive,
//! uncompressed record of everything.

mod compare;
mod epochs;
mod follow;
mod forward;
mod naive;
mod shapes;

pub use follow::{agree, agree_on_many};
