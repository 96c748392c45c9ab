//! Answers.

use afterimage_wpp::twpp::Series;

use crate::effect::Site;
use crate::times::Times;

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// This.
    Decided(Site),
    /// Nothing: the beginning of the path was reached, or its end where the query went forward.
    Open,
}

/// The executions that were decided by the same.
#[derive(Clone, Debug)]
pub struct Part {
    /// By what.
    pub outcome: Outcome,
    /// The executions: when.
    pub times: Times,
}

/// The answer to a question: what decided each execution.
#[derive(Clone, Debug, Default)]
pub struct Solution {
    /// By outcome, ascending, each once and not empty; they have no timestamp in common.
    pub parts: Vec<Part>,
    /// How many queries ⟨timestamps, node⟩ were raised, the first one included.
    pub queries: u64,
    /// How many steps of the path were gone through one by one, because too little was regular for queries; mostly 0.
    pub scanned: u64,
}

impl Solution {
    /// How many executions were asked about.
    pub fn count(&self) -> u64 {
        self.parts.iter().map(|part| part.times.count()).sum()
    }

    /// For how many executions what decided is one of these.
    pub fn count_where(&self, which: impl Fn(Outcome) -> bool) -> u64 {
        let parts = self.parts.iter().filter(|part| which(part.outcome));
        parts.map(|part| part.times.count()).sum()
    }

    /// When what decided is one of these.
    pub fn times_where(&self, which: impl Fn(Outcome) -> bool) -> Series {
        let mut all = Times::new();
        for part in self.parts.iter().filter(|part| which(part.outcome)) {
            all.join(part.times.clone());
        }
        all.to_series()
    }

    /// What decided an execution. O(series).
    pub fn at(&self, t: u64) -> Option<Outcome> {
        let part = self.parts.iter().find(|part| part.times.contains(t));
        part.map(|part| part.outcome)
    }
}
