//! Defines the questions that the explorer's page asks.

mod executions;
mod flow;
mod influence;
mod moment;
mod names;
mod output;
mod range;
mod source;
mod step;

pub use executions::ExecutionsQuery;
pub use flow::FlowQuery;
pub use influence::InfluenceQuery;
pub use moment::MomentQuery;
pub(crate) use names::names;
pub use output::OutputQuery;
pub use source::{FilesQuery, SourceQuery};
pub use step::{Move, StepQuery};
