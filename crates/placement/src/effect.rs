//! Computes how one more unit of flow around a fundamental cycle changes the coupling equations.

use afterimage_graph::{FlowGraph, SpanningForest};
use afterimage_ids::{BlockId, EdgeId, EntityRef};

use crate::elimination::Column;

const NONE: u32 = u32::MAX;

/// The effects of a function's cycles. The left side of an equation is entries minus calls. Both
/// are sums of edge counts, so an edge can carry a small label for each equation. The label is −1
/// in the equation of the call whose block the edge enters or leaves. For EXIT→root, it is +1 in
/// the function's own equation. The effect of a cycle is the signed sum of the labels on it. In the
/// spanning tree, only labelled edges matter, so each vertex knows the nearest labelled edge above
/// it.
pub(crate) struct Effects<'a> {
    graph: &'a FlowGraph,
    labels: Labels,
    parent: Vec<Parent>,
    /// For each vertex, the nearest vertex on the way to the tree's root whose parent edge has a
    /// label. The vertex itself is included.
    near: Vec<u32>,
    /// For each vertex in `near`, the number of labelled edges on its way to the root.
    depth: Vec<u32>,
}

/// The edge to a vertex's parent in the tree.
#[derive(Clone, Copy)]
struct Parent {
    vertex: u32,
    /// The number of the edge. The number one past the last edge represents EXIT→root.
    edge: u32,
    /// +1 if the edge leads from the vertex to its parent, otherwise −1.
    sign: i64,
}

impl<'a> Effects<'a> {
    /// Labels the edges of a function. `entry` is its equation, and `calls` are its call blocks
    /// with their equations. Time: O(V + E).
    pub(crate) fn new(
        graph: &'a FlowGraph,
        forest: &SpanningForest,
        entry: Option<u32>,
        calls: impl Iterator<Item = (BlockId, u32)>,
    ) -> Self {
        let labels = Labels::new(graph, entry, calls);
        let n = graph.vertex_count();
        let mut this = Self {
            graph,
            labels,
            parent: vec![
                Parent {
                    vertex: NONE,
                    edge: NONE,
                    sign: 0
                };
                n
            ],
            near: vec![NONE; n],
            depth: vec![0; n],
        };
        let mut seen = vec![false; n];
        let mut queue = Vec::with_capacity(n);
        // The whole tree of EXIT comes first, then the trees of the vertices that the root does not
        // reach.
        for start in std::iter::once(graph.exit()).chain(graph.vertices()) {
            if std::mem::replace(&mut seen[start.index()], true) {
                continue;
            }
            queue.push(start);
            while let Some(v) = queue.pop() {
                let incident = |v: BlockId| {
                    let out = graph.out_edges(v).iter().map(|&e| (e, graph.to(e), -1));
                    let into = graph.in_edges(v).iter().map(|&e| (e, graph.from(e), 1));
                    out.chain(into)
                };
                let tree = incident(v)
                    .filter(|&(e, _, _)| forest.contains(e))
                    .map(|(e, w, sign)| (e.as_u32(), w, sign));
                let entry_edge = graph.edge_count() as u32;
                let virtual_edge = (v == graph.exit()).then_some((entry_edge, graph.root(), -1));
                for (edge, w, sign) in virtual_edge.into_iter().chain(tree) {
                    if std::mem::replace(&mut seen[w.index()], true) {
                        continue;
                    }
                    this.parent[w.index()] = Parent {
                        vertex: v.as_u32(),
                        edge,
                        sign,
                    };
                    let above = this.near[v.index()];
                    this.near[w.index()] = above;
                    if !this.labels.of(edge).is_empty() {
                        this.near[w.index()] = w.as_u32();
                        this.depth[w.index()] = this.depth_of(above) + 1;
                    }
                    queue.push(w);
                }
            }
        }
        this
    }

    fn depth_of(&self, near: u32) -> u32 {
        if near == NONE {
            0
        } else {
            self.depth[near as usize]
        }
    }

    /// Returns the effect of a chord's fundamental cycle, traversed along the chord. Returns `None`
    /// if more than `limit` labelled edges lie on the cycle.
    pub(crate) fn column(&self, chord: EdgeId, limit: usize) -> Option<Column> {
        let mut column: Column = Vec::new();
        add(&mut column, self.labels.of(chord.as_u32()), 1);
        // Go from the chord's target up to the common ancestor, and from there down to the chord's
        // source.
        let mut up = self.near[self.graph.to(chord).index()];
        let mut down = self.near[self.graph.from(chord).index()];
        let mut steps = 0;
        while up != down {
            let is_up = self.depth_of(up) >= self.depth_of(down);
            let (at, direction) = if is_up { (&mut up, 1) } else { (&mut down, -1) };
            let parent = self.parent[*at as usize];
            add(
                &mut column,
                self.labels.of(parent.edge),
                direction * parent.sign,
            );
            *at = self.near[parent.vertex as usize];
            steps += 1;
            if steps > limit {
                return None;
            }
        }
        column.sort_unstable_by_key(|&(row, _)| row);
        column.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            if same {
                sum.1 += next.1;
            }
            same
        });
        column.retain(|&(_, entry)| entry != 0);
        Some(column)
    }
}

fn add(column: &mut Column, label: &[(u32, i64)], factor: i64) {
    column.extend(label.iter().map(|&(row, entry)| (row, factor * entry)));
}

/// For each edge, with EXIT→root last, the equations in which the edge counts, and its factor in
/// each.
struct Labels {
    start: Vec<u32>,
    entries: Vec<(u32, i64)>,
}

impl Labels {
    fn new(
        graph: &FlowGraph,
        entry: Option<u32>,
        calls: impl Iterator<Item = (BlockId, u32)>,
    ) -> Self {
        let entry_edge = graph.edge_count();
        let mut pairs: Vec<(usize, (u32, i64))> = Vec::new();
        pairs.extend(entry.map(|row| (entry_edge, (row, 1))));
        for (v, row) in calls {
            // The number of executions of a block is the sum of the counts of the edges into it. Up
            // to a constant, it is also the sum of the counts of the edges out of it. The side with
            // fewer edges makes shorter columns.
            let (into, out) = (graph.in_edges(v), graph.out_edges(v));
            if out.len() <= into.len() {
                pairs.extend(out.iter().map(|e| (e.index(), (row, -1))));
            } else {
                pairs.extend(into.iter().map(|e| (e.index(), (row, -1))));
                pairs.extend((v == graph.root()).then_some((entry_edge, (row, -1))));
            }
        }
        pairs.sort_unstable();
        let mut start = vec![0u32; entry_edge + 2];
        for (edge, _) in &pairs {
            start[edge + 1] += 1;
        }
        for i in 0..=entry_edge {
            start[i + 1] += start[i];
        }
        Self {
            start,
            entries: pairs.into_iter().map(|(_, label)| label).collect(),
        }
    }

    fn of(&self, edge: u32) -> &[(u32, i64)] {
        let edge = edge as usize;
        &self.entries[self.start[edge] as usize..self.start[edge + 1] as usize]
    }
}
