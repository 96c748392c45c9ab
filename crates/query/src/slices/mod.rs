//! Slices: what an execution depends on, and what depends on it.

mod ahead;
mod backward;
pub mod criteria;
mod forward;
mod report;

pub use afterimage_slice::{Criterion, Follows, Slice, Want};
pub use backward::backward;
pub use forward::forward;
pub use report::{SliceReport, SlicedLine, SlicedOperator};
