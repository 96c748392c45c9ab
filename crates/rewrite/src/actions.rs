//! Turns a plan's sites into actions at each operator.
//!
//! A probe on an edge goes to the cheapest place that control reaches only over this edge. This is
//! the end of the edge's source if no other edge leaves the source, or the start of its target if
//! no other edge enters the target. Otherwise, it goes on the edge itself, which needs added code.

use std::collections::BTreeMap;

use afterimage_ids::{BlockId, CounterId, EdgeId, EntityRef, OpId};
use afterimage_placement::Site;
use afterimage_program::{BlockEnd, BlockKind, Cfg, EdgeKind, Function};

use crate::map::OriginalPlace;
use crate::path_probes::PathStep;

/// One step of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Adds one to a counter in memory.
    Count(CounterId),
    /// Polls the stop clock on behalf of a block, every time that the block is entered.
    Poll(BlockId),
    /// Traps here if the clock shows the armed moment. The trap counts as a trap at this place of
    /// the original.
    Armed(OriginalPlace),
    /// Polls the stop clock once in a fixed number of iterations.
    LoopPoll(BlockId),
    /// Takes a snapshot at the beginning of a block, if a snapshot is due.
    Snapshot(BlockId),
    /// Takes a snapshot if one is due, each time that the loop is about to poll.
    LoopSnapshot(BlockId),
    /// Writes a part of the path.
    Path(PathStep),
    /// Stores a value that is never read. See [`Actions::keep_traps_apart`].
    Mark,
}

/// The steps to take at one operator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Action {
    pub before: Vec<Step>,
    pub after: Vec<Step>,
    /// Steps on the taken edge of a conditional branch.
    pub taken: Vec<Step>,
    /// Steps at the beginning of the else-arm of an `if`.
    pub otherwise: Vec<Step>,
    /// Steps on the edges of a `br_table`, by label depth.
    pub table: BTreeMap<u32, Vec<Step>>,
    /// Steps to take when an exception leaves a call.
    pub throw: Vec<Step>,
    /// Steps on the edges to the handlers of a `try_table`, by clause.
    pub catch: Vec<(u32, Vec<Step>)>,
    /// Steps to take when an exception leaves a `try_table`.
    pub unwind: Vec<Step>,
}

/// The steps to take in a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Actions {
    /// Steps at the function's beginning.
    pub entry: Vec<Step>,
    /// Steps to take when an exception leaves the function.
    pub unwind: Vec<Step>,
    /// Steps at operators.
    pub at: BTreeMap<OpId, Action>,
}

impl Actions {
    pub(crate) fn is_empty(&self) -> bool {
        self.entry.is_empty() && self.unwind.is_empty() && self.at.is_empty()
    }

    /// Adds a step at a site. Returns `false` if the function has no such site.
    pub(crate) fn add(&mut self, cfg: &Cfg, site: Site, step: Step) -> bool {
        match site {
            Site::Block(block) => self.add_block(cfg, block, step),
            Site::Edge(edge) => self.add_edge(cfg, edge, step),
        }
    }

    /// Makes sure that the place of every operator that always traps is reported.
    ///
    /// The engine compiles such an operator to a bare trap. If a branch leads only to a bare trap,
    /// the engine merges both into one conditional trap and reports it at the branch. The branch
    /// need not be in the program, because the engine creates branches for `table.get` and others.
    /// A store right before each bare trap, after all other steps, prevents the merge.
    pub(crate) fn keep_traps_apart(&mut self, function: &Function) {
        let blocks = function.cfg.blocks.values();
        let unreachable = blocks.filter(|block| block.end == BlockEnd::Unreachable);
        let unreachable = unreachable.map(|block| OpId::new(block.ops.end.index() - 1));
        let accesses = function.out_of_bounds.iter().chain(&function.waits);
        for op in unreachable.chain(accesses.copied()) {
            self.before(op, Step::Mark);
        }
    }

    /// Adds a step right before an operator.
    pub(crate) fn before(&mut self, op: OpId, step: Step) {
        self.op(op).before.push(step);
    }

