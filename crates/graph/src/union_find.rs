//! Maintains disjoint sets.

/// Disjoint sets of `0..n`, with union by size and path halving (Tarjan 1975). Each operation takes
/// nearly constant amortised time.
#[derive(Clone, Debug)]
pub struct UnionFind {
    parent: Vec<u32>,
    size: Vec<u32>,
    /// The name of each root's set.
    name: Vec<u32>,
}

impl UnionFind {
    /// Creates `n` sets of one element each.
    pub fn new(n: usize) -> Self {
        let alone: Vec<u32> = (0..n as u32).collect();
        Self {
            parent: alone.clone(),
            size: vec![1; n],
            name: alone,
        }
    }

    fn root(&mut self, element: usize) -> usize {
        let mut x = element;
        while self.parent[x] as usize != x {
            let grandparent = self.parent[self.parent[x] as usize];
            self.parent[x] = grandparent;
            x = grandparent as usize;
        }
        x
    }

    /// Returns the name of the element's set, which is one of the set's elements. Two elements have
    /// the same name exactly if they are in the same set.
    pub fn find(&mut self, element: usize) -> usize {
        let root = self.root(element);
        self.name[root] as usize
    }

    /// Joins the sets of `a` and `b` under the name of `b`'s set. Returns whether they were
    /// separate.
    pub fn union(&mut self, a: usize, b: usize) -> bool {
        let name = self.find(b) as u32;
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return false;
        }
        let (small, large) = if self.size[a] < self.size[b] {
            (a, b)
        } else {
            (b, a)
        };
        self.parent[small] = large as u32;
        self.size[large] += self.size[small];
        self.name[large] = name;
        true
    }
}
