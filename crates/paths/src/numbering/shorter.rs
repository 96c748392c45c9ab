//! Adds starts that make path numbers shorter.
//!
//! Five paths need three bits each, but four paths need only two. Suppose that two of five paths
//! pass through a rarely reached vertex. Ending paths there saves bits. The remaining four paths
//! then need two bits. The two paths that begin at the vertex need one more bit, but they are
//! rarely executed.

use afterimage_ids::{BlockId, EntityRef};
use afterimage_placement::Weights;
use afterimage_program::{BlockEnd, Cfg};

use crate::width_of;

/// The maximum number of vertices to examine on the paths from a start.
const REACH: usize = 256;

/// Finds vertices that should be starts, at most one per start. At most one path in `seldom`
/// reaches each of them. Time: O([`REACH`] log [`REACH`]) for each start.
pub(super) fn starts(
    cfg: &Cfg,
    weights: &Weights,
    position: &[usize],
    start: &[bool],
    paths: &[u64],
    seldom: f64,
) -> Vec<BlockId> {
    let graph = &cfg.graph;
    let mut found = Vec::new();
    if seldom <= 0.0 {
        return found;
    }
    let mut region = Region::new(graph.vertex_count());
    for s in graph.vertices() {
        let count = paths[s.index()];
        if !start[s.index()] || count < 3 || count.is_power_of_two() {
            continue;
        }
        let excess = count - (1 << count.ilog2());
        let here = weights.vertex(graph, s);
        region.explore(cfg, s, position, start);
        let best = region
            .ways()
            .filter(|&(v, ways)| {
                let saved = ways.saturating_mul(paths[v.index()] - 1);
                v != s && saved >= excess
            })
            .map(|(v, _)| (weights.vertex(graph, v), v))
            .filter(|&(there, v)| {
                there * seldom <= here && there * f64::from(width_of(paths[v.index()])) < here
            })
            .min_by(|a, b| a.0.total_cmp(&b.0));
        found.extend(best.map(|(_, v)| v));
    }
    found
}

/// The vertices on the paths from a start.
struct Region {
    /// The vertices in topological order.
    vertices: Vec<BlockId>,
    /// For each vertex, whether it is in the region. For these vertices, `ways` contains the number
    /// of paths that lead to them.
    inside: Vec<bool>,
    ways: Vec<u64>,
}

impl Region {
    fn new(vertices: usize) -> Self {
        Self {
            vertices: Vec::new(),
            inside: vec![false; vertices],
            ways: vec![0; vertices],
        }
    }

    fn ways(&self) -> impl Iterator<Item = (BlockId, u64)> {
        self.vertices.iter().map(|&v| (v, self.ways[v.index()]))
    }

    fn explore(&mut self, cfg: &Cfg, from: BlockId, position: &[usize], start: &[bool]) {
        let graph = &cfg.graph;
        for v in self.vertices.drain(..) {
            self.inside[v.index()] = false;
            self.ways[v.index()] = 0;
        }
        let goes_on = |v: BlockId| !matches!(cfg.blocks[v].end, BlockEnd::Call(_));
        self.vertices.push(from);
        let mut next = 0;
        while next < self.vertices.len() && self.vertices.len() < REACH {
            let v = self.vertices[next];
            next += 1;
            for to in graph.successors(v).filter(|_| goes_on(v)) {
                let ends = start[to.index()] || to == graph.exit();
                if !ends && !std::mem::replace(&mut self.inside[to.index()], true) {
                    self.vertices.push(to);
                }
            }
        }
        self.vertices.sort_unstable_by_key(|v| position[v.index()]);
        self.ways[from.index()] = 1;
        for &v in &self.vertices {
            for to in graph.successors(v).filter(|_| goes_on(v)) {
                if self.inside[to.index()] {
                    let ways = self.ways[v.index()];
                    let sum = &mut self.ways[to.index()];
                    *sum = sum.saturating_add(ways);
                }
            }
        }
    }
}
