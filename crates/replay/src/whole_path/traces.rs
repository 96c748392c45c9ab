//! Collects the path traces of functions (Zhang and Gupta 2001).

use std::ops::RangeInclusive;

use afterimage_ids::{BlockId, FuncId, grouped, times};
use afterimage_wpp::twpp::{
    CallPath, CollectError, Dictionary, DynamicCfg, FunctionPaths, FunctionTraces, PathCounts,
    PathOutline, TimestampedTrace, UniquePath, call_path, count_paths, function_paths,
    path_outlines,
};
use afterimage_wpp::{Segments, TargetError, WholePath};
use serde::{Deserialize, Serialize};

/// The order in which functions are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountOrder {
    /// By the number of calls, in descending order, as in the paper's files.
    #[default]
    Calls,
    /// By the number of executed blocks, in descending order.
    Blocks,
    /// By the number of unique path traces, in descending order.
    Paths,
    /// In program order.
    Program,
}

/// The number of calls and unique path traces of all functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceCounts {
    /// A row for each function that was called.
    pub rows: Vec<PathCounts>,
    /// The number of functions that were called.
    pub functions: u64,
    /// The total number of calls.
    pub calls: u64,
    /// The total number of unique path traces, for all functions without gaps.
    pub paths: u64,
    /// The total number of executed blocks.
    pub blocks: u64,
    /// The total number of calls that never returned.
    pub unfinished: u64,
    /// The number of functions that were left out of the rows on request.
    pub left_out: u64,
}

impl TraceCounts {
    /// Counts calls and traces as [`count_paths`] does. Keeps the first `top` rows in the given
    /// order.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn of<S: Segments>(
        path: &WholePath<S>,
        order: CountOrder,
        top: Option<usize>,
        shows: impl Fn(FuncId) -> bool,
    ) -> Result<Self, CollectError<S::Error>> {
        let mut rows = count_paths(path)?;
        let sum = |of: fn(&PathCounts) -> u64| rows.iter().map(of).sum();
        let mut counts = Self {
            rows: Vec::new(),
            functions: rows.len() as u64,
            calls: sum(|row| row.calls),
            paths: sum(|row| row.paths.unwrap_or(0)),
            blocks: sum(|row| row.blocks),
            unfinished: sum(|row| row.unfinished),
            left_out: 0,
        };
        rows.retain(|row| shows(row.function));
        counts.left_out = counts.functions - rows.len() as u64;
        let key: Option<fn(&PathCounts) -> u64> = match order {
            CountOrder::Calls => Some(|row| row.calls),
            CountOrder::Blocks => Some(|row| row.blocks),
            CountOrder::Paths => Some(|row| row.paths.unwrap_or(0)),
            CountOrder::Program => None,
        };
        if let Some(key) = key {
            rows.sort_by_key(|row| std::cmp::Reverse(key(row)));
        }
        rows.truncate(top.unwrap_or(usize::MAX));
        counts.rows = rows;
        Ok(counts)
    }
}

/// All unique path traces of a function, compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// The compacted traces, in descending order of the number of calls that took them.
    pub compacted: FunctionTraces,
    /// The number of calls.
    pub calls: u64,
    /// The number of calls that never returned.
    pub unfinished: u64,
    /// The number of blocks that the calls executed themselves.
    pub blocks: u64,
}

impl Traces {
    /// Returns the traces of a function, as [`function_paths`] finds them. There are none if the
    /// function was not called. Takes additional time linear in the blocks of the traces.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn of<S: Segments>(
        path: &WholePath<S>,
        function: FuncId,
    ) -> Result<Self, CollectError<S::Error>> {
        let mut found = function_paths(path, function)?;
        found
            .paths
            .sort_by_key(|path| (std::cmp::Reverse(path.calls), path.trace.len()));
        let sum = |of: fn(&UniquePath) -> u64| found.paths.iter().map(of).sum();
        Ok(Self {
            calls: sum(|path| path.calls),
            unfinished: sum(|path| path.unfinished),
            blocks: sum(|path| path.calls * path.trace.len()),
            compacted: FunctionTraces::of(found),
        })
    }

    /// Returns the number of traces.
    pub fn len(&self) -> usize {
        self.compacted.paths.len()
    }

    /// Whether the function was not called.
    pub fn is_empty(&self) -> bool {
        self.compacted.paths.is_empty()
    }

    /// Returns the blocks of a trace, in the order of execution.
    ///
    /// # Panics
    /// Panics if there is no such trace.
    pub fn blocks(&self, trace: usize) -> impl Iterator<Item = BlockId> {
        let (steps, dictionary) = self.compacted.parts(trace);
        steps
            .steps()
            .flat_map(|step| dictionary.expand(&step).to_vec())
    }
}

/// The unique path traces of a function, without most of their blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlines {
    /// The function.
    pub function: FuncId,
    /// The traces, in the order of [`Traces`].
    pub traces: Vec<PathOutline>,
}

