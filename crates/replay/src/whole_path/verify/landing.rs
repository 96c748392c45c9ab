//! Finds the first block that is executed after control goes to a vertex.

use afterimage_ids::{BlockId, FuncId};
use afterimage_program::{BlockKind, Cfg, EdgeKind, Program};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The possible first events after control reaches a vertex.
#[derive(Debug, Default)]
pub(super) struct Landing {
    /// The blocks that can be executed first.
    pub blocks: Vec<BlockId>,
    /// Whether the activation may return without executing a block.
    pub returns: bool,
    /// Whether an exception may leave the activation.
    pub throws: bool,
}

/// The landings of vertices, each computed once.
pub(super) struct Landings<'a> {
    program: &'a Program,
    known: RefCell<HashMap<(FuncId, BlockId), Rc<Landing>>>,
}

impl<'a> Landings<'a> {
    pub fn new(program: &'a Program) -> Self {
        Self {
            program,
            known: RefCell::default(),
        }
    }

    /// Whether a block can be the first to be executed after control reaches a vertex.
    pub fn allows(&self, function: FuncId, vertex: BlockId, block: BlockId) -> bool {
        vertex == block
            || self
                .of(function, vertex)
                .blocks
                .binary_search(&block)
                .is_ok()
    }

    /// Returns the possible first events after control reaches a vertex.
    pub fn of(&self, function: FuncId, vertex: BlockId) -> Rc<Landing> {
        let mut known = self.known.borrow_mut();
        let landing = known.entry((function, vertex)).or_insert_with(|| {
            let cfg = self
                .program
                .function(function)
                .map(|function| &function.cfg);
            Rc::new(cfg.map_or_else(Landing::default, |cfg| find(cfg, vertex)))
        });
        Rc::clone(landing)
    }
}

/// Finds the landing of a vertex. Passes through dispatch vertices, which execute nothing. Takes
/// time linear in their edges.
fn find(cfg: &Cfg, vertex: BlockId) -> Landing {
    let mut landing = Landing::default();
    let mut seen = HashSet::new();
    let mut open = vec![vertex];
    while let Some(v) = open.pop() {
        if !seen.insert(v) {
            continue;
        }
        if cfg.blocks[v].kind == BlockKind::Code {
            landing.blocks.push(v);
            continue;
        }
        for &edge in cfg.graph.out_edges(v) {
            let to = cfg.graph.to(edge);
            if to != cfg.graph.exit() {
                open.push(to);
            } else if cfg.edges[edge].kind == EdgeKind::Unwind {
                landing.throws = true;
            } else {
                landing.returns = true;
            }
        }
    }
    landing.blocks.sort_unstable();
    landing
}
