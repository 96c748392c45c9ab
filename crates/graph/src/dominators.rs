//! Dominators, by the algorithm of Lengauer and Tarjan (1979) with simple path compression. Time:
//! O(E log V), no recursion.

use afterimage_ids::{BlockId, EntityRef};

use crate::{Adjacency, FlowGraph};

const NONE: u32 = u32::MAX;

/// The dominator tree. `a` dominates `b` if every path from the root to `b` goes through `a`.
#[derive(Clone, Debug)]
pub struct DominatorTree {
    idom: Vec<u32>,
    /// The preorder interval of each vertex in the dominator tree. It is empty (`1..0`) for
    /// unreachable vertices.
    first: Vec<u32>,
    last: Vec<u32>,
}

impl DominatorTree {
    /// Finds the dominators from the graph's root.
    pub fn compute(graph: &FlowGraph) -> Self {
        let n = graph.vertex_count();
        let ends = graph
            .edges()
            .map(|e| (graph.from(e).index(), graph.to(e).index()));
        let succ = Adjacency::new(n, ends.clone());
        let pred = Adjacency::new(n, ends.map(|(a, b)| (b, a)));
        Self::of_digraph(graph.root().index(), &succ, &pred)
    }

    /// Finds the dominators from `root` in a digraph, given by its successor and predecessor lists.
    pub(crate) fn of_digraph(root: usize, succ: &Adjacency, pred: &Adjacency) -> Self {
        let search = Search::compute(root, succ);
        let by_number = search.immediate_dominators(pred);
        let n = succ.len();
        let mut idom = vec![NONE; n];
        for (number, &v) in search.vertex.iter().enumerate().skip(1) {
            idom[v as usize] = search.vertex[by_number[number] as usize];
        }
        // In the search's preorder, a vertex comes after its dominator. So one pass finds the sizes
        // of the subtrees, and another pass numbers the dominator tree.
        let mut size = vec![1u32; n];
        for &v in search.vertex.iter().skip(1).rev() {
            size[idom[v as usize] as usize] += size[v as usize];
        }
        let (mut first, mut last) = (vec![1; n], vec![0; n]);
        let mut next_child = vec![0u32; n];
        for &v in &search.vertex {
            let v = v as usize;
            first[v] = match idom[v] {
                NONE => 0,
                d => {
                    let slot = &mut next_child[d as usize];
                    *slot += size[v];
                    *slot - size[v]
                }
            };
            last[v] = first[v] + size[v] - 1;
            next_child[v] = first[v] + 1;
        }
        Self { idom, first, last }
    }

    /// Returns the closest strict dominator, or `None` for the root and for unreachable vertices.
    pub fn immediate_dominator(&self, v: BlockId) -> Option<BlockId> {
        let d = self.idom[v.index()];
        (d != NONE).then(|| BlockId::new(d as usize))
    }

    /// Whether `a` dominates `b`. Every reachable vertex dominates itself. Unreachable vertices
    /// dominate nothing and are dominated by nothing. Time: O(1).
    pub fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        let (a, b) = (a.index(), b.index());
        self.first[b] <= self.last[b] && (self.first[a]..=self.last[a]).contains(&self.first[b])
    }

    /// Returns the preorder numbers, in the dominator tree, of a reachable vertex and of the last
    /// vertex that it dominates. The vertex dominates exactly the vertices numbered from the first
    /// number to the second.
    pub fn preorder_interval(&self, v: BlockId) -> (u32, u32) {
        (self.first[v.index()], self.last[v.index()])
    }

    /// Whether the root reaches `v`.
    pub fn is_reachable(&self, v: BlockId) -> bool {
        self.first[v.index()] <= self.last[v.index()]
    }

    /// Returns the strict dominators of a vertex, closest first.
    pub fn strict_dominators(&self, v: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        std::iter::successors(self.immediate_dominator(v), |&d| {
            self.immediate_dominator(d)
        })
    }
}

/// A depth-first search. From here on, vertices are identified by their preorder numbers.
struct Search {
    vertex: Vec<u32>,
    number: Vec<u32>,
    parent: Vec<u32>,
}

impl Search {
    fn compute(root: usize, succ: &Adjacency) -> Self {
        let mut this = Self {
            vertex: vec![root as u32],
            number: vec![NONE; succ.len()],
            parent: vec![0],
        };
        this.number[root] = 0;
        let mut stack = vec![(root, 0usize)];
        while let Some((v, next)) = stack.last_mut() {
            let v = *v;
            let Some(&w) = succ.of(v).get(*next) else {
                stack.pop();
                continue;
            };
            *next += 1;
            let w = w as usize;
            if this.number[w] == NONE {
                this.number[w] = this.vertex.len() as u32;
                this.vertex.push(w as u32);
                this.parent.push(this.number[v]);
                stack.push((w, 0));
            }
        }
        this
    }

    fn immediate_dominators(&self, pred: &Adjacency) -> Vec<u32> {
        let n = self.vertex.len();
        let mut idom = vec![0u32; n];
        let mut semi: Vec<u32> = (0..n as u32).collect();
        let mut forest = Forest {
            ancestor: self.parent.clone(),
            label: semi.clone(),
            path: Vec::new(),
        };
        // Lists of the vertices that share a semidominator.
        let mut bucket = vec![NONE; n];
        let mut next_in_bucket = vec![NONE; n];
        for w in (1..n).rev() {
            for &v in pred.of(self.vertex[w] as usize) {
                let v = self.number[v as usize];
                if v != NONE {
                    let u = forest.eval(v, w as u32 + 1, &semi);
                    semi[w] = semi[w].min(semi[u as usize]);
                }
            }
            next_in_bucket[w] = std::mem::replace(&mut bucket[semi[w] as usize], w as u32);
            let parent = self.parent[w];
            let mut v = std::mem::replace(&mut bucket[parent as usize], NONE);
            while v != NONE {
                let u = forest.eval(v, w as u32, &semi);
                idom[v as usize] = if semi[u as usize] < semi[v as usize] {
                    u
                } else {
                    parent
                };
                v = next_in_bucket[v as usize];
            }
        }
        for w in 1..n {
            if idom[w] != semi[w] {
                idom[w] = idom[idom[w] as usize];
            }
        }
        idom
    }
}

/// The link-eval forest, which is the depth-first tree on the vertices numbered `linked` and above.
struct Forest {
    ancestor: Vec<u32>,
    label: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    /// Returns the vertex with the least semidominator on the path from `v` up to the root of its
    /// tree in the forest, root excluded. Returns `v` itself if it is a root.
    fn eval(&mut self, v: u32, linked: u32, semi: &[u32]) -> u32 {
        if v < linked {
            return self.label[v as usize];
        }
        let mut top = v;
        while self.ancestor[top as usize] >= linked {
            self.path.push(top);
            top = self.ancestor[top as usize];
        }
        while let Some(below) = self.path.pop() {
            let (t, b) = (top as usize, below as usize);
            if semi[self.label[t] as usize] < semi[self.label[b] as usize] {
                self.label[b] = self.label[t];
            }
            self.ancestor[b] = self.ancestor[t];
            top = below;
        }
        self.label[v as usize]
    }
}
