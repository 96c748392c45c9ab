//! The dynamic call graph, which contains the calls that each call makes, and their positions
//! (Zhang and Gupta 2001, section 2).
//!
//! The paper's graph is a tree with a node per call, which links the path traces together. Here,
//! equal subtrees share one node, so a billion equal calls from a loop take a few bytes.
//! [`CallGraph::walk`] walks the tree that the graph represents.

use std::hash::{Hash, Hasher};

use afterimage_ids::FuncId;
use hashbrown::HashTable;
use rustc_hash::FxHasher;

use super::call_runs::Runs;
use super::event::EventError;
use super::walk::Walk;

/// The id of a subtree of the dynamic call graph, which is a call with all of its callees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub(super) u32);

impl CallId {
    /// Returns the number of the subtree. Subtrees are numbered from 0, callees before callers.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A call's function and path trace, without the calls that it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The function that was called.
    pub function: FuncId,
    /// The number of the unique path trace that the call took, among the function's traces.
    pub path: u32,
}

/// The dynamic call graph of a run. Equal subtrees are shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGraph {
    nodes: Vec<Node>,
    runs: Vec<u8>,
    top: Vec<u8>,
    open: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    call: Call,
    /// The end of the node's calls in `runs`. They start where the calls of the previous node end.
    end: u64,
}

impl CallGraph {
    /// Returns the number of different subtrees.
    pub fn subtrees(&self) -> usize {
        self.nodes.len()
    }

    /// Returns all subtrees, callees before callers.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = CallId> + use<> {
        (0..self.nodes.len() as u32).map(CallId)
    }

    /// Returns the function and the path trace of a subtree's outermost call.
    pub fn call(&self, id: CallId) -> Call {
        self.nodes[id.0 as usize].call
    }

    /// Returns the direct calls of a subtree's outermost call.
    pub fn calls(&self, id: CallId) -> Runs<'_> {
        Runs::new(self.bytes(id.0 as usize))
    }

    /// Returns the calls from outside.
    pub fn top(&self) -> Runs<'_> {
        Runs::new(&self.top)
    }

    /// Returns the number of calls that never returned. These are the last call from outside, the
    /// last call that it made, and so on.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// Returns the calls and returns of the run in order, as in the paper's tree. Memory is
    /// proportional to the depth.
    pub fn walk(&self) -> Walk<'_> {
        Walk::new(self)
    }

    /// Counts the occurrences of each subtree. Time: O(nodes + runs).
    pub fn occurrences(&self) -> Vec<u64> {
        self.checked_occurrences().unwrap_or_default()
    }

    /// Counts the occurrences of each subtree. Returns `None` if a count exceeds 64 bits, which
    /// never happens in a finished graph.
    pub(super) fn checked_occurrences(&self) -> Option<Vec<u64>> {
        let mut counts = vec![0u64; self.nodes.len()];
        let add = |counts: &mut [u64], runs: Runs<'_>, times: u64| {
            for run in runs {
                let count = &mut counts[run.call.0 as usize];
                *count = run.count.checked_mul(times)?.checked_add(*count)?;
            }
            Some(())
        };
        add(&mut counts, self.top(), 1)?;
        for id in self.ids().rev() {
            let times = counts[id.0 as usize];
            add(&mut counts, self.calls(id), times)?;
        }
        Some(counts)
    }

    /// Returns the calls that never returned, outermost first.
    pub fn open_calls(&self) -> Vec<CallId> {
        let mut open = Vec::new();
        let mut runs = self.top();
        while (open.len() as u64) < self.open {
            let Some(run) = runs.last() else { break };
            open.push(run.call);
            runs = self.calls(run.call);
        }
        open
    }

    /// Returns the memory use in bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&self.nodes[..]) + self.runs.len() + self.top.len()
    }

    fn bytes(&self, k: usize) -> &[u8] {
        let start = k.checked_sub(1).map_or(0, |before| self.nodes[before].end);
        &self.runs[start as usize..self.nodes[k].end as usize]
    }
}

/// Builds a [`CallGraph`] from the calls in the order in which they end.
#[derive(Clone, Debug, Default)]
pub(super) struct CallGraphBuilder {
    graph: CallGraph,
    table: HashTable<u32>,
}

impl CallGraphBuilder {
    /// Returns the subtree of a call that made the calls in `runs`. Time: O(bytes).
    pub(super) fn subtree(&mut self, call: Call, runs: &[u8]) -> Result<CallId, EventError> {
        let graph = &mut self.graph;
        let hash = hash(call, runs);
        let same = |&k: &u32| {
            graph.nodes[k as usize].call == call && same_bytes(graph.bytes(k as usize), runs)
        };
        if let Some(&k) = self.table.find(hash, same) {
            return Ok(CallId(k));
        }
        let id = u32::try_from(graph.nodes.len()).map_err(|_| EventError::TooMany)?;
        graph.runs.extend_from_slice(runs);
        let end = graph.runs.len() as u64;
        graph.nodes.push(Node { call, end });
        self.table.insert_unique(hash, id, |&k| {
            let k = k as usize;
            self::hash(graph.nodes[k].call, graph.bytes(k))
        });
        Ok(CallId(id))
    }

    /// Returns the graph's memory use in bytes so far.
    pub(super) fn heap_bytes(&self) -> usize {
        self.graph.heap_bytes() + size_of::<u32>() * self.table.capacity()
    }

    /// Returns the graph, given the calls from outside and the number of calls open at the end.
    pub(super) fn finish(self, top: &[u8], open: u64) -> CallGraph {
        let mut graph = self.graph;
        graph.top = top.to_vec();
        graph.open = open;
        graph
    }
}

/// Compares bytes. Most calls make no calls, so the bytes are often empty. On some machines,
/// comparing zero bytes at the dangling address of an empty vector takes a hundred times as long as
/// comparing a few bytes.
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && (a.is_empty() || a == b)
}

fn hash(call: Call, runs: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    call.hash(&mut hasher);
    runs.hash(&mut hasher);
    hasher.finish()
}
