//! Numbers the paths of one function (Ball and Larus, "Efficient Path Profiling", 1996, section 3).
//!
//! A path begins at a *start*. Starts are the root, the vertices after calls and loops, the headers
//! of loops, dispatch vertices and their handlers, and places where too many paths would meet. A
//! path ends when control reaches a start, makes a call, or leaves the function. Each edge has a
//! value. The start and the sum of the values along a path identify the path. The sum is less than
//! the number of paths that begin at the start.

mod shorter;

use std::collections::BTreeMap;

use afterimage_graph::{DepthFirst, LoopForest};
use afterimage_ids::{BlockId, EdgeId, EntityRef};
use afterimage_placement::Weights;
use afterimage_program::{BlockEnd, BlockKind, Cfg, EdgeKind};

use crate::width_of;

/// The rules for cutting paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cuts {
    /// A vertex is a start if more than this number of paths lead from it to their ends.
    pub through: u64,
    /// A vertex is a start if each of its predecessors continues to it in at most one of this many
    /// executions. Rare code then does not lengthen the numbers of frequent paths. 0 disables this
    /// rule.
    pub rare: f64,
    /// Whether a path ends where it leaves a loop, unless only one path continues from that vertex.
    pub loop_exits: bool,
    /// A vertex becomes a start if the numbers of other paths then need one bit less and these
    /// paths rarely reach the vertex. At most one path in this many may reach it. 0 disables this
    /// rule.
    pub shorter: f64,
}

impl Default for Cuts {
    fn default() -> Self {
        Self {
            through: 64,
            rare: 16.0,
            loop_exits: true,
            shorter: 2.0,
        }
    }
}

/// The maximum number of rounds that add starts to shorten numbers. Each new start changes the
/// numbers of all paths through it.
const ROUNDS: usize = 3;

/// The path numbers of one function.
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    /// The starts, and the width in bits of the numbers of their paths.
    starts: BTreeMap<BlockId, u8>,
    /// The edges with values other than 0, ascending, and these values.
    values: Vec<(EdgeId, u32)>,
}

impl Numbering {
    /// Numbers the paths of a function. The heaviest edge out of a vertex adds nothing. In a
    /// function that can end with a tail call, an activation writes at least one bit. Time:
    /// near-linear.
    pub fn compute(cfg: &Cfg, weights: &Weights, cuts: Cuts) -> Self {
        let graph = &cfg.graph;
        let search = DepthFirst::compute(graph);
        let loops = LoopForest::compute(graph, &search);
        let mut start = vec![false; graph.vertex_count()];
        start[graph.root().index()] = true;
        let mut position = vec![usize::MAX; graph.vertex_count()];
        for (i, v) in search.reverse_postorder().enumerate() {
            position[v.index()] = i;
        }
        let mut ticks = vec![false; graph.vertex_count()];
        for (_, edge) in cfg.edges.iter() {
            let target = edge.to.index();
            if position[edge.from.index()] >= position[target] && search.is_reached(edge.from) {
                start[target] = true;
                // The loop must write at least one bit. Otherwise, an endless loop would write
                // nothing.
                ticks[target] = true;
            }
            start[target] |= matches!(edge.kind, EdgeKind::CallReturn | EdgeKind::Catch(_))
                || matches!(cfg.blocks[edge.to].kind, BlockKind::Dispatch(_));
        }
        let counter = Counter {
            cfg,
            weights,
            cuts,
            search: &search,
            loops: &loops,
        };
        let mut counted = counter.count(&mut start);
        for _ in 0..ROUNDS {
            let more = shorter::starts(
                cfg,
                weights,
                &position,
                &start,
                &counted.paths,
                cuts.shorter,
            );
            if more.is_empty() {
                break;
            }
            for v in more {
                start[v.index()] = true;
            }
            counted = counter.count(&mut start);
        }
        let Counted {
            paths,
            mut values,
            tail_calls,
        } = counted;
        ticks[graph.root().index()] |= tail_calls;
        values.sort_unstable();
        let starts = graph
            .vertices()
            .filter(|v| start[v.index()] && *v != graph.exit() && search.is_reached(*v))
            .map(|v| {
                let width = width_of(paths[v.index()]).max(u8::from(ticks[v.index()]));
                (v, width)
            })
            .collect();
        Self { starts, values }
    }

