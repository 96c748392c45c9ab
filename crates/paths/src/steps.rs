//! Where the probes of path numbers go in one function.
//!
//! Bits are shifted into an accumulator, which is a local while a function uses it and a global between functions. It
//! is loaded where a function is entered or a call returns, if it is used before the next call; it is saved before calls
//! and exits, if it may have changed. Two data-flow problems tell: may it have changed (forwards), and is it used
//! (backwards).

use afterimage_ids::{BlockId, EdgeId, EntityRef};
use afterimage_program::{BlockEnd, BlockKind, Cfg, EdgeKind};

use crate::numbering::Numbering;
use crate::plan::Spot;
use crate::width_of;
use crate::writers::Writers;

/// What a probe does to the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Fetches it from the global.
    Load,
    /// Puts it into the global.
    Save,
    /// Makes room for so many bits, and sets them to `bits`.
    Begin {
        /// How many, at least 1.
        width: u8,
        /// What to set them to.
        bits: u64,
    },
    /// Adds to the bits last begun.
    Add(u32),
}

/// What has to be written in one function.
pub(crate) struct Written<'a> {
    pub cfg: &'a Cfg,
    pub numbering: &'a Numbering,
    /// The number to say at the entry, and its width.
    pub entry: Option<(u32, u8)>,
    pub writers: &'a Writers,
}

impl Written<'_> {
    /// What is written when control enters a vertex. Dispatch vertices are no code: their edges write.
    fn begin(&self, v: BlockId) -> Option<Step> {
        let path = self.numbering.start(v)?;
        if self.cfg.blocks[v].kind != BlockKind::Code {
            return None;
        }
        let (number, more) = match self.entry {
            Some(entry) if v == self.cfg.graph.root() => entry,
            _ => (0, 0),
        };
        let width = path + more;
        (width > 0).then_some(Step::Begin {
            width,
            bits: u64::from(number) << path,
        })
    }

    /// What is written on an edge out of a dispatch vertex.
    fn choose(&self, edge: EdgeId) -> Option<Step> {
        let graph = &self.cfg.graph;
        let ways = graph.out_edges(graph.from(edge));
        let width = width_of(ways.len() as u64);
        let bits = u64::from(self.numbering.value(edge));
        (width > 0).then_some(Step::Begin { width, bits })
    }

    fn from_dispatch(&self, edge: EdgeId) -> bool {
        matches!(
            self.cfg.blocks[self.cfg.graph.from(edge)].kind,
            BlockKind::Dispatch(_)
        )
    }

    /// Whether the accumulator must be in the global when this block ends, and whether it is another one afterwards.
    fn end(&self, v: BlockId) -> (bool, bool) {
        match self.cfg.blocks[v].end {
            BlockEnd::Call(callee) => (true, self.writers.call(callee)),
            BlockEnd::Throw => (true, true),
            _ => (false, false),
        }
    }
}

/// The probes of a function, in the order in which they must be placed: first those on edges, then those of
/// blocks, last the saves. O(edges) times a small number of rounds.
pub(crate) fn place(written: &Written<'_>) -> Vec<(Spot, Step)> {
    let cfg = written.cfg;
    let graph = &cfg.graph;
    let uses_it = cfg.blocks.keys().any(|v| written.begin(v).is_some())
        || cfg
            .edges
            .keys()
            .any(|e| written.from_dispatch(e) && written.choose(e).is_some());
    if !uses_it {
        return Vec::new();
    }
    let changed = changed(written);
    let used = used(written, &changed);

    let mut steps = Vec::new();
    for (id, edge) in cfg.edges.iter() {
        let spot = Spot::Edge(id);
        if written.from_dispatch(id) {
            let choice = written.choose(id);
            // Another dispatch vertex fetches it again.
            let leaves = edge.kind == EdgeKind::Unwind || edge.to == graph.exit();
            if choice.is_some() || !leaves && used[edge.to.index()] {
                steps.push((spot, Step::Load));
            }
            steps.extend(choice.map(|step| (spot, step)));
            if choice.is_some() && leaves {
                steps.push((spot, Step::Save));
            }
            continue;
        }
        let value = written.numbering.value(id);
        if value > 0 {
            steps.push((spot, Step::Add(value)));
        }
        if edge.kind == EdgeKind::CallReturn && written.end(edge.from).1 && used[edge.to.index()] {
            steps.push((spot, Step::Load));
        }
    }
    for v in cfg.blocks.keys() {
        if v == graph.root() && used[v.index()] {
            steps.push((Spot::Start(v), Step::Load));
        }
        steps.extend(written.begin(v).map(|step| (Spot::Start(v), step)));
    }
    for v in cfg.blocks.keys().filter(|v| changed[v.index()]) {
        if written.end(v).0 {
            steps.push((Spot::End(v), Step::Save));
            continue;
        }
        for &edge in graph.out_edges(v) {
            if graph.to(edge) == graph.exit() && cfg.blocks[v].kind == BlockKind::Code {
                steps.push((Spot::Edge(edge), Step::Save));
            }
        }
    }
    steps
}

/// By vertex: whether the local may differ from the global when the vertex ends, before it is saved there.
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
        if written.from_dispatch(id) && written.choose(id).is_some() {
            mark(edge.to, &mut changed, &mut work);
        }
    }
    while let Some(v) = work.pop() {
        // A save makes both the same.
        if !written.end(v).0 {
            for to in cfg.graph.successors(v) {
                mark(to, &mut changed, &mut work);
            }
        }
    }
    changed
}

/// By vertex: whether the local is used, by a probe or a save, in the vertex or after it and before it is loaded anew.
fn used(written: &Written<'_>, changed: &[bool]) -> Vec<bool> {
    let cfg = written.cfg;
    let graph = &cfg.graph;
    let mut used = vec![false; graph.vertex_count()];
    let mut work: Vec<BlockId> = Vec::new();
    for v in cfg.blocks.keys() {
        let saves = changed[v.index()]
            && (written.end(v).0 || graph.successors(v).any(|to| to == graph.exit()));
        if saves || written.begin(v).is_some() {
            used[v.index()] = true;
            work.push(v);
        }
    }
    while let Some(v) = work.pop() {
        for from in graph.predecessors(v) {
            let another =
                written.end(from).1 || matches!(cfg.blocks[from].kind, BlockKind::Dispatch(_));
            if !another && !std::mem::replace(&mut used[from.index()], true) {
                work.push(from);
            }
        }
    }
    used
}
