//! The answers to questions about executions.

use afterimage_wpp::twpp::Series;

use crate::effect::Site;
use crate::times::Times;

/// The decision about an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// This site decided the fact.
    Decided(Site),
    /// No site decided, because the query reached the beginning of the path or, going forward, its
    /// end.
    Open,
}

/// The executions with one outcome.
#[derive(Clone, Debug)]
pub struct Part {
    /// The common outcome of these executions.
    pub outcome: Outcome,
    /// The times of the executions.
    pub times: Times,
}

/// The answer to a question, with the outcome of each execution.
#[derive(Clone, Debug, Default)]
pub struct Solution {
    /// The parts by outcome, ascending. Each outcome occurs at most once, and no part is empty. The
    /// timestamps of the parts are disjoint.
    pub parts: Vec<Part>,
    /// The number of queries ⟨timestamps, node⟩ that were raised, including the first.
    pub queries: u64,
    /// The number of path steps that were scanned one by one because the timestamps were too
    /// irregular for queries. It is usually 0.
    pub scanned: u64,
}

impl Solution {
    /// Returns the number of queried executions.
    pub fn count(&self) -> u64 {
        self.parts.iter().map(|part| part.times.count()).sum()
    }

    /// Returns the number of executions whose outcome satisfies `which`.
    pub fn count_where(&self, which: impl Fn(Outcome) -> bool) -> u64 {
        let parts = self.parts.iter().filter(|part| which(part.outcome));
        parts.map(|part| part.times.count()).sum()
    }

    /// Returns the times of the executions whose outcome satisfies `which`.
    pub fn times_where(&self, which: impl Fn(Outcome) -> bool) -> Series {
        let mut all = Times::new();
        for part in self.parts.iter().filter(|part| which(part.outcome)) {
            all.join(part.times.clone());
        }
        all.to_series()
    }

    /// Returns the outcome of the execution at a time. O(series).
    pub fn at(&self, t: u64) -> Option<Outcome> {
        let part = self.parts.iter().find(|part| part.times.contains(t));
        part.map(|part| part.outcome)
    }
}
