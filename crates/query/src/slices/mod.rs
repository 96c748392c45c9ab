//! Slices: what an execution depends on.

mod backward;

pub use afterimage_slice::{Criterion, Follows, Slice, Want};
pub use backward::backward;
