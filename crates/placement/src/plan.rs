//! Defines plans, which say what counters a program gets and where.

use std::fmt;

use afterimage_ids::{BlockId, CounterId, Counts, EdgeId, FuncId};

use crate::SplitCost;

/// The way in which a profile is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A counter in every block, as in pixie. It yields only the frequencies of blocks.
    Slow,
    /// A counter on every edge, which is deliberately redundant, for tests.
    Edges,
    /// Counters on the chords of one spanning tree per function, with heuristic weights.
    Quick,
    /// Counters as for [`Quick`](Self::Quick), but with the weights of an earlier run.
    Feedback,
    /// Counters for the whole program at once. Some chords need no counter, because their counts
    /// follow from the calls. The weights of an earlier run are used if given.
    Program,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Slow => "slow",
            Mode::Edges => "edges",
            Mode::Quick => "quick",
            Mode::Feedback => "feedback",
            Mode::Program => "program",
        })
    }
}

/// The place where a counter is incremented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// The counter is incremented at the beginning of a block.
    Block(BlockId),
    /// The counter is incremented when control passes over an edge.
    Edge(EdgeId),
}

/// A counter and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probe {
    /// The place where the counter is incremented.
    pub site: Site,
    /// The number of the counter.
    pub counter: CounterId,
}

/// The counters of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionPlan {
    /// The counters with their places, ascending by site. No site occurs twice.
    pub probes: Vec<Probe>,
}

/// The counters of a program and their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The mode in which the counters were chosen.
    pub mode: Mode,
    /// Whether the counters alone suffice, because they also determine which calls did not return.
    /// In this case, no backtrace is needed. Traps in the middle of a block remain unknown.
    pub standalone: bool,
    /// The plan for each defined function, in the order of the code section.
    pub functions: Vec<FunctionPlan>,
    /// The number of counters. Counters are numbered without gaps over the whole program.
    pub counters: u32,
    /// The chords without a counter ([`Mode::Program`] only). The equations between functions
    /// determine their counts. The chords are in the order in which the planner chose them.
    pub derived: Vec<(FuncId, EdgeId)>,
    /// Whether the host must count the calls to each imported function ([`Mode::Program`] only).
    pub needs_import_calls: bool,
    /// Whether the plan takes into account that the host may call functions through tables and
    /// references.
    pub host_uses_references: bool,
}

/// The options for a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanOptions<'a> {
    /// The way in which the profile is taken.
    pub mode: Mode,
    /// Whether the plan works without a backtrace of the run's end; see [`Plan::standalone`].
    pub standalone: bool,
    /// The counts of an earlier run of the same program, if there is one.
    pub feedback: Option<&'a Counts>,
    /// Whether the host will count the calls to each imported function.
    pub host_counts_import_calls: bool,
    /// Whether the host may call the program's functions through tables or references instead of
    /// exports, or put its own functions into tables.
    pub host_uses_references: bool,
    /// The cost of an increment on an edge.
    pub split_cost: SplitCost,
}

impl PlanOptions<'_> {
    /// Returns the usual options. They assume that a backtrace is available, and that the host
    /// counts import calls. They also assume that the host knows the program's functions only by
    /// the program's exports.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            standalone: false,
            feedback: None,
            host_counts_import_calls: true,
            host_uses_references: false,
            split_cost: SplitCost::default(),
        }
    }
}

/// The reason why no plan can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Counts of an earlier run are needed for [`Mode::Feedback`], but were not passed.
    #[error("feedback mode needs the counts of an earlier run")]
    NoFeedback,
    /// The counts of the earlier run are from another program, because this function has a
    /// different number of edges or blocks.
    #[error("the counts are not from this program: {0} has a different number of edges or blocks")]
    FeedbackOfAnotherFunction(FuncId),
    /// The counts of the earlier run are from another program, which defines a different number of
    /// functions.
    #[error(
        "the counts are not from this program: it defines {expected} functions, but the counts \
         have {found}"
    )]
    FeedbackOfAnotherProgram {
        /// The number of functions that the program defines.
        expected: usize,
        /// The number of functions in the counts.
        found: usize,
    },
    /// A standalone plan is not possible, because the mode relies on facts that only the host has.
    #[error("only the modes quick and feedback allow a standalone plan")]
    StandaloneUnsupported,
    /// The program needs more than 2^32 − 1 counters.
    #[error("the program needs more counters than can be numbered")]
    TooManyCounters,
}
