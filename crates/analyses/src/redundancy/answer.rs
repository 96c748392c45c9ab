//! The results for redundant loads and expressions.

use afterimage_ids::NodeId;

use afterimage_replay::steps::AccessSite;

/// The number of redundant executions of an operator.
///
/// *An execution of a load* is redundant if an earlier load or store of a single value covered all
/// its bytes, and none of them was written since by a store, a bulk operation or the host. Its
/// source is the latest such access.
///
/// *An execution of a pure operator* is redundant if the last computation of its expression in the
/// same call had the same operands, bit by bit. Its source is the operator that did that. Two
/// operators of a function have the same expression if they are equal, including immediates, and
/// their operands are the same values, constants or expressions, in the same order. (An operator
/// with more than eight distinct leaves has an expression of its own.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorRedundancy {
    /// The operator.
    pub site: AccessSite,
    /// The number of executions, at least one. An execution that traps does not count.
    pub executions: u64,
    /// The number of redundant executions.
    pub redundant: u64,
    /// The number of times that the operator's own activation, or a callee, executed the source.
    /// These executions can be removed without examining callers. For expressions, all are of this
    /// kind.
    pub within: u64,
    /// The sources, most frequent first.
    pub sources: Vec<OperatorSource>,
    /// The paths from source to operator, most frequent first.
    pub ways: Vec<Way>,
    /// The paths in which it was executed, those in which it was most often redundant first.
    pub paths: Vec<InPath>,
}

/// An operator that was the source of another's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorSource {
    /// The operator.
    pub site: AccessSite,
    /// Whether it is a store.
    pub is_store: bool,
    /// The number of times it was the source.
    pub times: u64,
}

/// A value's route to an operator, from a Ball–Larus path of its source to one of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The path in which the operator was executed.
    pub path: NodeId,
    /// The source.
    pub source: AccessSite,
    /// The path in which the source was executed.
    pub from: NodeId,
    /// Whether both were in the same execution of the path.
    pub same: bool,
    /// The number of times this happened.
    pub times: u64,
}

/// The counts of an operator in one Ball–Larus path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPath {
    /// The path.
    pub path: NodeId,
    /// The number of the operator's executions in it.
    pub executions: u64,
    /// The number of redundant executions there.
    pub redundant: u64,
}

/// The redundancy of all loads of a run, or of all pure operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redundancy {
    /// The operators that were executed, in program order.
    pub operators: Vec<OperatorRedundancy>,
    /// The number of instructions that the run executed, as the machine counts them: moves and
    /// constants do not count.
    pub instructions: u64,
}
