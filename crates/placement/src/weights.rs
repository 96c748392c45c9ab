//! Estimates how often edges are executed.

mod heuristic;
mod likelihood;
mod no_return;

use afterimage_graph::FlowGraph;
use afterimage_ids::{BlockId, EdgeId, EntityRef, FunctionCounts};

pub use likelihood::Likelihood;
pub(crate) use likelihood::program_likelihoods;
use no_return::returning_functions;

/// A weighting of a graph, which is nonnegative and conserves flow (Ball and Larus 1992, section
/// 2).
///
/// At every vertex, the weights of the incoming edges (at the root, also [`Weights::entry`]) equal
/// the weights of the outgoing edges plus [`Weights::leak`]. The leak is the flow that stays at the
/// vertex forever. At EXIT, the incoming weights add up to `entry` minus all leaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    entry: f64,
    edges: Vec<f64>,
    leaks: Vec<f64>,
}

impl Weights {
    /// Returns a weighting with these weights, one for each edge, and without leaks. The caller
    /// guarantees that they conserve flow.
    pub fn given(graph: &FlowGraph, entry: f64, edges: Vec<f64>) -> Self {
        Self {
            entry,
            edges,
            leaks: vec![0.0; graph.vertex_count()],
        }
    }

    /// Estimates weights for one activation from the structure of the graph.
    ///
    /// The heuristic follows Ball and Larus 1992, section 5.1. A loop that is entered N times
    /// iterates 10·N times. Each of its E exit edges has weight N/E. A predicate takes each of its
    /// other branches with equal likelihood. If these three rules conflict, branches keep their
    /// shares, and the number of iterations changes. The following rules go beyond the paper:
    /// - an edge that leaves several loops at once gets a share 11 times smaller per further loop;
    /// - edges that `likelihood` calls unlikely get almost no weight, and edges to calls and
    ///   returns get less than other edges;
    /// - a loop without a likely exit, and a vertex without successors, leak the flow that enters
    ///   them;
    /// - flow that enters an irreducible loop at a vertex other than the header is first led to the
    ///   header.
    ///
    /// Time: O(E + the number of loops that each edge leaves, summed over all edges), plus the size
    /// of every irreducible loop.
    pub fn heuristic(graph: &FlowGraph, likelihood: impl Fn(EdgeId) -> Likelihood) -> Self {
        heuristic::weights(graph, &likelihood)
    }

    /// Takes the weights from an earlier run. To break ties between edges, adds `otherwise`, scaled
    /// to far less than one execution.
    pub fn feedback(counts: &FunctionCounts, otherwise: &Weights) -> Self {
        let largest = otherwise.edges.iter().fold(1.0, |a: f64, &b| a.max(b));
        let scale = 1.0 / (largest * f64::from(1 << 20));
        let mut leaks: Vec<f64> = otherwise.leaks.iter().map(|leak| leak * scale).collect();
        for &(v, open) in &counts.open {
            leaks[v.index()] += open as f64;
        }
        let edges = counts.edges.iter().zip(&otherwise.edges);
        Self {
            entry: counts.entries as f64 + otherwise.entry * scale,
            edges: edges
                .map(|(&count, other)| count as f64 + other * scale)
                .collect(),
            leaks,
        }
    }

    /// Multiplies all weights by a number of activations.
    pub(crate) fn scale(&mut self, factor: f64) {
        self.entry *= factor;
        for weight in self.edges.iter_mut().chain(&mut self.leaks) {
            *weight *= factor;
        }
    }

    /// Returns the weight of EXIT→root.
    pub fn entry(&self) -> f64 {
        self.entry
    }

    /// Returns the weight of an edge.
    pub fn edge(&self, edge: EdgeId) -> f64 {
        self.edges[edge.index()]
    }

    /// Returns the flow that enters a vertex and never leaves it.
    pub fn leak(&self, v: BlockId) -> f64 {
        self.leaks[v.index()]
    }

    /// Returns the weight of a vertex, which is the total weight of its incoming edges, including
    /// EXIT→root.
    pub fn vertex(&self, graph: &FlowGraph, v: BlockId) -> f64 {
        let entry = if v == graph.root() { self.entry } else { 0.0 };
        entry + graph.in_edges(v).iter().map(|&e| self.edge(e)).sum::<f64>()
    }
}
