//! Defines the results of searching for redundant loads and expressions.

use afterimage_ids::NodeId;

use afterimage_replay::steps::AccessSite;

/// The number of redundant executions of an operator.
///
/// *An execution of a load* is redundant if an earlier load or store of a single value covered all
/// its bytes. No store, bulk operation or host call may have written any of these bytes since. The
/// source is the latest load or store of this kind.
///
/// *An execution of a pure operator* is redundant if the last computation of its expression in the
/// same call had the same operands, bit for bit. The source is the operator of that computation.
/// Two operators of a function have the same expression if they are equal, including immediates,
/// and their operands are the same values, constants or expressions in the same order. (In an
/// expression with more than eight distinct leaves, the operands of the operator count as leaves.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorRedundancy {
    /// The operator with redundant executions.
    pub site: AccessSite,
    /// The number of executions, at least one. An execution that traps does not count.
    pub executions: u64,
    /// The number of redundant executions.
    pub redundant: u64,
    /// The number of redundant executions whose source was executed by the operator's own
    /// activation or by a callee. These executions can be removed without examining callers. For
    /// expressions, all redundant executions are of this kind.
    pub within: u64,
    /// The sources, most frequent first.
    pub sources: Vec<OperatorSource>,
    /// The ways of values from sources to the operator, most frequent first.
    pub ways: Vec<Way>,
    /// The paths in which the operator was executed, sorted by the number of redundant executions,
    /// largest first.
    pub paths: Vec<InPath>,
}

/// An operator that made another operator's value available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorSource {
    /// The operator that is a source.
    pub site: AccessSite,
    /// Whether the source is a store.
    pub is_store: bool,
    /// The number of times that the operator was the source.
    pub times: u64,
}

/// The way of a value from a source to an operator, given as the Ball–Larus paths of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The path in which the operator was executed.
    pub path: NodeId,
    /// The operator that made the value available.
    pub source: AccessSite,
    /// The path in which the source was executed.
    pub from: NodeId,
    /// Whether source and operator were executed in the same execution of the path.
    pub same: bool,
    /// The number of times that the value took this way.
    pub times: u64,
}

/// The counts of an operator in one Ball–Larus path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPath {
    /// The path to which the counts apply.
    pub path: NodeId,
    /// The number of the operator's executions in the path.
    pub executions: u64,
    /// The number of redundant executions in the path.
    pub redundant: u64,
}

/// The redundancy of all loads of a run, or of all pure operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redundancy {
    /// The operators that were executed, in program order.
    pub operators: Vec<OperatorRedundancy>,
    /// The number of instructions that the run executed, as the machine counts them. Moves and
    /// constants do not count.
    pub instructions: u64,
}
