//! Provides a run's path traces and calls, for questions about functions.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use afterimage_dataflow::{CallEffects, Direction, Events, Summaries, TimestampedGraph};
use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_machine::stopped_before;
use afterimage_program::{BlockEnd, OperatorIndex, Program};
use afterimage_trace::End;
use afterimage_wpp::twpp::{
    CallGraph, CallId, CollectError, Dictionary, DynamicCfg, Entry, FunctionPaths, PathTrace,
    TimestampedTrace, Wpp, collect,
};
use afterimage_wpp::{Segments, WholePath};
use rustc_hash::FxHashMap;

use afterimage_profile::{ProfileError, stops};

/// The place inside a block where the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastStep {
    /// The first operator in the block that the run did not execute. An operator that trapped
    /// counts as not executed.
    pub next: OpId,
}

impl LastStep {
    /// Returns the last step of a run that ended as `end` describes. `module` contains the bytes of
    /// the program.
    ///
    /// # Errors
    /// Returns an error if the program does not contain the place where the run ended.
    pub fn of(program: &Program, module: &[u8], end: &End) -> Result<Option<Self>, ProfileError> {
        let stops = stops(program, &OperatorIndex::new(program, module), end)?;
        let Some(stop) = stops.first() else {
            return Ok(None);
        };
        let function = program.function(stop.function);
        let block = function.map(|function| &function.cfg.blocks[stop.block]);
        let in_call = block.is_some_and(|block| {
            let calls = matches!(block.end, BlockEnd::Call(_) | BlockEnd::TailCall(_));
            calls && stop.next == block.ops.end
        });
        let trapped = !in_call && stopped_before(program, module, end).is_none();
        let next = stop.next.as_u32();
        let next = OpId::from_u32(if trapped {
            next.saturating_sub(1)
        } else {
            next
        });
        Ok(Some(Self { next }))
    }
}

/// The unique path traces and the dynamic call graph of a run.
pub struct RunCalls {
    wpp: Wpp,
    occurrences: Vec<u64>,
    last: Option<LastStep>,
    /// The innermost call that never returned.
    innermost: Option<CallId>,
    /// The size in bytes above which a path trace counts as irregular.
    regular: usize,
}

/// Returns the number of blocks of a function's unique path traces.
fn blocks(of: &FunctionPaths) -> u64 {
    of.paths.iter().map(|path| path.trace.len()).sum()
}

/// The largest path trace for which to build a graph, in bytes. The graph takes about forty times
/// as much memory.
const REGULAR: usize = 16 << 20;

/// A path trace of a function.
pub(super) struct PathOf<'a> {
    pub trace: &'a PathTrace,
    /// Whether to scan the path block by block, because the trace is too large for a graph.
    pub is_irregular: bool,
    /// The number of groups of calls that took the path.
    pub groups: u64,
    graph: OnceCell<Option<PathGraph>>,
}

impl PathOf<'_> {
    /// Returns the path as a graph, which is built on first use.
    pub fn graph(&self) -> Option<&PathGraph> {
        let made = self.graph.get_or_init(|| {
            let trace = TimestampedTrace::of(self.trace.blocks());
            let graph = DynamicCfg::of(&trace, &Dictionary::default()).ok()?;
            Some(PathGraph {
                graph: TimestampedGraph::from(&graph),
                blocks: graph.nodes().iter().map(|node| node.blocks[0]).collect(),
            })
        });
        made.as_ref()
    }
}

/// A path trace of a function, as a graph of blocks.
pub(super) struct PathGraph {
    pub graph: TimestampedGraph,
    /// The block of each node of the graph.
    pub blocks: Vec<BlockId>,
}

/// Calls that took the same path, and whose callees also took the same paths.
pub(super) struct Alike {
    /// The effects of the callees on each fact that is asked about.
    pub effects: Vec<CallEffects>,
    /// The steps after which functions of the program were called.
    pub called: Vec<Entry>,
    /// The number of calls in the group.
    pub calls: u64,
    /// The subtrees of these calls in the dynamic call graph.
    pub ids: Vec<CallId>,
    /// The run's last step, if this is the single call in which the run ended.
    pub last: Option<LastStep>,
}