    /// Returns the width, in bits, of the numbers of the paths that begin at a vertex, or `None` if
    /// no path begins there.
    pub fn start(&self, v: BlockId) -> Option<u8> {
        self.starts.get(&v).copied()
    }

    /// Returns the vertices where paths begin, ascending, with the width of their paths' numbers.
    pub fn starts(&self) -> impl Iterator<Item = (BlockId, u8)> + '_ {
        self.starts.iter().map(|(&v, &width)| (v, width))
    }

    /// Returns the value that an edge adds to a path's number.
    pub fn value(&self, edge: EdgeId) -> u32 {
        match self.values.binary_search_by_key(&edge, |v| v.0) {
            Ok(i) => self.values[i].1,
            Err(_) => 0,
        }
    }

    /// Returns the edges with values other than 0, ascending, and these values.
    pub fn values(&self) -> &[(EdgeId, u32)] {
        &self.values
    }
}

/// The context for counting paths.
struct Counter<'a> {
    cfg: &'a Cfg,
    weights: &'a Weights,
    cuts: Cuts,
    search: &'a DepthFirst,
    loops: &'a LoopForest,
}

/// The paths from starts to ends.
struct Counted {
    /// The number of paths from each vertex to an end.
    paths: Vec<u64>,
    /// The values that edges add to path numbers.
    values: Vec<(EdgeId, u32)>,
    tail_calls: bool,
}

impl Counter<'_> {
    /// Counts the paths from each vertex to the next starts. Vertices where paths must be cut
    /// become starts.
    fn count(&self, start: &mut [bool]) -> Counted {
        let Self {
            cfg,
            weights,
            cuts,
            search,
            loops,
        } = *self;
        let graph = &cfg.graph;
        let mut tail_calls = false;
        let mut paths = vec![1u64; graph.vertex_count()];
        let mut values = Vec::new();
        let mut order: Vec<EdgeId> = Vec::new();
        for &v in search.postorder() {
            if v == graph.exit() {
                continue;
            }
            tail_calls |= matches!(cfg.blocks[v].end, BlockEnd::TailCall(_));
            if !matches!(cfg.blocks[v].end, BlockEnd::Call(_)) {
                order.clear();
                order.extend_from_slice(graph.out_edges(v));
                order.sort_by(|&a, &b| weights.edge(b).total_cmp(&weights.edge(a)));
                let mut sum = 0u64;
                for &edge in &order {
                    let to = graph.to(edge);
                    if sum > 0 {
                        values.push((edge, sum as u32));
                    }
                    sum += if start[to.index()] {
                        1
                    } else {
                        paths[to.index()]
                    };
                }
                paths[v.index()] = sum.max(1);
            }
            let leaves_loop = |&edge: &EdgeId| {
                loops
                    .innermost(graph.from(edge))
                    .is_some_and(|l| !loops.contains(l, v))
            };
            let rare = |&edge: &EdgeId| {
                let from = graph.from(edge);
                weights.edge(edge) * cuts.rare <= weights.vertex(graph, from)
            };
            let many = paths[v.index()];
            if many > 1 && cuts.rare > 0.0 && graph.in_edges(v).iter().all(rare) {
                start[v.index()] = true;
            }
            if many > cuts.through
                || many > 1 && cuts.loop_exits && graph.in_edges(v).iter().any(leaves_loop)
            {
                start[v.index()] = true;
            }
        }
        Counted {
            paths,
            values,
            tail_calls,
        }
    }
}