impl Outlines {
    /// Returns the traces of a function with at most `most` blocks each. Also counts the calls with
    /// the numbers in `chosen` on their own, as [`path_outlines`] does. Time: linear in the path's
    /// grammar, however long the traces are.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn of<S: Segments>(
        path: &WholePath<S>,
        function: FuncId,
        most: usize,
        chosen: Option<RangeInclusive<u64>>,
    ) -> Result<Self, CollectError<S::Error>> {
        let mut traces = path_outlines(path, function, most, chosen)?;
        traces.sort_by_key(|one| (std::cmp::Reverse(one.calls), one.length));
        Ok(Self { function, traces })
    }
}

/// The subject of a dynamic control-flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A single call to the function.
    Call {
        /// The number of the call, from 1.
        number: u64,
        /// The number of calls to the function.
        of: u64,
        /// The time of the call's first block.
        entered: u64,
        /// Whether the call returned.
        returned: bool,
    },
    /// A unique path trace of the function.
    Trace {
        /// The number of the trace, from 1.
        number: usize,
        /// The number of traces of the function.
        of: usize,
        /// The number of calls that took the trace.
        calls: u64,
    },
}

/// The nodes of a dynamic control-flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphNodes {
    /// Nodes are dynamic basic blocks.
    Dynamic,
    /// Nodes are single blocks.
    Blocks,
}

/// The timestamp-annotated dynamic control-flow graph of a call or a path trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicGraph {
    /// The function that was called.
    pub function: FuncId,
    /// The subject of the graph.
    pub whose: Whose,
    /// The kind of the graph's nodes.
    pub nodes: GraphNodes,
    /// The number of executed blocks.
    pub blocks: u64,
    /// The number of steps of the trace, which is the last timestamp.
    pub steps: u64,
    /// The graph, with its timestamps.
    pub graph: DynamicCfg,
}

/// The reason why a dynamic control-flow graph cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError<E> {
    /// The path cannot be read.
    #[error(transparent)]
    Collect(#[from] CollectError<E>),
    /// The function's calls cannot be counted.
    #[error(transparent)]
    Calls(#[from] TargetError),
    /// The function was not called.
    #[error("it was not called in this run")]
    NeverCalled,
    /// The function was called fewer times.
    #[error("there is no call {}: it was called {}", grouped(*number), times(*.of))]
    NoCall {
        /// The requested number of the call.
        number: u64,
        /// The number of calls to the function.
        of: u64,
    },
    /// The function has fewer path traces.
    #[error(
        "there is no path trace {}: the function has {}, numbered from 1, the most frequent first",
        grouped(*number as u64),
        grouped(*of as u64)
    )]
    NoTrace {
        /// The requested number of the trace.
        number: usize,
        /// The number of traces of the function.
        of: usize,
    },
}

impl DynamicGraph {
    /// Returns the graph of a function's k-th call, counted from 1.
    ///
    /// # Errors
    /// Returns an error if there is no such call, or the path cannot be read.
    pub fn of_call<S: Segments>(
        path: &WholePath<S>,
        function: FuncId,
        number: u64,
        nodes: GraphNodes,
    ) -> Result<Self, GraphError<S::Error>> {
        let of = path.activations(function)?.count();
        if of == 0 {
            return Err(GraphError::NeverCalled);
        }
        let call = call_path(path, function, number)?;
        let Some(CallPath {
            entered,
            trace,
            returned,
        }) = call
        else {
            return Err(GraphError::NoCall { number, of });
        };
        let whose = Whose::Call {
            number,
            of,
            entered,
            returned,
        };
        let traces = FunctionTraces::of(FunctionPaths {
            function,
            paths: vec![UniquePath {
                trace,
                calls: 1,
                unfinished: u64::from(!returned),
            }],
        });
        Ok(Self::new(&traces, 0, whose, nodes))
    }

    /// Returns the graph of a function's i-th unique path trace, counted from 1 in the order of
    /// [`Traces`].
    ///
    /// # Errors
    /// Returns an error if there is no such trace, or the path cannot be read.
    pub fn of_trace<S: Segments>(
        path: &WholePath<S>,
        function: FuncId,
        number: usize,
        nodes: GraphNodes,
    ) -> Result<Self, GraphError<S::Error>> {
        let traces = Traces::of(path, function)?;
        let of = traces.len();
        if of == 0 {
            return Err(GraphError::NeverCalled);
        }
        if !(1..=of).contains(&number) {
            return Err(GraphError::NoTrace { number, of });
        }
        let calls = traces.compacted.paths[number - 1].calls;
        let whose = Whose::Trace { number, of, calls };
        Ok(Self::new(&traces.compacted, number - 1, whose, nodes))
    }

    fn new(traces: &FunctionTraces, trace: usize, whose: Whose, nodes: GraphNodes) -> Self {
        let (steps, dictionary) = traces.parts(trace);
        let (steps, graph) = match nodes {
            GraphNodes::Dynamic => (steps.len(), DynamicCfg::of(steps, dictionary)),
            GraphNodes::Blocks => {
                let blocks = steps
                    .steps()
                    .flat_map(|step| dictionary.expand(&step).to_vec());
                let steps = TimestampedTrace::of(blocks);
                (steps.len(), DynamicCfg::of(&steps, &Dictionary::default()))
            }
        };
        Self {
            function: traces.function,
            whose,
            nodes,
            blocks: traces.blocks(trace),
            steps,
            graph: graph.expect("a trace that was just made is one"),
        }
    }
}
