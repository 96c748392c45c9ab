//! Walks the tree of calls that a call graph represents.

use super::call_graph::{CallGraph, CallId};
use super::call_runs::{CallRun, Runs};

/// A step of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStep {
    /// A call begins.
    Call {
        /// The number of blocks that the caller itself had executed before the call, or 0 for a
        /// call from outside.
        position: u64,
        /// The subtree of the call.
        call: CallId,
    },
    /// The innermost call ends. If it never returned, this is the end of the run.
    End,
}

/// The calls of a run and their ends, in order.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    graph: &'a CallGraph,
    stack: Vec<Frame<'a>>,
}

/// An open call's remaining calls.
#[derive(Clone, Debug)]
struct Frame<'a> {
    /// The rest of the current run.
    run: Option<CallRun>,
    runs: Runs<'a>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(graph: &'a CallGraph) -> Self {
        let stack = vec![Frame {
            run: None,
            runs: graph.top(),
        }];
        Self { graph, stack }
    }
}

impl Iterator for Walk<'_> {
    type Item = CallStep;

    fn next(&mut self) -> Option<CallStep> {
        let frame = self.stack.last_mut()?;
        let Some(run) = frame.run.take().or_else(|| frame.runs.next()) else {
            self.stack.pop();
            return (!self.stack.is_empty()).then_some(CallStep::End);
        };
        if run.count > 1 {
            frame.run = Some(CallRun {
                first: run.first + run.step,
                count: run.count - 1,
                ..run
            });
        }
        self.stack.push(Frame {
            run: None,
            runs: self.graph.calls(run.call),
        });
        Some(CallStep::Call {
            position: run.first,
            call: run.call,
        })
    }
}
