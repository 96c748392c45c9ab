//! Counters that live in locals for the time of a loop.
//!
//! In a loop without calls, counters become locals, which the engine keeps in registers, and
//! are added to memory on the edges that leave the loop. Of nested loops without calls the outermost
//! is taken. A run that ends inside such a loop has lost what the locals held: the
//! blocks are reported, and such a run is counted again without locals.

use std::cmp::Reverse;

use afterimage_graph::{DepthFirst, LoopForest};
use afterimage_ids::{BlockId, EdgeId, EntityRef, LoopId};
use afterimage_placement::{FunctionPlan, Probe, Site};
use afterimage_program::{BlockEnd, BlockKind, Function};

use crate::actions::Step;

/// Locals per loop: more would not stay in registers.
const LOCALS_PER_LOOP: usize = 4;
/// A loop that is left in more places than this is not worth the code.
const MOST_EXITS: usize = 6;

/// Which counters of a function live in locals.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// How many locals there are.
    pub locals: u32,
    /// Where locals are added to their counters.
    pub flushes: Vec<(Site, Step)>,
    /// Blocks in which a local may hold a part of a count, ascending.
    pub pending: Vec<BlockId>,
    /// The sites that count in a local, ascending.
    by_site: Vec<(Site, u32)>,
}

impl Chosen {
    /// What a probe does.
    pub(crate) fn step(&self, probe: &Probe) -> Step {
        match self.by_site.binary_search_by_key(&probe.site, |s| s.0) {
            Ok(i) => Step::CountLocal(self.by_site[i].1),
            Err(_) => Step::Count(probe.counter),
        }
    }
}

/// Chooses the counters of a function that live in locals. O(E log V + probes log probes).
pub(crate) fn choose(function: &Function, plan: &FunctionPlan) -> Chosen {
    let mut chosen = Chosen::default();
    let cfg = &function.cfg;
    if plan.probes.is_empty() || !cfg.edges.values().any(|e| e.back) {
        return chosen;
    }
    let forest = LoopForest::compute(&cfg.graph, &DepthFirst::compute(&cfg.graph));
    let regions = regions(function, &forest);
    // For each probe: the region that it is in, and how deep.
    let mut candidates = Vec::new();
    for (i, probe) in plan.probes.iter().enumerate() {
        let (from, to) = match probe.site {
            Site::Block(block) => (block, block),
            Site::Edge(edge) => (cfg.edges[edge].from, cfg.edges[edge].to),
        };
        if let Some(region) =
            regions[from.index()].filter(|_| regions[to.index()] == regions[from.index()])
        {
            candidates.push((region, Reverse(forest.depth(from).min(forest.depth(to))), i));
        }
    }
    candidates.sort_unstable();
    let mut members: Vec<_> = cfg
        .graph
        .vertices()
        .filter_map(|v| Some((regions[v.index()]?, v)))
        .collect();
    members.sort_unstable();
    let mut members = members.chunk_by(|a, b| a.0 == b.0).peekable();
    for group in candidates.chunk_by(|a, b| a.0 == b.0) {
        let region = group[0].0;
        let Some(body) = members.find(|body| body[0].0 == region) else {
            continue;
        };
        let exits = body
            .iter()
            .flat_map(|&(_, v)| cfg.graph.out_edges(v).iter().copied())
            .filter(|&e| regions[cfg.edges[e].to.index()] != Some(region));
        let traps = |e: EdgeId| cfg.blocks[cfg.edges[e].to].end == BlockEnd::Unreachable;
        let (into_traps, exits): (Vec<_>, Vec<_>) = exits.partition(|&e| traps(e));
        if exits.len() > MOST_EXITS {
            continue;
        }
        for &(_, _, i) in group.iter().take(LOCALS_PER_LOOP) {
            let probe = &plan.probes[i];
            chosen.by_site.push((probe.site, chosen.locals));
            for &exit in &exits {
                chosen
                    .flushes
                    .push((Site::Edge(exit), Step::Flush(chosen.locals, probe.counter)));
            }
            chosen.locals += 1;
        }
        chosen.pending.extend(body.iter().map(|&(_, v)| v));
        // An `unreachable` behind the loop ends the run: nothing is flushed on the way there.
        chosen
            .pending
            .extend(into_traps.iter().map(|&e| cfg.edges[e].to));
    }
    chosen.by_site.sort_unstable();
    chosen.pending.sort_unstable();
    chosen.pending.dedup();
    chosen
}

/// For each vertex the outermost loop without calls that contains it.
fn regions(function: &Function, forest: &LoopForest) -> Vec<Option<LoopId>> {
    let cfg = &function.cfg;
    let loops = forest.loops();
    let mut calls = vec![false; loops.len()];
    for (id, block) in &cfg.blocks {
        let leaves = matches!(
            block.end,
            BlockEnd::Call(_) | BlockEnd::TailCall(_) | BlockEnd::Throw
        );
        if (leaves || block.kind != BlockKind::Code)
            && let Some(l) = forest.innermost(id)
        {
            calls[l.index()] = true;
        }
    }
    // Loops come after those around them.
    for (id, l) in loops.iter().rev() {
        if let Some(parent) = l.parent.filter(|_| calls[id.index()]) {
            calls[parent.index()] = true;
        }
    }
    let mut outermost: Vec<Option<LoopId>> = Vec::with_capacity(loops.len());
    for (id, l) in loops {
        let around = l.parent.and_then(|parent| outermost[parent.index()]);
        outermost.push(around.or_else(|| (!calls[id.index()]).then_some(id)));
    }
    cfg.graph
        .vertices()
        .map(|v| forest.innermost(v).and_then(|l| outermost[l.index()]))
        .collect()
}
