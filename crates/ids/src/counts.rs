//! Exact execution counts.

use crate::BlockId;

/// The executions of each edge of each function in one run of a program.
///
/// There is one entry per function that the module defines, in code-section order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Counts per defined function.
    pub functions: Vec<FunctionCounts>,
}

/// Exact counts of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounts {
    /// Activations that entered the function: the count of EXIT→root.
    pub entries: u64,
    /// Executions of each edge, indexed by `EdgeId`.
    pub edges: Vec<u64>,
    /// Activations that were still on the stack when the run ended, by the block that they were in.
    /// These are the virtual edges "block → EXIT" of Ball and Larus 1992, Figure 4. Ascending by
    /// block; no block twice; no zero.
    pub open: Vec<(BlockId, u64)>,
}
