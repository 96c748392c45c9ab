//! Errors of deriving counts from counters.

use std::fmt;

use afterimage_ids::{BlockId, CounterId, EdgeId, FuncId};

/// The subject of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Activations of the function.
    Entry,
    /// Executions of an edge.
    Edge(EdgeId),
    /// Executions of a block.
    Block(BlockId),
    /// Activations that never left a block.
    Open(BlockId),
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry => write!(f, "its entries"),
            Self::Edge(e) => write!(f, "{e}"),
            Self::Block(v) => write!(f, "{v}"),
            Self::Open(v) => write!(f, "activations that ended in {v}"),
        }
    }
}

/// The reason why counters are inconsistent or ambiguous.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SolveError {
    /// The plan is for another program, which defines a different number of functions.
    #[error(
        "the plan is not for this program: it defines {expected} functions, but the plan has \
         {found}"
    )]
    ForeignProgram {
        /// The number of functions that the program defines.
        expected: usize,
        /// The number of functions in the plan.
        found: usize,
    },
    /// The plan is for another program, because this function has no such edge or block.
    #[error("the plan is not for this program: {function} has no {place}")]
    ForeignPlan {
        /// The function that lacks the place.
        function: FuncId,
        /// The place that the function lacks.
        place: Counted,
    },
    /// The number of counters differs from the number that the plan placed.
    #[error("the plan has {expected} counters, but {found} are given")]
    CounterCount {
        /// The number of counters in the plan.
        expected: usize,
        /// The number of counters that were passed.
        found: usize,
    },
    /// A probe names a counter that the plan does not have.
    #[error("the plan has no {0}")]
    MissingCounter(CounterId),
    /// The placement leaves a count undetermined.
    #[error("the counters of {function} do not determine {place}")]
    Undetermined {
        /// The function with the place.
        function: FuncId,
        /// The place whose count remains unknown.
        place: Counted,
    },
    /// A flow equation does not hold, because a block is entered more or less often than it is
    /// left.
    #[error(
        "the counters contradict each other: {function} enters {block} more or less often than it leaves it"
    )]
    Unbalanced {
        /// The function with the block.
        function: FuncId,
        /// The block whose equation is violated.
        block: BlockId,
    },
    /// A derived count is impossible in any run.
    #[error(
        "the counters contradict each other: in {function} the count of {place} would be {value}"
    )]
    Impossible {
        /// The function with the place.
        function: FuncId,
        /// The place that was counted.
        place: Counted,
        /// The derived count, which is negative or exceeds 64 bits.
        value: i128,
    },
    /// The number of entries differs from the number of calls.
    #[error(
        "the counters contradict each other: for {0}, or the functions of its type, the numbers of entries and calls differ"
    )]
    Uncoupled(FuncId),
    /// An indirect call reached a function, but no function has the type of the call.
    #[error(
        "the counters contradict each other: an indirect call reached a function type that no \
         function has"
    )]
    UncalledType,
    /// The description of the run's end contains an impossible frame.
    #[error("no activation can have ended in {block} of {function}")]
    BadFrame {
        /// The function of the frame.
        function: FuncId,
        /// The block of the frame.
        block: BlockId,
    },
    /// The description of the run's end contains a frame that a standalone plan derives itself.
    #[error(
        "the plan is standalone: it derives the activations in {block} of {function} itself, so \
         none may be given"
    )]
    UnexpectedFrame {
        /// The function of the frame.
        function: FuncId,
        /// The block of the frame.
        block: BlockId,
    },
    /// The host cannot have started this function, because the program does not define it.
    #[error("the host started {0}, which the program does not define")]
    BadHostEntry(FuncId),
    /// The plan relies on the call counts of imported functions, but they are missing.
    #[error("the plan needs the host's call counts of {expected} imported functions")]
    NoImportCalls {
        /// The number of imported functions in the program.
        expected: usize,
    },
}
