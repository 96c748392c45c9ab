//! Defines the facts that the host knows about a run and that the counters do not contain.

use afterimage_ids::{BlockId, FuncId};

/// Facts about a run that no counter measures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// The activations of exported functions and of the start function that the host started. A
    /// function may occur several times. The list is needed for
    /// [`Mode::Program`](crate::Mode::Program).
    pub host_entries: Vec<(FuncId, u64)>,
    /// The number of calls to each imported function, as counted by the host. The numbers are
    /// needed if [`Plan::needs_import_calls`](crate::Plan::needs_import_calls) is set and there are
    /// imports.
    pub import_calls: Option<Vec<u64>>,
    /// The activations that were on the stack when the run, or a part of it that the host started,
    /// ended without returning. They may be in any order.
    pub open: Vec<OpenFrame>,
    /// The functions that a call, a tail call or the host tried but failed to enter, because the
    /// stack had no room. There is one entry for each attempt.
    pub not_entered: Vec<FuncId>,
}

/// An activation that was on the stack when the run or a part of it ended.
///
/// A frame that a tail call replaced is not included, because its activation ended with the tail
/// call. The frame of a failed tail call is included, with `callee_entered` false. Tail calls
/// through a table can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFrame {
    /// The function of the activation.
    pub function: FuncId,
    /// The block in which the activation was.
    pub block: BlockId,
    /// For a block that ends in a call, whether the call reached its callee. Callees in
    /// [`RunFacts::not_entered`] also count as reached.
    pub callee_entered: bool,
}
