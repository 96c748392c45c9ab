//! Builds the values of a run, and answers questions about the values of statements and variables.

mod build;
mod changed;
mod condition;
mod instances;
mod loads;
mod missing;
mod statements;
mod summary;
mod variable;

use serde::{Deserialize, Serialize};

pub use build::{Adds, KeptValues};
pub(crate) use build::{add_values, ensure_values};
pub use condition::{ConditionQuery, Wanted};
pub(crate) use condition::{Look, first_variable};
pub use instances::{Instances, InstancesError};
pub use loads::{write_load_values, write_loaded};
pub use missing::{add_first_values, missing_values};

/// Asks which values the statements at a place produced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValuesQuery {
    /// The place: `parser.c:42`, `parse+0x2a`, `@0x1f3`, or a function. `#7` or `#last` at the end
    /// selects one execution.
    pub at: String,
    /// The selected executions.
    pub instances: Instances,
    /// The amount of detail to report.
    pub detail: Detail,
    /// The maximum number of rows for each statement, unless the user named each execution.
    pub limit: u64,
}

/// Asks which values a source variable had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableQuery {
    /// The variable, or an expression such as `p->next`.
    pub name: String,
    /// The place and the moments.
    #[serde(flatten)]
    pub values: ValuesQuery,
}

/// The amount of detail about values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Every value.
    Each,
    /// A summary: the number of distinct values, and the smallest, the largest and the most
    /// frequent value.
    Stats,
    /// How often each value occurred, most frequent first.
    Histogram,
}

impl ValuesQuery {
    /// The default number of rows.
    pub const LIMIT: u64 = 10;

    /// Creates a query for the first values at a place.
    pub fn new(at: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            instances: Instances::All,
            detail: Detail::Each,
            limit: Self::LIMIT,
        }
    }

    fn is_summed(&self) -> bool {
        self.detail != Detail::Each
    }

    /// Returns the maximum number of executions to show. A list is limited to the number of rows,
    /// unless the user named each execution. A summary includes all executions.
    fn most(&self, instances: Instances) -> u64 {
        if instances.is_named() || self.is_summed() {
            u64::MAX
        } else {
            self.limit
        }
    }
}
