//! Slices: what an execution depends on, and what depends on it.

mod ahead;
mod backward;
mod chop;
pub mod criteria;
mod exercised;
mod forward;
mod report;

pub use afterimage_slice::{Criterion, Edge, Follows, Operator, Slice, Want, Why};
pub use backward::backward;
pub use chop::chop;
pub use exercised::{Direction, exercised, grouped, is_followed, reachable};
pub use forward::forward;
pub use report::{SliceReport, SlicedLine, SlicedOperator};
