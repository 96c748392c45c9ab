//! Lowest common ancestors in a tree whose vertices are numbered in preorder.

/// Answers queries in O(log n) using heavy paths (Harel and Tarjan 1984, without their tables).
pub(crate) struct LowestCommonAncestor<'a> {
    parent: &'a [u32],
    /// The topmost vertex of the heavy path through each vertex.
    top: Vec<u32>,
}

impl<'a> LowestCommonAncestor<'a> {
    /// Prepares a tree for queries. Time: O(n). The root is 0 and its own parent.
    pub(crate) fn new(parent: &'a [u32]) -> Self {
        let n = parent.len();
        let mut size = vec![1u32; n];
        let mut heavy: Vec<u32> = vec![0; n];
        for v in (1..n).rev() {
            let p = parent[v] as usize;
            size[p] += size[v];
            if heavy[p] == 0 || size[v] > size[heavy[p] as usize] {
                heavy[p] = v as u32;
            }
        }
        let mut top: Vec<u32> = (0..n as u32).collect();
        for v in 1..n {
            let p = parent[v] as usize;
            if heavy[p] as usize == v {
                top[v] = top[p];
            }
        }
        Self { parent, top }
    }

    pub(crate) fn of(&self, mut a: u32, mut b: u32) -> u32 {
        loop {
            let (x, y) = (self.top[a as usize], self.top[b as usize]);
            if x == y {
                return a.min(b);
            }
            // The path whose top has the higher number cannot contain an ancestor of the other
            // path's top.
            if x > y {
                a = self.parent[x as usize];
            } else {
                b = self.parent[y as usize];
            }
        }
    }
}
