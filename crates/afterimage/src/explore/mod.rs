//! Questions that only the explorer's page asks. No command answers them.

mod executions;
mod flow;
mod influence;
mod moment;
mod output;
mod range;
mod source;

pub use executions::ExecutionsQuery;
pub use flow::FlowQuery;
pub use influence::InfluenceQuery;
pub use moment::MomentQuery;
pub use output::OutputQuery;
pub use source::{SourceQuery, files};
