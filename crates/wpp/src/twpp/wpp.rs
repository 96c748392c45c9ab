//! A whole program path after redundant path trace elimination.

use afterimage_ids::FuncId;

use super::call_graph::{Call, CallGraph};
use super::events::Events;
use super::path_trace::PathTrace;

/// A whole program path as unique path traces and the dynamic call graph that links them (Zhang and
/// Gupta 2001, Figure 3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wpp {
    /// The functions that were called, ascending.
    pub functions: Vec<FunctionPaths>,
    /// The dynamic call graph, with the path trace of each call and the calls that it makes.
    pub calls: CallGraph,
}

/// The unique path traces of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionPaths {
    /// The function whose calls took the path traces.
    pub function: FuncId,
    /// The function's unique path traces, in the order in which the first calls that took them
    /// ended.
    pub paths: Vec<UniquePath>,
}

/// A path trace of a function, and the number of calls that took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniquePath {
    /// The blocks of the path trace.
    pub trace: PathTrace,
    /// The number of calls that took this path trace.
    pub calls: u64,
    /// The number of these calls that never returned. Their traces end where the run ended.
    pub unfinished: u64,
}

impl UniquePath {
    /// Returns a path trace that no call has taken yet.
    pub(super) fn new(trace: PathTrace) -> Self {
        Self {
            trace,
            calls: 0,
            unfinished: 0,
        }
    }
}

impl Wpp {
    /// Returns the unique path traces of a function, if it was called. Time: O(log functions).
    pub fn function(&self, function: FuncId) -> Option<&FunctionPaths> {
        let k = self
            .functions
            .binary_search_by_key(&function, |f| f.function);
        k.ok().map(|k| &self.functions[k])
    }

    /// Returns the path trace that a call took, or `None` if the call graph and the traces belong
    /// to different runs.
    pub fn path(&self, call: Call) -> Option<&UniquePath> {
        self.function(call.function)?.paths.get(call.path as usize)
    }

    /// Returns the number of blocks that the run executed.
    pub fn blocks(&self) -> u64 {
        let paths = self.functions.iter().flat_map(|f| &f.paths);
        paths.map(|p| p.calls * p.trace.len()).sum()
    }

    /// Returns the events of the run, in order.
    pub fn events(&self) -> Events<'_> {
        Events::new(self)
    }
}
