//! The timestamp-annotated dynamic control-flow graph, in the form that queries use.

use afterimage_wpp::twpp::{DynamicCfg, Series};

/// The direction of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Towards the beginning, for questions about earlier executions.
    Backward,
    /// Towards the end, for questions about later executions.
    Forward,
}

/// Nodes with the timestamps of their executions, and with their predecessors and successors on the
/// path (Zhang and Gupta 2001, section 4.1).
///
/// Each timestamp from 1 to the length of the path belongs to exactly one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimestampedGraph {
    timestamps: Vec<Series>,
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    length: u64,
}

impl TimestampedGraph {
    /// Builds the graph of a path. `path` has the nodes in the order of execution, numbered from 0.
    /// Nodes that are not executed have no timestamps. O(steps log nodes).
    pub fn of_path(path: &[usize]) -> Self {
        let nodes = path.iter().max().map_or(0, |&most| most + 1);
        let mut when = vec![Vec::new(); nodes];
        for (t, &node) in (1u64..).zip(path) {
            when[node].push(t);
        }
        let mut edges: Vec<_> = path.windows(2).map(|pair| (pair[0], pair[1])).collect();
        edges.sort_unstable();
        edges.dedup();
        let timestamps = when.into_iter().map(Series::compact).collect();
        Self::new(timestamps, edges, path.len() as u64)
    }

    fn new(
        timestamps: Vec<Series>,
        edges: impl IntoIterator<Item = (usize, usize)>,
        length: u64,
    ) -> Self {
        let mut graph = Self {
            before: vec![Vec::new(); timestamps.len()],
            after: vec![Vec::new(); timestamps.len()],
            timestamps,
            length,
        };
        for (from, to) in edges {
            graph.after[from].push(to);
            graph.before[to].push(from);
        }
        graph
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.timestamps.is_empty()
    }

    /// Returns the timestamps at which a node executes.
    ///
    /// # Panics
    /// Panics if there is no such node.
    pub fn timestamps(&self, node: usize) -> &Series {
        &self.timestamps[node]
    }

    /// Returns the last timestamp.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the nodes at which a query continues from a node.
    ///
    /// # Panics
    /// Panics if there is no such node.
    pub fn towards(&self, direction: Direction, node: usize) -> &[usize] {
        match direction {
            Direction::Backward => &self.before[node],
            Direction::Forward => &self.after[node],
        }
    }

    /// Returns the node that executes at a timestamp. O(nodes log series).
    pub fn at(&self, t: u64) -> Option<usize> {
        self.timestamps.iter().position(|series| series.contains(t))
    }
}

impl From<&DynamicCfg> for TimestampedGraph {
    fn from(graph: &DynamicCfg) -> Self {
        let nodes = graph.nodes().iter();
        let timestamps: Vec<Series> = nodes.map(|node| node.timestamps.clone()).collect();
        let length = timestamps.iter().map(Series::count).sum();
        let edges = graph.edges().iter().map(|edge| (edge.from, edge.to));
        Self::new(timestamps, edges, length)
    }
}
