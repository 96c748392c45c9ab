//! Counts and loads stretches, which are the parts of a path between cuts of its words.
//!
//! The contents of each stretch are counted while the words are written, so the path of the whole
//! run can be queried at once. A stretch is regenerated only when an answer needs it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId, PrimaryMap};
use afterimage_paths::{ExecutedPath, NullSink, PathPlan, Regenerator, Sink, Tally, Waypoint};
use afterimage_program::{Module, OperatorIndex, Program};
use afterimage_trace::TraceFile;
use afterimage_wpp::{Builder, Continuation, Directory, Limits, Node, Segment, Shape, Summary};

use super::WordReader;
use super::build::{live_words, recorded_finish};
use super::grammar::Nodes;
use crate::RecordError;

/// The identity of a path: its function, its blocks, and the place where its activation continues.
type NodeKey = (FuncId, Box<[BlockId]>, Continuation);

/// Maps each node to its id.
type NodeIds = HashMap<NodeKey, NodeId>;

/// Builds the map for a directory's nodes.
fn node_ids(directory: &Directory) -> NodeIds {
    let all = directory.nodes.iter().zip(&directory.continuations);
    let ids = all.map(|((id, node), on)| ((node.function, node.blocks.clone(), *on), id));
    ids.collect()
}

fn node_key(path: &ExecutedPath<'_>) -> NodeKey {
    let on = Continuation {
        next: path.next,
        calls: path.calls,
    };
    (path.function, path.blocks.into(), on)
}

/// The distinct nodes so far, with their numbers.
#[derive(Default)]
pub(super) struct NodeSet {
    nodes: Nodes,
    ids: NodeIds,
}

impl NodeSet {
    /// Returns the node for a path.
    fn id(&mut self, path: &ExecutedPath<'_>) -> NodeId {
        let key = node_key(path);
        let nodes = &mut self.nodes;
        *self
            .ids
            .entry(key)
            .or_insert_with_key(|(function, blocks, on)| {
                nodes.continuations.push(*on);
                nodes.nodes.push(Node {
                    function: *function,
                    blocks: blocks.clone(),
                    left_out: 0,
                })
            })
    }
}

/// Counts the executions of each node.
#[derive(Default)]
pub(crate) struct NodeTally {
    set: NodeSet,
    counts: PrimaryMap<NodeId, u64>,
}

impl Sink for NodeTally {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        let id = self.set.id(&path);
        while self.counts.len() <= id.index() {
            self.counts.push(0);
        }
        id
    }

    fn path(&mut self, node: NodeId) {
        self.add(node, 1);
    }

    fn enter(&mut self, _: FuncId) {}

    fn leave(&mut self) {}
}

impl Tally for NodeTally {
    const COUNTS: bool = true;

    fn add(&mut self, node: NodeId, times: u64) {
        self.counts[node] += times;
    }
}

/// A tally that counts nodes, or nothing.
pub(crate) trait NodeCounts: Tally {
    /// Returns the executions of each node since the last call, in ascending order of nodes.
    fn taken(&mut self) -> Vec<(NodeId, u64)>;

    /// Returns all counted nodes.
    fn nodes(self) -> Nodes;
}

impl NodeCounts for NullSink {
    fn taken(&mut self) -> Vec<(NodeId, u64)> {
        Vec::new()
    }

    fn nodes(self) -> Nodes {
        Nodes::default()
    }
}

impl NodeCounts for NodeTally {
    fn taken(&mut self) -> Vec<(NodeId, u64)> {
        let counts = self.counts.iter_mut();
        let taken = counts.map(|(node, count)| (node, std::mem::take(count)));
        taken.filter(|&(_, count)| count > 0).collect()
    }

    fn nodes(self) -> Nodes {
        self.set.nodes
    }
}

/// Builds the directory of a path whose stretches contain these nodes. Adds to `summaries` the
/// number of activations that begin in each stretch. This is the number of executions of nodes at a
/// function's beginning.
pub(super) fn directory(program: &Program, nodes: Nodes, mut summaries: Vec<Summary>) -> Directory {
    let begins = |node: NodeId| {
        let node = &nodes.nodes[node];
        let root = program.function(node.function)?.cfg.graph.root();
        (node.blocks.first() == Some(&root)).then_some(node.function)
    };
    for summary in &mut summaries {
        let counts = summary.node_counts.iter();
        let mut calls =
            Vec::from_iter(counts.filter_map(|&(id, times)| Some((begins(id)?, times))));
        calls.sort_unstable_by_key(|&(function, _)| function);
        for (function, times) in calls {
            match summary.call_counts.last_mut() {
                Some((last, count)) if *last == function => *count += times,
                _ => summary.call_counts.push((function, times)),
            }
        }
    }
    Directory {
        nodes: nodes.nodes,
        continuations: nodes.continuations,
        summaries,
        ..Directory::default()
    }
}

