//! Computes the redundancy of path traces and the sizes of dynamic control-flow graphs, as in the
//! paper's Figure 8 and Table 6 (Zhang and Gupta 2001, sections 3 and 4.1).

use super::compact::Twpp;
use super::dynamic_cfg::DynamicCfg;
use super::timestamped::BadTrace;

/// A point of the curve of Figure 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedundancyPoint {
    /// The limit on a function's number of unique path traces.
    pub paths: u64,
    /// The number of functions within the limit.
    pub functions: u64,
    /// The number of calls to these functions.
    pub calls: u64,
}

/// The dynamic control-flow graphs of all unique path traces together (Table 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphTotals {
    /// The number of nodes, which are dynamic basic blocks.
    pub nodes: u64,
    /// The number of edges.
    pub edges: u64,
    /// The number of timestamps of all nodes.
    pub timestamps: u64,
    /// The number of integers that the timestamps take when compacted.
    pub integers: u64,
}

impl Twpp {
    /// Returns the curve of Figure 8, which gives the number of calls to functions with at most N
    /// unique path traces. It has a point for every N at which the curve rises, ascending. The last
    /// point covers all functions. Time: O(functions log functions).
    pub fn redundancy(&self) -> Vec<RedundancyPoint> {
        let mut functions: Vec<_> = self
            .functions
            .iter()
            .map(|f| (f.paths.len() as u64, f.calls()))
            .collect();
        functions.sort_unstable();
        let mut points: Vec<RedundancyPoint> = Vec::new();
        for (k, (paths, calls)) in functions.into_iter().enumerate() {
            let before = points.last().map_or(0, |p| p.calls);
            if points.last().is_some_and(|p| p.paths == paths) {
                points.pop();
            }
            points.push(RedundancyPoint {
                paths,
                functions: k as u64 + 1,
                calls: before + calls,
            });
        }
        points
    }

    /// Returns the total sizes of the dynamic control-flow graphs of all unique path traces. Time:
    /// O(steps of these traces · log blocks).
    ///
    /// # Errors
    /// Returns an error if a trace from a damaged file is invalid.
    pub fn graph_totals(&self) -> Result<GraphTotals, BadTrace> {
        let mut totals = GraphTotals::default();
        for function in &self.functions {
            for path in 0..function.paths.len() {
                totals.add(&function.dynamic_cfg(path)?);
            }
        }
        Ok(totals)
    }
}

impl GraphTotals {
    fn add(&mut self, graph: &DynamicCfg) {
        self.nodes += graph.nodes().len() as u64;
        self.edges += graph.edges().len() as u64;
        for node in graph.nodes() {
            self.timestamps += node.timestamps.count();
            self.integers += node.timestamps.width();
        }
    }
}
