//! Defines the faults that make a segment unsound.

use afterimage_ids::{FuncId, NodeId, RuleId};
use thiserror::Error;

/// The reason why a segment is not sound.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CheckError {
    /// A rule's symbols do not begin where the symbols of the previous rule end.
    #[error("the symbols of {0} do not follow those of the previous rule")]
    Gap(RuleId),
    /// A rule has more symbols than there are.
    #[error("{0} has more symbols than there are")]
    Beyond(RuleId),
    /// There are symbols after the symbols of the last rule.
    #[error("symbols follow the symbols of the last rule")]
    LeftOver,
    /// A sequence has fewer than two symbols.
    #[error("{0} is a sequence of fewer than two symbols")]
    ShortSequence(RuleId),
    /// A repetition has no symbol, or several.
    #[error("{0} does not repeat exactly one symbol")]
    RepeatedSymbols(RuleId),
    /// A repetition has fewer than two rounds.
    #[error("{0} repeats fewer than two times")]
    FewTimes(RuleId),
    /// A rule names itself, a later rule, or a rule that does not exist.
    #[error("{rule} names {names}, which is not before it")]
    Forward {
        /// The rule that names the other rule.
        rule: RuleId,
        /// The rule that is named.
        names: RuleId,
    },
    /// The root names a rule that does not exist.
    #[error("the root names {0}, which does not exist")]
    UnknownRule(RuleId),
    /// A symbol names a node that does not exist.
    #[error("{0} is not known")]
    UnknownNode(NodeId),
    /// A node has no blocks, so it takes no time.
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
        /// The rule with these symbols.
        rule: RuleId,
        /// One of the functions.
        one: FuncId,
        /// Another of the functions.
        other: FuncId,
    },
    /// An item of the root executes code of a function whose activation is not the innermost.
    #[error("item {item} of the root belongs to {function}, whose activation is not the innermost")]
    Foreign {
        /// The item of the root.
        item: usize,
        /// The function whose code the item executes.
        function: FuncId,
    },
    /// An activation ends, but none is open.
    #[error("item {0} of the root ends an activation where none is open")]
    LeaveNone(usize),
    /// The root ends an activation that began in this segment. Such an activation must be a rule.
    #[error("item {0} of the root ends an activation that the root began")]
    LeaveBegun(usize),
    /// The segment's length differs from the stated length.
    #[error("it executes {found} blocks, not {length}")]
    Length {
        /// The length that the segment states, in blocks.
        length: u64,
        /// The number of blocks that the segment executes.
        found: u64,
    },
    /// There are about 2^30 rules and symbols, or more.
    #[error("it has more rules and symbols than can be searched")]
    TooLarge,
    /// By the segment's end, the run has executed 2^64 blocks or more.
    #[error("it ends after more blocks than can be counted")]
    End,
    /// The counts of nodes are wrong.
    #[error("its node counts differ from the counts that follow from its rules")]
    NodeCounts,
    /// The counts of activations are wrong.
    #[error("its call counts differ from the counts that follow from its rules")]
    CallCounts,
    /// There are 2^64 activations of a function, or more.
    #[error("it has more activations than can be counted")]
    Uncountable,
}
