//! The loop nesting forest, also for irreducible graphs.

use afterimage_ids::{BlockId, EntityRef, LoopId, PrimaryMap};

use crate::lowest_common_ancestor::LowestCommonAncestor;
use crate::{DepthFirst, FlowGraph, UnionFind};

/// A loop of a control-flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The vertex of the loop that depth-first search discovers first. Edges to it from within
    /// the loop are the loop's back edges.
    pub header: BlockId,
    /// The smallest loop around this loop.
    pub parent: Option<LoopId>,
    /// The number of loops that contain the header, including this one.
    pub depth: u32,
    /// Whether an edge enters the loop at a vertex other than the header.
    pub irreducible: bool,
}

/// All loops of a graph and their nesting, as Havlak (1997) defines them.
///
/// A loop with header `h` is the set of depth-first descendants of `h` that reach `h` without
/// leaving the descendants of `h`. Two loops are nested or disjoint. Removing the back edges of all
/// loops leaves no cycle. On a reducible graph, these are the natural loops.
#[derive(Clone, Debug)]
pub struct LoopForest {
    loops: PrimaryMap<LoopId, Loop>,
    innermost: Vec<Option<LoopId>>,
    /// The last loop nested in each loop. A loop and the loops nested in it have consecutive
    /// numbers.
    last: Vec<u32>,
}

impl LoopForest {
    /// Finds the loops among the vertices that the root reaches, by Ramalingam's (1999) almost
    /// linear version of Havlak's algorithm. Time: O(E log V), no recursion.
    pub fn compute(graph: &FlowGraph, search: &DepthFirst) -> Self {
        let enclosing = Builder::new(graph, search).enclosing_headers();
        let mut loops: PrimaryMap<LoopId, Loop> = PrimaryMap::new();
        let mut innermost = vec![None; graph.vertex_count()];
        // Loops are numbered in preorder of their headers, so a parent comes before its children.
        for (number, &v) in search.preorder().iter().enumerate() {
            let around = enclosing.header[number].map(|h| search.preorder()[h as usize]);
            let parent = around.and_then(|h| innermost[h.index()]);
            innermost[v.index()] = parent;
            if enclosing.is_header[number] {
                let depth = parent.map_or(0, |p: LoopId| loops[p].depth) + 1;
                innermost[v.index()] = Some(loops.push(Loop {
                    header: v,
                    parent,
                    depth,
                    irreducible: false,
                }));
            }
        }
        let mut this = Self::renumbered(loops, innermost);
        this.mark_irreducible(graph, search);
        this
    }

    /// Numbers the loops, parents first, so that each nest is consecutive.
    fn renumbered(loops: PrimaryMap<LoopId, Loop>, innermost: Vec<Option<LoopId>>) -> Self {
        let mut size = vec![1u32; loops.len()];
        for (id, l) in loops.iter().rev() {
            if let Some(parent) = l.parent {
                size[parent.index()] += size[id.index()];
            }
        }
        let mut new_number = vec![0u32; loops.len()];
        let mut next_child = vec![0u32; loops.len()];
        let mut next_outermost = 0;
        for (id, l) in loops.iter() {
            let slot = match l.parent {
                Some(parent) => &mut next_child[parent.index()],
                None => &mut next_outermost,
            };
            let number = *slot;
            *slot += size[id.index()];
            new_number[id.index()] = number;
            next_child[id.index()] = number + 1;
        }
        let renamed = |id: LoopId| LoopId::new(new_number[id.index()] as usize);
        let mut order: Vec<LoopId> = loops.keys().collect();
        order.sort_unstable_by_key(|&id| renamed(id));
        let last = order
            .iter()
            .map(|id| new_number[id.index()] + size[id.index()] - 1)
            .collect();
        let mut sorted = PrimaryMap::with_capacity(loops.len());
        for &id in &order {
            let parent = loops[id].parent.map(renamed);
            sorted.push(Loop {
                parent,
                ..loops[id]
            });
        }
        Self {
            loops: sorted,
            innermost: innermost.into_iter().map(|id| id.map(renamed)).collect(),
            last,
        }
    }

    fn mark_irreducible(&mut self, graph: &FlowGraph, search: &DepthFirst) {
        // Marked loops are skipped. Their set in `unmarked` has the name of the next unmarked loop
        // outward. The name `loops.len()` means "no loop".
        let outside = self.loops.len();
        let index = |id: Option<LoopId>| id.map_or(outside, |l| l.index());
        let mut unmarked = UnionFind::new(outside + 1);
        for edge in graph.edges() {
            let (from, to) = (graph.from(edge), graph.to(edge));
            if !search.is_reached(from) {
                continue;
            }
            let mut around = self.innermost(to);
            if around.is_some_and(|l| self.loops[l].header == to) {
                around = around.and_then(|l| self.loops[l].parent);
            }
            loop {
                let candidate = unmarked.find(index(around));
                if candidate == outside || self.contains(LoopId::new(candidate), from) {
                    break;
                }
                let entered = LoopId::new(candidate);
                self.loops[entered].irreducible = true;
                around = self.loops[entered].parent;
                unmarked.union(candidate, index(around));
            }
        }
    }

