//! Defines the exact execution counts of a run.

use crate::BlockId;

/// The executions of each edge of each function in one run of a program.
///
/// There is one entry for each function that the module defines, in code-section order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The counts of each defined function.
    pub functions: Vec<FunctionCounts>,
}

/// The exact counts of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounts {
    /// The number of activations that entered the function. This is also the count of EXIT→root.
    pub entries: u64,
    /// The number of executions of each edge, indexed by `EdgeId`.
    pub edges: Vec<u64>,
    /// For each block, the number of activations that were still in it when the run ended. These
    /// numbers are the counts of the virtual edges "block → EXIT" in Figure 4 of Ball and Larus
    /// 1992. The entries are sorted by block. No block repeats, and no number is zero.
    pub open: Vec<(BlockId, u64)>,
}
