//! Questions of the explorer's page that no command answers.

mod executions;
mod moment;
mod output;
mod source;

pub use executions::ExecutionsQuery;
pub use moment::MomentQuery;
pub use output::OutputQuery;
pub use source::{SourceQuery, files};
