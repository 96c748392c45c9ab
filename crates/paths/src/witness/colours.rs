//! Colours the edges, so that witnesses that a branch must distinguish get different codes.

use afterimage_ids::{BlockId, EdgeId, EntityRef};

use super::{Placement, TraceGraph};

/// The number of steps allowed per edge of the graph. The steps lead from each witness back to the
/// branches after which it can be the next witness. Beyond the limit, each witness gets its own
/// colour.
const WORK_PER_EDGE: usize = 64;

/// The number of steps allowed in addition, for any number of edges.
const LEAST_WORK: usize = 1 << 20;

/// Colours greedily, so that witnesses that a branch reaches silently through different edges get
/// different colours. The heaviest witnesses come first. Each takes the smallest possible colour,
/// so a few colours cover most of the weight. Returns the colours by edge. Time: near-linear.
///
/// The placement must solve the tracing problem.
pub(super) fn colours(
    view: &TraceGraph<'_>,
    placement: &Placement,
    weight: &[f64],
) -> Vec<Option<u32>> {
    let graph = view.graph();
    let mut colouring = Colouring {
        view,
        placement,
        seen_by: vec![u32::MAX; graph.vertex_count()],
        stack: Vec::new(),
        below: vec![Colours::default(); graph.edge_count()],
        at: vec![Colours::default(); graph.vertex_count()],
        work: LEAST_WORK + WORK_PER_EDGE * graph.edge_count(),
    };
    let mut order: Vec<EdgeId> = placement.edges().collect();
    order.sort_by(|&a, &b| weight[b.index()].total_cmp(&weight[a.index()]));
    let mut colours = vec![None; graph.edge_count()];
    let mut left = Vec::new();
    for e in order {
        match colouring.colour(e) {
            Some(colour) => colours[e.index()] = Some(colour),
            None => left.push(e),
        }
    }
    let fresh = colours.iter().flatten().max().map_or(0, |&c| c + 1);
    for (colour, e) in (fresh..).zip(left) {
        colours[e.index()] = Some(colour);
    }
    colours
}

/// A set of colours.
#[derive(Clone, Debug, Default)]
struct Colours(Vec<u64>);

impl Colours {
    fn insert(&mut self, colour: u32) {
        let word = colour as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (colour % 64);
    }
}

struct Colouring<'v, 'g> {
    view: &'v TraceGraph<'g>,
    placement: &'v Placement,
    /// For each vertex, the last witness that a search found to be reached silently from that
    /// vertex.
    seen_by: Vec<u32>,
    stack: Vec<BlockId>,
    /// For each edge that leaves a branch, the colours reached silently through it.
    below: Vec<Colours>,
    /// For each branch, the colours reached silently from it.
    at: Vec<Colours>,
    work: usize,
}

impl Colouring<'_, '_> {
    /// Returns the smallest colour for a witness that no conflicting witness has. Returns `None` if
    /// the step limit is reached.
    fn colour(&mut self, e: EdgeId) -> Option<u32> {
        let ways = self.seen(e)?;
        let graph = self.view.graph();
        let mut taken = Colours::default();
        for &way in &ways {
            let (at, own) = (
                &self.at[graph.from(way).index()].0,
                &self.below[way.index()].0,
            );
            self.work = self.work.checked_sub(at.len())?;
            taken.0.resize(taken.0.len().max(at.len()), 0);
            for (i, word) in at.iter().enumerate() {
                taken.0[i] |= word & !own.get(i).copied().unwrap_or(0);
            }
        }
        let full = taken.0.iter().take_while(|&&word| word == u64::MAX).count();
        let ones = taken.0.get(full).map_or(0, |word| word.trailing_ones());
        let colour = 64 * full as u32 + ones;
        for way in ways {
            self.at[graph.from(way).index()].insert(colour);
            self.below[way.index()].insert(colour);
        }
        Some(colour)
    }

    /// Returns the edges on which silent paths to a witness leave branches.
    fn seen(&mut self, e: EdgeId) -> Option<Vec<EdgeId>> {
        let graph = self.view.graph();
        let mut ways = Vec::new();
        if self.view.is_foreign(graph.from(e)) {
            return Some(ways);
        }
        if self.view.is_branch(graph.from(e)) {
            ways.push(e);
        }
        self.stack.clear();
        self.stack.push(graph.from(e));
        while let Some(v) = self.stack.pop() {
            for &silent in graph.in_edges(v) {
                self.work = self.work.checked_sub(1)?;
                let from = graph.from(silent);
                if self.placement.writes(silent) || self.view.is_foreign(from) {
                    continue;
                }
                if self.view.is_branch(from) {
                    ways.push(silent);
                }
                if std::mem::replace(&mut self.seen_by[from.index()], e.as_u32()) != e.as_u32() {
                    self.stack.push(from);
                }
            }
        }
        Some(ways)
    }
}
