//! Finds the path that a function takes by trying all continuations.

use std::collections::HashMap;

use afterimage_ids::{BlockId, FuncId, NodeId};
use afterimage_machine::{Caller, Machine, MachineError, NodeCode, Observer};
use afterimage_program::{BlockEnd, BlockKind, EdgeKind, Program};
use afterimage_trace::{Event, Existing, RawValue, TraceFile, TraceWriter};

/// The blocks of a piece of an activation, and the block where it continues.
pub type Piece = (FuncId, Vec<BlockId>, Option<BlockId>);

/// A run of a function.
pub struct Run<'a> {
    pub program: &'a Program,
    pub module: &'a [u8],
    pub file: TraceFile,
}

/// Follows activations.
#[derive(Default)]
struct Activations {
    /// For each activation, the function and the block where it continues.
    open: Vec<(FuncId, Option<BlockId>)>,
    /// The function that the last node called.
    called: Option<FuncId>,
    caught: bool,
    /// The block where the current node continues.
    next: Option<BlockId>,
}

impl Observer for Activations {
    fn called(&mut self, function: FuncId, _: &[(u64, u64)]) {
        self.called = Some(function);
    }

    fn enter(&mut self, function: FuncId, _: Caller) {
        self.called = None;
        self.open.push((function, None));
    }

    fn done(&mut self, _: &NodeCode, _: &[u64], _: &[u64]) {
        if let Some(last) = self.open.last_mut() {
            last.1 = self.next;
        }
    }

    fn leave(&mut self, _: Option<(u32, u32)>) {
        self.open.pop();
    }

    fn caught(&mut self, _: u32, _: u32) {
        self.caught = true;
    }
}

impl<'a> Run<'a> {
    /// Creates a run of a function, with arguments derived from `number`.
    pub fn new(program: &'a Program, module: &'a [u8], function: FuncId, number: i32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().join("a.aft");
        let writer = TraceWriter::create(&at, Existing::Kept).expect("a writer");
        let mut log = writer.log().expect("a log");
        let defined = program.function(function).expect("a function");
        let params = program.types[defined.ty].params.iter().enumerate();
        let argument = |(i, ty): (usize, &wasmparser::ValType)| {
            let number = number.wrapping_mul(i as i32 + 1);
            match ty {
                wasmparser::ValType::I32 => RawValue::I32(number),
                wasmparser::ValType::I64 => RawValue::I64(number.into()),
                wasmparser::ValType::F32 => RawValue::F32((number as f32).to_bits()),
                wasmparser::ValType::F64 => RawValue::F64(f64::from(number).to_bits()),
                wasmparser::ValType::V128 => RawValue::V128(number as u128),
                wasmparser::ValType::Ref(_) => RawValue::NullRef,
            }
        };
        let args = params.map(argument).collect();
        log.event(&Event::Enter { function, args }).expect("small");
        log.finish().expect("an end");
        writer.commit().expect("a commit");
        drop(writer);
        let bytes = std::fs::read(&at).expect("a file");
        let file = TraceFile::from_bytes(bytes).expect("a sound file");
        Self {
            program,
            module,
            file,
        }
    }

    pub fn machine(&self) -> Result<Machine<'a>, MachineError> {
        let log = self.file.log().expect("it has a log");
        Machine::new(self.program, self.module, log)
    }

    /// Returns up to `most` blocks that a run of this function executes, each as one piece.
    pub fn discover(&self, function: FuncId, most: usize) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let root = |function| {
            let known = self.program.function(function);
            known.map(|known| known.cfg.graph.root())
        };
        let mut next = root(function).map(|root| (function, root));
        while pieces.len() < most
            && let Some((function, block)) = next
        {
            let mut candidates = self.candidates(function, block).into_iter();
            let found = candidates.find_map(|to| {
                pieces.push((function, vec![block], to));
                let tried = self.attempt(&pieces);
                if tried.is_none() {
                    pieces.pop();
                }
                tried
            });
            next = match found {
                Some(activations) if activations.caught => None,
                Some(activations) => match (activations.called, activations.open.last()) {
                    (Some(called), Some(_)) => root(called).map(|root| (called, root)),
                    (None, Some(&(function, next))) => next.map(|next| (function, next)),
                    (_, None) => None,
                },
                None => None,
            };
        }
        pieces
    }

    /// Returns the possible continuations of a block.
    fn candidates(&self, function: FuncId, block: BlockId) -> Vec<Option<BlockId>> {
        let cfg = &self.program.function(function).expect("a function").cfg;
        let edges = cfg.graph.out_edges(block).iter();
        let leaves = matches!(
            cfg.blocks[block].end,
            BlockEnd::TailCall(_) | BlockEnd::Throw | BlockEnd::Unreachable
        );
        if leaves {
            return vec![None];
        }
        let call = matches!(cfg.blocks[block].end, BlockEnd::Call(_));
        let ways = edges.filter(|&&edge| !call || cfg.edges[edge].kind == EdgeKind::CallReturn);
        let targets = ways.map(|&edge| cfg.graph.to(edge));
        let targets =
            targets.filter(|&to| to == cfg.graph.exit() || cfg.blocks[to].kind == BlockKind::Code);
        let mut targets = Vec::from_iter(targets.map(|to| (to != cfg.graph.exit()).then_some(to)));
        targets.dedup();
        targets
    }

    /// Returns the activations open after these pieces, if a run can execute them.
    fn attempt(&self, pieces: &[Piece]) -> Option<Activations> {
        let mut machine = self.machine().ok()?;
        let nodes = define(&mut machine, pieces).ok()?;
        let mut activations = Activations::default();
        for (node, (_, _, next)) in nodes.into_iter().zip(pieces) {
            (activations.called, activations.next) = (None, *next);
            // Execute instruction by instruction, so that a mistake in another form does not hide
            // the path.
            machine
                .step_pausing(node, 1, None, &mut activations, (&[], |_, _| ()))
                .ok()?;
        }
        if machine.trap().is_some() {
            activations.open.clear();
        }
        Some(activations)
    }
}

/// Defines the nodes of pieces. Equal pieces share a node.
pub fn define(machine: &mut Machine<'_>, pieces: &[Piece]) -> Result<Vec<NodeId>, MachineError> {
    let mut known: HashMap<&Piece, NodeId> = HashMap::new();
    let mut nodes = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let node = match known.get(piece) {
            Some(node) => *node,
            None => machine.define(piece.0, &piece.1, piece.2)?,
        };
        known.insert(piece, node);
        nodes.push(node);
    }
    Ok(nodes)
}