impl RunCalls {
    /// Collects the calls of a run. Time is linear in the run's grammar and in the blocks of its
    /// unique path traces. `last` is the place where the run ended, if it ended inside a block.
    /// `tell` receives the number of the run's blocks whose calls have been collected.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn of<S: Segments>(
        path: &WholePath<S>,
        last: Option<LastStep>,
        tell: &dyn Fn(u64),
    ) -> Result<Self, CollectError<S::Error>> {
        let wpp = collect(path, tell)?;
        let innermost = last.and_then(|_| wpp.calls.open_calls().last().copied());
        Ok(Self {
            occurrences: wpp.calls.occurrences(),
            wpp,
            last,
            innermost,
            regular: REGULAR,
        })
    }

    /// Sets the maximum size of a path trace for which to build a graph. Traces of more than
    /// `bytes` bytes are scanned block by block.
    pub fn regular_up_to(self, bytes: usize) -> Self {
        Self {
            regular: bytes,
            ..self
        }
    }

    /// Returns the effects of all calls on a fact.
    pub(super) fn summaries(&self, direction: Direction, events: &impl Events) -> Summaries<'_> {
        Summaries::new(&self.wpp, direction, events)
    }

    /// Returns the dynamic call graph of the run.
    pub(super) fn graph(&self) -> &CallGraph {
        &self.wpp.calls
    }

    /// Returns the call in which the run ended inside a block, if any.
    pub(super) fn innermost(&self) -> Option<CallId> {
        self.innermost
    }

    /// Returns the number of blocks that a call executed itself.
    pub(super) fn blocks(&self, id: CallId) -> u64 {
        let path = self.wpp.path(self.wpp.calls.call(id));
        path.map_or(0, |path| path.trace.len())
    }

    /// Returns the number of blocks of a function's unique path traces.
    pub(super) fn trace_blocks(&self, function: FuncId) -> u64 {
        self.wpp.function(function).map_or(0, blocks)
    }

    /// Returns the number of blocks of all unique path traces.
    pub(super) fn all_trace_blocks(&self) -> u64 {
        self.wpp.functions.iter().map(blocks).sum()
    }

    /// Returns the number of calls to a function.
    pub fn calls(&self, function: FuncId) -> u64 {
        let paths = self.wpp.function(function).map(|f| &f.paths[..]);
        paths.unwrap_or_default().iter().map(|p| p.calls).sum()
    }

    /// Visits the calls to a function, path by path. Calls that are alike are visited together.
    pub(super) fn visit(
        &self,
        function: FuncId,
        summaries: &[&Summaries<'_>],
        needs_called: bool,
        mut visit: impl FnMut(&PathOf<'_>, &Alike),
    ) {
        let mut by_path: BTreeMap<u32, Vec<CallId>> = BTreeMap::new();
        for id in self.wpp.calls.ids() {
            let call = self.wpp.calls.call(id);
            if call.function == function {
                by_path.entry(call.path).or_default().push(id);
            }
        }
        for ids in by_path.values() {
            let Some(found) = self.wpp.path(self.wpp.calls.call(ids[0])) else {
                continue;
            };
            let mut groups = Vec::new();
            let mut alike: FxHashMap<(Vec<CallEffects>, Vec<Entry>), Alike> = FxHashMap::default();
            for &id in ids {
                let effects: Vec<CallEffects> = summaries.iter().map(|s| s.effects(id)).collect();
                let called = if needs_called {
                    self.called(id)
                } else {
                    Vec::new()
                };
                let mut calls = self.occurrences[id.index()];
                if self.innermost == Some(id) {
                    calls -= 1;
                    groups.push(Alike {
                        effects: effects.clone(),
                        called: called.clone(),
                        calls: 1,
                        ids: vec![id],
                        last: self.last,
                    });
                }
                let known = alike.entry((effects.clone(), called.clone()));
                let known = known.or_insert(Alike {
                    effects,
                    called,
                    calls: 0,
                    ids: Vec::new(),
                    last: None,
                });
                known.calls += calls;
                known.ids.push(id);
            }
            groups.extend(alike.into_values().filter(|alike| alike.calls > 0));
            let path = PathOf {
                trace: &found.trace,
                is_irregular: found.trace.heap_bytes() > self.regular,
                groups: groups.len() as u64,
                graph: OnceCell::new(),
            };
            for alike in &groups {
                visit(&path, alike);
            }
        }
    }

    /// Returns the steps of a call after which it calls functions of the program.
    fn called(&self, id: CallId) -> Vec<Entry> {
        let mut called: Vec<Entry> = Vec::new();
        for run in self.wpp.calls.calls(id) {
            let after = called.last().map_or(0, |entry| entry.last);
            let step = run.step.max(1);
            let first = if run.first > after {
                run.first
            } else {
                run.first + step
            };
            if first > run.last() {
                continue;
            }
            called.push(Entry {
                first,
                last: run.last(),
                step: if first == run.last() { 1 } else { step },
            });
        }
        called
    }
}