    /// Adds a step right before the operator that ends a block. Returns `false` if the block has no
    /// such operator.
    pub(crate) fn add_end(&mut self, cfg: &Cfg, block: BlockId, step: Step) -> bool {
        let Some(data) = cfg.blocks.get(block).filter(|data| !data.ops.is_empty()) else {
            return false;
        };
        self.before(OpId::new(data.ops.end.index() - 1), step);
        true
    }

    fn op(&mut self, op: OpId) -> &mut Action {
        self.at.entry(op).or_default()
    }

    /// Adds a poll at the beginning of a block.
    pub(crate) fn add_poll(&mut self, cfg: &Cfg, block: BlockId, step: Step) {
        if let Some(steps) = self.start(cfg, block) {
            steps.push(step);
        }
    }

    /// Adds a snapshot at the beginning of a block, before all other steps. At that point, the
    /// activation has written no part of the path for the block.
    pub(crate) fn add_snapshot(&mut self, cfg: &Cfg, block: BlockId, step: Step) {
        if let Some(steps) = self.start(cfg, block) {
            steps.insert(0, step);
        }
    }

    /// Adds a step of the block itself. A run stopped by a poll has entered the block, so such
    /// steps come before the poll. Steps that count an edge out of the block come after it.
    fn add_block(&mut self, cfg: &Cfg, block: BlockId, step: Step) -> bool {
        let Some(steps) = self.start(cfg, block) else {
            return false;
        };
        let poll = |step: &Step| matches!(step, Step::Poll(_) | Step::LoopPoll(_));
        let at = steps.iter().position(poll).unwrap_or(steps.len());
        steps.insert(at, step);
        true
    }

    /// Returns the steps at the beginning of a block.
    fn start(&mut self, cfg: &Cfg, block: BlockId) -> Option<&mut Vec<Step>> {
        let data = cfg
            .blocks
            .get(block)
            .filter(|data| data.kind == BlockKind::Code)?;
        Some(if block == cfg.graph.root() {
            &mut self.entry
        } else {
            &mut self.op(data.ops.start).before
        })
    }

    fn add_edge(&mut self, cfg: &Cfg, id: EdgeId, step: Step) -> bool {
        let Some(edge) = cfg.edges.get(id) else {
            return false;
        };
        let only_way_in =
            cfg.graph.in_edges(edge.to).len() == 1 && cfg.blocks[edge.to].kind == BlockKind::Code;
        let Some(op) = edge.op else {
            match edge.kind {
                EdgeKind::Fall => self.entry.push(step),
                EdgeKind::Unwind => self.unwind.push(step),
                _ => return false,
            }
            return true;
        };
        match edge.kind {
            EdgeKind::Fall | EdgeKind::NotTaken | EdgeKind::Then | EdgeKind::CallReturn => {
                self.op(op).after.push(step);
            }
            EdgeKind::Jump | EdgeKind::Throw | EdgeKind::Return => self.op(op).before.push(step),
            EdgeKind::Taken | EdgeKind::Table(_) | EdgeKind::Catch(_) if only_way_in => {
                self.op(cfg.blocks[edge.to].ops.start).before.push(step);
            }
            EdgeKind::Taken => self.op(op).taken.push(step),
            EdgeKind::Else => self.op(op).otherwise.push(step),
            EdgeKind::Table(depth) => self.op(op).table.entry(depth).or_default().push(step),
            EdgeKind::CallThrow => self.op(op).throw.push(step),
            EdgeKind::Catch(clause) => push(&mut self.op(op).catch, clause, step),
            EdgeKind::Unwind => self.op(op).unwind.push(step),
        }
        true
    }
}

fn push(list: &mut Vec<(u32, Vec<Step>)>, key: u32, step: Step) {
    match list.iter_mut().find(|(k, _)| *k == key) {
        Some((_, steps)) => steps.push(step),
        None => list.push((key, vec![step])),
    }
}

/// Returns the name of a site, for messages.
pub(crate) fn site_name(site: Site) -> String {
    match site {
        Site::Block(block) => format!("block {}", block.index()),
        Site::Edge(edge) => format!("edge {}", edge.index()),
    }
}