    /// Returns the loops. Each loop comes after the loops that contain it, and the loops of a nest
    /// are consecutive.
    pub fn loops(&self) -> &PrimaryMap<LoopId, Loop> {
        &self.loops
    }

    /// Returns the smallest loop that contains `v`.
    pub fn innermost(&self, v: BlockId) -> Option<LoopId> {
        self.innermost[v.index()]
    }

    /// Returns the number of loops that contain `v`.
    pub fn depth(&self, v: BlockId) -> u32 {
        self.innermost(v).map_or(0, |l| self.loops[l].depth)
    }

    /// Whether `v` is in the loop or in a loop nested in it. Time: O(1).
    pub fn contains(&self, l: LoopId, v: BlockId) -> bool {
        self.innermost(v).is_some_and(|inner| self.nests(l, inner))
    }

    /// Whether `inner` is `outer` or nested in it. Time: O(1).
    pub fn nests(&self, outer: LoopId, inner: LoopId) -> bool {
        (outer.as_u32()..=self.last[outer.index()]).contains(&inner.as_u32())
    }

    /// Returns the loops that contain `v`, smallest first.
    pub fn around(&self, v: BlockId) -> impl Iterator<Item = LoopId> + '_ {
        std::iter::successors(self.innermost(v), |&l| self.loops[l].parent)
    }
}

/// For each vertex, by preorder number: the header of the smallest loop around it, and whether the
/// vertex is a header. A header's own loop does not count as a loop around it.
struct Enclosing {
    header: Vec<Option<u32>>,
    is_header: Vec<bool>,
}

/// The state of the search for loops. Vertices are identified by their preorder numbers.
struct Builder {
    parent: Vec<u32>,
    /// For each target, the sources of edges from its descendants or itself.
    back: Vec<Vec<u32>>,
    /// Edges that are neither tree edges nor back edges, by the lowest common ancestor of their
    /// ends.
    other: Vec<Vec<(u32, u32)>>,
    /// Predecessors in the graph with inner loops collapsed, without tree edges.
    entering: Vec<Vec<u32>>,
    /// The collapsed loop that contains each vertex, named by the loop's header.
    collapsed: UnionFind,
    found: Enclosing,
}

impl Builder {
    fn new(graph: &FlowGraph, search: &DepthFirst) -> Self {
        let n = search.preorder().len();
        let number = |v| search.number(v).map(|k| k as u32);
        let parent: Vec<u32> = search
            .preorder()
            .iter()
            .map(|&v| {
                let edge = search.parent_edge(v);
                edge.and_then(|e| number(graph.from(e))).unwrap_or(0)
            })
            .collect();
        let ancestors = LowestCommonAncestor::new(&parent);
        let (mut back, mut other) = (vec![Vec::new(); n], vec![Vec::new(); n]);
        for edge in graph.edges() {
            let (from, to) = (graph.from(edge), graph.to(edge));
            let (Some(a), Some(b)) = (number(from), number(to)) else {
                continue;
            };
            if search.is_ancestor(to, from) {
                back[b as usize].push(a);
            } else if search.parent_edge(to) != Some(edge) {
                other[ancestors.of(a, b) as usize].push((a, b));
            }
        }
        Self {
            parent,
            back,
            other,
            entering: vec![Vec::new(); n],
            collapsed: UnionFind::new(n),
            found: Enclosing {
                header: vec![None; n],
                is_header: vec![false; n],
            },
        }
    }

    fn enclosing_headers(mut self) -> Enclosing {
        let n = self.parent.len();
        let mut seen_by = vec![u32::MAX; n];
        let mut body = Vec::new();
        for header in (0..n).rev() {
            for (a, b) in std::mem::take(&mut self.other[header]) {
                let target = self.collapsed.find(b as usize);
                self.entering[target].push(a);
            }
            let back = std::mem::take(&mut self.back[header]);
            self.found.is_header[header] = !back.is_empty();
            seen_by[header] = header as u32;
            body.clear();
            let mut visit = |v: u32, collapsed: &mut UnionFind, body: &mut Vec<usize>| {
                let v = collapsed.find(v as usize);
                if seen_by[v] != header as u32 {
                    seen_by[v] = header as u32;
                    body.push(v);
                }
            };
            for source in back {
                visit(source, &mut self.collapsed, &mut body);
            }
            let mut next = 0;
            while let Some(&v) = body.get(next) {
                next += 1;
                visit(self.parent[v], &mut self.collapsed, &mut body);
                for source in std::mem::take(&mut self.entering[v]) {
                    visit(source, &mut self.collapsed, &mut body);
                }
            }
            for &v in &body {
                self.found.header[v] = Some(header as u32);
                self.collapsed.union(v, header);
            }
        }
        self.found
    }
}
