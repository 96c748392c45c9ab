//! Produces the raw trace of a run.

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId};
use afterimage_paths::{ExecutedPath, Sink};
use afterimage_program::Program;

use super::scan::Scan;
use super::tape::Tape;

/// The first word that is not a block. The entry of a function is this word plus the function's
/// number.
pub(super) const ENTER: u32 = 1 << 31;
pub(super) const LEAVE: u32 = u32::MAX;
/// The number of words to produce before scanning them. They stay in the cache, which favours the
/// scan.
const CHUNK: usize = 1 << 15;

/// A number for every block of a program.
#[derive(Clone, Debug)]
pub(crate) struct BlockNumbers {
    /// For each function, the number of its first block.
    first: Vec<u32>,
}

impl BlockNumbers {
    pub(crate) fn new(program: &Program) -> Self {
        let mut next = 0;
        let mut first = vec![0; program.imports.len()];
        for function in &program.functions {
            first.push(next);
            next += function.cfg.blocks.len() as u32;
        }
        Self { first }
    }

    pub(crate) fn of(&self, function: FuncId, block: BlockId) -> u32 {
        self.first[function.index()] + block.as_u32()
    }
}

/// Writes the raw trace, word by word, and has scanners read it. Also keeps the beginning of the
/// path.
pub(crate) struct RawTrace {
    numbers: BlockNumbers,
    /// For each node, its blocks' numbers.
    nodes: Vec<Box<[u32]>>,
    chunk: Vec<u32>,
    pub scans: Vec<Scan>,
    pub tape: Tape,
    pub words: u64,
}

impl RawTrace {
    pub(crate) fn new(numbers: BlockNumbers, functions: &[FuncId], tape: Tape) -> Self {
        Self {
            numbers,
            nodes: Vec::new(),
            chunk: Vec::with_capacity(2 * CHUNK),
            scans: functions.iter().map(|&f| Scan::new(f)).collect(),
            tape,
            words: 0,
        }
    }

    fn put(&mut self, words: &[u32]) {
        self.chunk.extend_from_slice(words);
        if self.chunk.len() >= CHUNK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        for scan in &mut self.scans {
            scan.read(&self.chunk);
        }
        self.words += self.chunk.len() as u64;
        self.chunk.clear();
    }

    /// Ends the run for the scanners.
    pub(crate) fn finish(&mut self) {
        self.flush();
        self.scans.iter_mut().for_each(Scan::finish);
    }
}

impl Sink for RawTrace {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        let blocks = path.blocks.iter();
        let numbers = blocks.map(|&block| self.numbers.of(path.function, block));
        self.nodes.push(numbers.collect());
        self.tape.define(path)
    }

    fn path(&mut self, node: NodeId) {
        self.tape.path(node);
        self.chunk
            .extend_from_slice(&self.nodes[node.as_u32() as usize]);
        if self.chunk.len() >= CHUNK {
            self.flush();
        }
    }

    fn enter(&mut self, function: FuncId) {
        self.tape.enter(function);
        self.put(&[ENTER + function.as_u32()]);
    }

    fn leave(&mut self) {
        self.tape.leave();
        self.put(&[LEAVE]);
    }
}