/// Loads the stretches of a path from the words that a re-execution wrote.
pub struct Stretches {
    file: TraceFile,
    module: Arc<Module>,
    plan: PathPlan,
    /// A reader for the path's words.
    words: WordReader,
    /// The ids of the directory's nodes, built by the first call to [`load`](Self::load).
    nodes: OnceLock<NodeIds>,
}

impl std::fmt::Debug for Stretches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stretches").finish_non_exhaustive()
    }
}

impl Stretches {
    /// Opens the words that a re-execution of a recording wrote. Returns `None` if there are none.
    ///
    /// # Errors
    /// Returns an error if the file is damaged.
    pub fn open(file: &TraceFile, module: &Arc<Module>) -> Result<Option<Self>, RecordError> {
        let found = live_words(file, &module.program)?;
        let found = found.filter(|(_, words)| words.repeated);
        Ok(found.map(|(plan, words)| Self {
            file: file.clone(),
            module: Arc::clone(module),
            plan,
            words,
            nodes: OnceLock::new(),
        }))
    }

    /// Loads a stretch. Its nodes have the ids of the directory, which must be the same at every
    /// call. Time: linear in the stretch's blocks.
    ///
    /// # Errors
    /// Returns an error if the file is damaged or has no such stretch.
    pub fn load(&self, directory: &Directory, number: usize) -> Result<Segment, RecordError> {
        let program = &self.module.program;
        let summary = directory.summaries.get(number).ok_or(RecordError::Words)?;
        let end = summary.before.saturating_add(summary.length);
        let is_last = number + 1 == directory.summaries.len();
        let mut words = self.words.again();
        let (begin, mut piece) = words.between(summary.before)?;
        let mut run = Regenerator::resumed(program, &self.plan, &begin)?;
        let open = run.open().collect();
        let nodes = self.nodes.get_or_init(|| node_ids(directory));
        let mut sink = StretchSink::new(nodes, summary.before, open);
        loop {
            for function in piece.calls {
                run.host_call(function);
            }
            run.feed(&piece.words, &mut sink)?;
            if run.time() > end {
                return Err(RecordError::Words);
            }
            let is_end = |said: &Waypoint| said.is_between_words() && said.time() == end;
            match words.next()? {
                None if is_last => {
                    if let Some(end) = self.file.end()? {
                        let index = OperatorIndex::new(program, &self.module.bytes);
                        run.finish(&recorded_finish(program, &index, &end)?, &mut sink)?;
                    }
                    break;
                }
                Some(next) if !is_last && next.waypoint.as_ref().is_some_and(is_end) => {
                    if let Some(said) = next.waypoint {
                        run.close(&said, &mut sink)?;
                    }
                    break;
                }
                Some(next) => piece = next,
                None => return Err(RecordError::Words),
            }
        }
        sink.finish().ok_or(RecordError::Words)
    }
}

/// Builds the segment of a stretch, with the node numbers of a directory.
pub(super) struct StretchSink<'a> {
    builder: Builder,
    ids: &'a NodeIds,
    /// The number of defined nodes that the directory does not have.
    unknown: usize,
}

impl<'a> StretchSink<'a> {
    /// Starts a stretch after `before` blocks with these activations open, outermost first.
    pub fn new(ids: &'a NodeIds, before: u64, open: Vec<FuncId>) -> Self {
        let all = Limits {
            symbols: usize::MAX,
        };
        Self {
            builder: Builder::resumed(all, before, open),
            ids,
            unknown: 0,
        }
    }

    /// Returns the segment, or `None` if it is empty.
    pub fn finish(mut self) -> Option<Segment> {
        self.builder.finish()
    }
}

impl Sink for StretchSink<'_> {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        // A node missing from the directory gets an id beyond its end. The check of the segment
        // rejects it.
        let id = self.ids.get(&node_key(&path)).copied().unwrap_or_else(|| {
            self.unknown += 1;
            NodeId::new(self.ids.len() + self.unknown - 1)
        });
        let shape = Shape {
            length: path.blocks.len() as u64,
            loops: path.loops.iter().map(|block| block.as_u32()).collect(),
            header: path.header,
        };
        self.builder.define_as(id, shape);
        id
    }

    #[inline]
    fn path(&mut self, node: NodeId) {
        self.builder.node(node, 1);
    }

    #[inline]
    fn enter(&mut self, function: FuncId) {
        self.builder.enter(function);
    }

    #[inline]
    fn leave(&mut self) {
        self.builder.leave();
    }
}
