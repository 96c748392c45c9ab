//! The values of a run: building them, and what statements and variables had.

mod build;
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
pub(crate) use condition::Look;
pub use condition::{ConditionQuery, Wanted};
pub use instances::{Instances, InstancesError};
pub use loads::{write_load_values, write_loaded};
pub use missing::{add_first_values, missing_values};

/// Which values did the statements at a place give?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValuesQuery {
    /// The place: `parser.c:42`, `parse+0x2a`, `@0x1f3`, or a function; `#7` or `#last` at its end is one execution.
    pub at: String,
    /// Which executions.
    pub instances: Instances,
    /// How much is told of them.
    pub detail: Detail,
    /// The most rows for each statement, unless the executions are named one by one.
    pub limit: u64,
}

/// Which values did a variable of the source have?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableQuery {
    /// The variable, or an expression such as `p->next`.
    pub name: String,
    /// Where, and when.
    #[serde(flatten)]
    pub values: ValuesQuery,
}

/// How much is told of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Each of them.
    Each,
    /// How many different ones there are, the smallest, the largest and the most frequent.
    Stats,
    /// How often each occurred, the most frequent first.
    Histogram,
}

impl ValuesQuery {
    /// The usual number of rows.
    pub const LIMIT: u64 = 10;

    /// The first values at a place.
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

    /// How many of the executions may be shown: of those that are not named one by one a list has as many as it may have lines, a summary all.
    fn most(&self, instances: Instances) -> u64 {
        if instances.is_named() || self.is_summed() {
            u64::MAX
        } else {
            self.limit
        }
    }
}
