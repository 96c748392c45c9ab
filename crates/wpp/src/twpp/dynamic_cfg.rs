//! The timestamp-annotated dynamic control-flow graph of a call (Zhang and Gupta 2001, section
//! 4.1).

use std::collections::BTreeMap;

use afterimage_ids::BlockId;

use super::compact::FunctionTraces;
use super::dictionary::Dictionary;
use super::series::Series;
use super::timestamped::{BadTrace, TimestampedTrace};

/// A call's executed blocks and their times. Every dynamic basic block is a node, with the steps of
/// the call at which it executes.
///
/// A pair of a timestamp and a node is a point of the path trace. [`Self::after`] and
/// [`Self::before`] walk from any point in either direction without the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicCfg {
    nodes: Vec<DynamicNode>,
    edges: Vec<DynamicEdge>,
    /// The indices of the edges in `edges`, ascending by target.
    by_target: Vec<usize>,
}

/// A node, which is a dynamic basic block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicNode {
    /// The node's blocks, in execution order.
    pub blocks: Vec<BlockId>,
    /// The steps at which the node executes. Each step is the execution of one node. The first step
    /// is 1.
    pub timestamps: Series,
}

/// An edge from one node to another that was executed right after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicEdge {
    /// The index of the node that is executed first.
    pub from: usize,
    /// The index of the node that is executed next.
    pub to: usize,
    /// The number of times the edge was taken.
    pub count: u64,
}

impl<B: AsRef<[u8]>> FunctionTraces<B> {
    /// Returns the dynamic control-flow graph of the calls that took a unique path trace. Time:
    /// O(steps log blocks).
    ///
    /// # Errors
    /// Returns an error if the trace comes from a damaged file and is invalid.
    ///
    /// # Panics
    /// Panics if there is no such path.
    pub fn dynamic_cfg(&self, path: usize) -> Result<DynamicCfg, BadTrace> {
        let (trace, dictionary) = self.parts(path);
        DynamicCfg::of(trace, dictionary)
    }
}

impl DynamicCfg {
    /// Returns the graph of a trace of dynamic basic blocks or, with an empty dictionary, of a
    /// trace of blocks. Nodes ascend by first block, edges by source and target. Time: O(steps log
    /// blocks).
    ///
    /// # Errors
    /// Returns an error if the trace comes from a damaged file and is invalid.
    pub fn of<B: AsRef<[u8]>>(
        trace: &TimestampedTrace<B>,
        dictionary: &Dictionary,
    ) -> Result<Self, BadTrace> {
        let blocks: Vec<_> = trace.blocks().collect();
        let place = |block| blocks.binary_search_by_key(&block, |&(b, _)| b);
        let mut counts: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let (mut last, mut steps) = (None, 0);
        for step in trace.steps() {
            let node = place(step).map_err(|_| BadTrace("a step belongs to no block"))?;
            if let Some(last) = last {
                *counts.entry((last, node)).or_default() += 1;
            }
            last = Some(node);
            steps += 1;
        }
        if steps != trace.len() {
            return Err(BadTrace("two blocks share a timestamp"));
        }
        let nodes = blocks.into_iter().map(|(block, timestamps)| DynamicNode {
            blocks: dictionary.expand(&block).to_vec(),
            timestamps,
        });
        let nodes = nodes.collect();
        let edges = counts.into_iter();
        let edges: Vec<_> = edges
            .map(|((from, to), count)| DynamicEdge { from, to, count })
            .collect();
        let mut by_target: Vec<_> = (0..edges.len()).collect();
        by_target.sort_by_key(|&e| edges[e].to);
        Ok(Self {
            nodes,
            edges,
            by_target,
        })
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> &[DynamicNode] {
        &self.nodes
    }

    /// Returns the edges.
    pub fn edges(&self) -> &[DynamicEdge] {
        &self.edges
    }

    /// Returns the edges from a node.
    pub fn outgoing(&self, node: usize) -> impl Iterator<Item = &DynamicEdge> {
        let begin = self.edges.partition_point(|e| e.from < node);
        self.edges[begin..]
            .iter()
            .take_while(move |e| e.from == node)
    }

    /// Returns the edges to a node.
    pub fn incoming(&self, node: usize) -> impl Iterator<Item = &DynamicEdge> {
        let begin = self.by_target.partition_point(|&e| self.edges[e].to < node);
        let from_here = self.by_target[begin..].iter().map(|&e| &self.edges[e]);
        from_here.take_while(move |e| e.to == node)
    }

    /// Returns the node that executes at a step, if there is one. Time: O(nodes log entries).
    pub fn at(&self, t: u64) -> Option<usize> {
        self.nodes.iter().position(|n| n.timestamps.contains(t))
    }

    /// Returns the node that executes after `node` executes at step `t`. It is the successor with
    /// the timestamp `t + 1`. Returns `None` at the end, or if `node` does not execute at step `t`.
    /// Time: O(successors log entries).
    pub fn after(&self, t: u64, node: usize) -> Option<usize> {
        let next = t.checked_add(1).filter(|_| self.executes(t, node))?;
        let mut to = self.outgoing(node).map(|e| e.to);
        to.find(|&n| self.executes(next, n))
    }

    /// Returns the node that executes before `node` executes at step `t`. It is the predecessor
    /// with the timestamp `t - 1`. Returns `None` at the beginning, or if `node` does not execute
    /// at step `t`. Time: O(predecessors log entries).
    pub fn before(&self, t: u64, node: usize) -> Option<usize> {
        let previous = t.checked_sub(1).filter(|_| self.executes(t, node))?;
        let mut from = self.incoming(node).map(|e| e.from);
        from.find(|&n| self.executes(previous, n))
    }

    fn executes(&self, t: u64, node: usize) -> bool {
        let node = self.nodes.get(node);
        node.is_some_and(|n| n.timestamps.contains(t))
    }
}
