//! What is told of redundant loads and expressions.

use afterimage_ids::NodeId;

use afterimage_replay::steps::AccessSite;

/// How many executions of an operator were redundant.
///
/// *Of a load* an execution is redundant if an earlier load or store of a single value covered all bytes that it reads, and since then none of them was written: by a store, a bulk
/// operation or the host. Its source is the latest such access.
///
/// *Of an operator that only computes* an execution is redundant if, when its expression was computed last in the same call, the operands had the same values, bit by bit. Its source is
/// the operator that did that. Two operators of a function have the same expression if they are equal, immediates included, and their operands are the same values, constants or
/// expressions, in the same order. (Of more than eight different values that are not computed from others each operator is an expression of its own.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorRedundancy {
    /// The operator.
    pub site: AccessSite,
    /// How often it was executed. Once at least; one that traps is no execution.
    pub executions: u64,
    /// How often it was redundant.
    pub redundant: u64,
    /// How often the source had been executed since the operator's own activation began, by it or by what it called: what can be removed without looking at
    /// callers. Of expressions all are.
    pub within: u64,
    /// Where from: those that were so most often first.
    pub sources: Vec<OperatorSource>,
    /// Through which paths, those that were so most often first.
    pub ways: Vec<Way>,
    /// In which paths it was executed, and how often it was redundant there: those in which it was so most often first.
    pub paths: Vec<InPath>,
}

/// An operator from which another one had its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorSource {
    /// The operator.
    pub site: AccessSite,
    /// Whether it is a store.
    pub is_store: bool,
    /// How often.
    pub times: u64,
}

/// A way by which a value came to an operator: from which Ball–Larus path of which source to which path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The path in which the operator was executed.
    pub path: NodeId,
    /// The source.
    pub source: AccessSite,
    /// The path in which the source was executed.
    pub from: NodeId,
    /// Both were in the same execution of the path.
    pub same: bool,
    /// How often.
    pub times: u64,
}

/// What was found in one Ball–Larus path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPath {
    /// The path.
    pub path: NodeId,
    /// How often the operator was executed in it.
    pub executions: u64,
    /// How often it was redundant then.
    pub redundant: u64,
}

/// The redundancy of all loads of a run, or of all operators that only compute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redundancy {
    /// Those that were executed, in the order of the program.
    pub operators: Vec<OperatorRedundancy>,
    /// How many instructions the run executed, as the machine counts them: moves and constants are none.
    pub instructions: u64,
}
