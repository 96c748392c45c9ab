//! What the host knows about a run, beyond the counters.

use afterimage_ids::{BlockId, FuncId};

/// Facts about a run that no counter measures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Activations that the host started: of exported functions and the start function. A function
    /// may occur several times. Needed for [`Mode::Program`](crate::Mode::Program).
    pub host_entries: Vec<(FuncId, u64)>,
    /// How often each imported function was called, as the host counted. Needed if
    /// [`Plan::needs_import_calls`](crate::Plan::needs_import_calls) and there are any.
    pub import_calls: Option<Vec<u64>>,
    /// The activations that were on the stack when the run, or a part of it that the host
    /// started, ended without returning, in any order.
    pub open: Vec<OpenFrame>,
    /// Functions that a call, a tail call or the host had reached, but that were never entered because the stack had
    /// no room for them: once for each time.
    pub not_entered: Vec<FuncId>,
}

/// An activation that was on the stack at an end.
///
/// A frame that a tail call has replaced is not one of them: it left by its tail call. The frame of a tail call
/// that failed, as one through a table can, is one, with `callee_entered` false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFrame {
    /// The function.
    pub function: FuncId,
    /// The block that the activation was in.
    pub block: BlockId,
    /// For a block that ends in a call: whether that call reached its callee, be it one of
    /// [`RunFacts::not_entered`].
    pub callee_entered: bool,
}
