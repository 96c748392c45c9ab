//! What may be wrong with a segment.

use afterimage_ids::{FuncId, NodeId, RuleId};
use thiserror::Error;

/// Why a segment is not sound.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CheckError {
    /// A rule's symbols do not begin where those of the rule before end.
    #[error("the symbols of {0} do not stand where they should")]
    Gap(RuleId),
    /// A rule has more symbols than there are.
    #[error("the symbols of {0} go beyond the last")]
    Beyond(RuleId),
    /// There are symbols after those of the last rule.
    #[error("symbols are left over after those of the last rule")]
    LeftOver,
    /// A sequence of fewer than two symbols.
    #[error("{0} is a sequence of fewer than two symbols")]
    ShortSequence(RuleId),
    /// A repetition of nothing, or of several symbols.
    #[error("{0} does not repeat exactly one symbol")]
    RepeatedSymbols(RuleId),
    /// A repetition of fewer than two times.
    #[error("{0} repeats fewer than two times")]
    FewTimes(RuleId),
    /// A rule names itself, a later one, or one that there is not.
    #[error("{rule} names {names}, which is not before it")]
    Forward {
        /// The rule.
        rule: RuleId,
        /// The rule that it names.
        names: RuleId,
    },
    /// The root names a rule that there is not.
    #[error("the root names {0}, which there is not")]
    UnknownRule(RuleId),
    /// A node that there is not.
    #[error("{0} is not known")]
    UnknownNode(NodeId),
    /// A node that takes no time.
    #[error("{0} has no blocks")]
    EmptyNode(NodeId),
    /// The root executes 2^64 blocks or more.
    #[error("it executes more blocks than can be counted")]
    LongRoot,
    /// A rule executes 2^64 blocks or more.
    #[error("{0} executes more blocks than can be counted")]
    LongRule(RuleId),
    /// A rule's symbols belong to activations of different functions.
    #[error("{rule} has symbols of {one} and of {other}")]
    Mixed {
        /// The rule.
        rule: RuleId,
        /// One function.
        one: FuncId,
        /// The other.
        other: FuncId,
    },
    /// Something that is not of the innermost activation's function is executed there.
    #[error("item {item} of the root belongs to {function}, whose activation is not the innermost")]
    Foreign {
        /// Which item of the root.
        item: usize,
        /// Whose it is.
        function: FuncId,
    },
    /// An activation ends where none is open.
    #[error("item {0} of the root ends an activation where none is open")]
    LeaveNone(usize),
    /// An activation ends that began in this segment: it should be a rule.
    #[error("item {0} of the root ends an activation that the root began")]
    LeaveBegun(usize),
    /// The segment is not as long as it says.
    #[error("it executes {found} blocks and not {length}")]
    Length {
        /// What it says.
        length: u64,
        /// How long it is.
        found: u64,
    },
    /// There are about 2^30 rules and symbols, or more.
    #[error("it has more rules and symbols than can be searched")]
    TooLarge,
    /// The run is too long at the segment's end.
    #[error("it ends after more blocks than can be counted")]
    End,
    /// The counts of nodes are not right.
    #[error("the counts of its nodes are not those of its rules")]
    NodeCounts,
    /// The counts of activations are not right.
    #[error("the counts of its calls are not those of its rules")]
    CallCounts,
    /// There are 2^64 activations of a function, or more.
    #[error("it has more activations than can be counted")]
    Uncountable,
}
