//! Slices: what an execution depends on.

mod backward;
pub mod criteria;
mod report;

pub use afterimage_slice::{Criterion, Follows, Slice, Want};
pub use backward::backward;
pub use report::{SliceReport, SlicedLine, SlicedOperator};
