//! Stores the neighbours of each vertex of a plain digraph on `0..n`.

/// The neighbours of each vertex, with all lists in one vector.
///
/// Algorithms that do not need to know which edge they follow, such as those for dominators and
/// strongly connected components, take this form. So they also run on a reversed graph, a graph
/// with virtual edges or a call graph.
#[derive(Clone, Debug)]
pub struct Adjacency {
    start: Vec<u32>,
    list: Vec<u32>,
}

impl Adjacency {
    /// Builds the lists from `(vertex, neighbour)` pairs. The pairs are read twice and keep their
    /// order. Time: O(n + pairs).
    ///
    /// # Panics
    /// Panics if the first element of a pair is not below `n`.
    pub fn new<I>(n: usize, pairs: I) -> Self
    where
        I: Iterator<Item = (usize, usize)> + Clone,
    {
        let mut start = vec![0u32; n + 1];
        for (v, _) in pairs.clone() {
            start[v + 1] += 1;
        }
        for v in 0..n {
            start[v + 1] += start[v];
        }
        let mut fill = start.clone();
        let mut list = vec![0u32; start[n] as usize];
        for (v, w) in pairs {
            list[fill[v] as usize] = w as u32;
            fill[v] += 1;
        }
        Self { start, list }
    }

    /// Returns the number of vertices.
    pub fn len(&self) -> usize {
        self.start.len() - 1
    }

    /// Whether the graph has no vertices.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the neighbours of a vertex, in the order in which they were given.
    pub fn of(&self, vertex: usize) -> &[u32] {
        &self.list[self.start[vertex] as usize..self.start[vertex + 1] as usize]
    }
}
