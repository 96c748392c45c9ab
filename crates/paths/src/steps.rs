//! Places the probes of path numbers in one function.
//!
//! Bits are shifted into an accumulator, which is a local while a function uses it and a global
//! between functions. The accumulator is loaded where a function is entered or a call returns, if
//! it is used before the next call. It is saved before calls and exits, if it may have changed. Two
//! data-flow problems decide whether it may have changed (forward) and whether it is used
//! (backward).

use afterimage_ids::{BlockId, EdgeId, EntityRef};
use afterimage_program::{BlockEnd, BlockKind, Cfg, EdgeKind};

use crate::plan::Spot;
use crate::writers::Writers;

/// The action of a probe on the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Loads the accumulator from the global.
    Load,
    /// Stores the accumulator in the global.
    Save,
    /// Makes room for `width` bits, and sets them to `bits`.
    Begin {
        /// The number of bits, at least 1.
        width: u8,
        /// The value of the bits.
        bits: u64,
    },
    /// Adds to the bits for which the last `Begin` made room.
    Add(u32),
}

/// The bits to write in one function.
pub(crate) struct Written<'a> {
    pub cfg: &'a Cfg,
    pub writers: &'a Writers,
    /// Returns the step that writes bits at the entry of a basic block.
    pub at_start: &'a dyn Fn(BlockId) -> Option<Step>,
    /// Returns the step that writes bits on an edge.
    pub on_edge: &'a dyn Fn(EdgeId) -> Option<Step>,
}

/// The actions on the accumulator before and after an edge writes bits.
struct EdgeSteps {
    step: Option<Step>,
    /// Whether to load the accumulator first, because the local does not contain it.
    load: bool,
    /// Whether to save the accumulator afterwards, because the local does not keep it.
    save: bool,
}

impl Written<'_> {
    fn begin(&self, v: BlockId) -> Option<Step> {
        (self.cfg.blocks[v].kind == BlockKind::Code)
            .then(|| (self.at_start)(v))
            .flatten()
    }

    fn edge(&self, id: EdgeId) -> EdgeSteps {
        let edge = &self.cfg.edges[id];
        let step = (self.on_edge)(id);
        let exits = edge.to == self.cfg.graph.exit();
        let dispatch = matches!(self.cfg.blocks[edge.from].kind, BlockKind::Dispatch(_));
        match edge.kind {
            // The next dispatch vertex, or the function's caller, loads the accumulator again.
            EdgeKind::CallThrow | EdgeKind::Unwind => EdgeSteps {
                step,
                load: true,
                save: true,
            },
            _ => EdgeSteps {
                step,
                load: dispatch || edge.kind == EdgeKind::CallReturn && self.end(edge.from).1,
                save: exits,
            },
        }
    }

    /// Whether the accumulator must be in the global when this block ends, and whether it may have
    /// changed afterwards.
    fn end(&self, v: BlockId) -> (bool, bool) {
        match self.cfg.blocks[v].end {
            BlockEnd::Call(callee) => (true, self.writers.call(callee)),
            BlockEnd::Throw => (true, true),
            _ => (false, false),
        }
    }
}

/// Returns the probes of a function, in the order in which they must be placed. Probes on edges
/// come first, then probes in blocks, then saves. Time: O(edges) times a small number of rounds.
pub(crate) fn place(written: &Written<'_>) -> Vec<(Spot, Step)> {
    let cfg = written.cfg;
    let graph = &cfg.graph;
    let writes = cfg.blocks.keys().any(|v| written.begin(v).is_some())
        || cfg.edges.keys().any(|e| (written.on_edge)(e).is_some());
    if !writes {
        return Vec::new();
    }
    let changed = changed(written);
    let used = used(written, &changed);

    let mut steps = Vec::new();
    let mut saves = Vec::new();
    for (id, edge) in cfg.edges.iter() {
        let spot = Spot::Edge(id);
        let EdgeSteps { step, load, save } = written.edge(id);
        if load && (step.is_some() || !save && used[edge.to.index()]) {
            steps.push((spot, Step::Load));
        }
        steps.extend(step.map(|step| (spot, step)));
        // A change in the block is also lost with the local, unless it is saved at the block's end.
        let of_block = changed[edge.from.index()] && !written.end(edge.from).0;
        if save && step.is_some() && load {
            steps.push((spot, Step::Save));
        } else if save && (step.is_some() || of_block) {
            saves.push((spot, Step::Save));
        }
    }
    for v in cfg.blocks.keys() {
        if v == graph.root() && used[v.index()] {
            steps.push((Spot::Start(v), Step::Load));
        }
        steps.extend(written.begin(v).map(|step| (Spot::Start(v), step)));
    }
    let ends = cfg.blocks.keys();
    let ends = ends.filter(|&v| changed[v.index()] && written.end(v).0);
    saves.extend(ends.map(|v| (Spot::End(v), Step::Save)));
    steps.extend(saves);
    steps
}

/// Returns, for each vertex, whether the local may differ from the global when the vertex ends,
/// before a save at this point.
fn changed(written: &Written<'_>) -> Vec<bool> {
    let cfg = written.cfg;
    let mut changed = vec![false; cfg.graph.vertex_count()];
    let mut work: Vec<BlockId> = Vec::new();
    let mark = |v: BlockId, changed: &mut Vec<bool>, work: &mut Vec<BlockId>| {
        if !std::mem::replace(&mut changed[v.index()], true) {
            work.push(v);
        }
    };
    for v in cfg.blocks.keys() {
        if written.begin(v).is_some() {
            mark(v, &mut changed, &mut work);
        }
    }
    for (id, edge) in cfg.edges.iter() {
        let steps = written.edge(id);
        if steps.step.is_some() && !steps.save {
            mark(edge.to, &mut changed, &mut work);
        }
    }
    while let Some(v) = work.pop() {
        // A save makes the local and the global equal.
        if !written.end(v).0 {
            for to in cfg.graph.successors(v) {
                mark(to, &mut changed, &mut work);
            }
        }
    }
    changed
}

/// Returns, for each vertex, whether a probe or a save uses the local, in the vertex or later,
/// before it is loaded again.
fn used(written: &Written<'_>, changed: &[bool]) -> Vec<bool> {
    let cfg = written.cfg;
    let graph = &cfg.graph;
    let mut used = vec![false; graph.vertex_count()];
    let mut work: Vec<BlockId> = Vec::new();
    for v in cfg.blocks.keys() {
        let ways = graph.out_edges(v).iter().map(|&e| written.edge(e));
        let on_edges = ways
            .filter(|edge| !edge.load)
            .any(|edge| edge.step.is_some() || edge.save && changed[v.index()]);
        let saves = changed[v.index()] && written.end(v).0;
        if saves || on_edges || written.begin(v).is_some() {
            used[v.index()] = true;
            work.push(v);
        }
    }
    while let Some(v) = work.pop() {
        for &edge in graph.in_edges(v) {
            let from = graph.from(edge);
            let stops = written.edge(edge).load || written.end(from).1;
            if !stops && !std::mem::replace(&mut used[from.index()], true) {
                work.push(from);
            }
        }
    }
    used
}
