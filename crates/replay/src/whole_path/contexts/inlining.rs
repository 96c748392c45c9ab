//! Finds the inlined functions and the lines from which the blocks of a run come.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use afterimage_ids::{BlockId, EntityRef, FuncId, OrigOffset};
use afterimage_profile::body::decode;
use afterimage_profile::{ProfileError, Source};
use afterimage_program::{Block, Location, Program, demangle};
use afterimage_wpp::{Segments, WholePath};
use rustc_hash::FxHashMap;

use super::Frame;

/// The number of an [`Inlinee`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InlineeId(u32);

/// A chain of functions, each inlined into the previous function. The outermost is inlined into a
/// function that the module defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ChainId(u32);

impl ChainId {
    /// The chain that consists of the module's function alone.
    pub(super) const ITSELF: Self = Self(0);
    /// The chain of the block that precedes the event in the run.
    pub(super) const INHERITED: Self = Self(u32::MAX);

    /// Returns the chain's number, which is 0 for [`ITSELF`](Self::ITSELF).
    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// A function that the compiler inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inlinee {
    /// The function's mangled linkage name, or its only name.
    pub raw: String,
    /// The function's name for display.
    pub name: String,
    /// The place of the function's declaration.
    pub declared: Option<Location>,
    /// A place in the function's code. Some compilers omit the declarations of library functions.
    pub place: Option<Location>,
}

/// The frames to add to the functions of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlinedFrames {
    /// Whether to add functions that the compiler inlined.
    pub functions: bool,
    /// Whether to add the line of each block, and of each call, in its function.
    pub lines: bool,
}

/// The inlined functions and the lines from which each executed block comes.
///
/// A block comes from the functions of its first instruction that has a line. If no instruction has
/// a line, the block's first instruction counts. A call comes from the functions of its own
/// instruction. By default, no function is inlined.
#[derive(Clone, Debug, Default)]
pub struct Inlining {
    functions: Vec<Inlinee>,
    /// For each chain except [`ChainId::ITSELF`], the chain without its innermost frame, and that
    /// frame. The shorter chain has a smaller number.
    chains: Vec<(ChainId, Frame)>,
    /// The chains of each block and of its call. Blocks for which both are [`ChainId::ITSELF`] are
    /// left out.
    blocks: FxHashMap<(FuncId, BlockId), (ChainId, ChainId)>,
}

impl Inlining {
    /// Reads the debug information about the blocks of a path. `module` contains the bytes from
    /// which the program was parsed. O(operators of the functions that were executed · log).
    ///
    /// # Errors
    /// Returns an error if the module's bytes do not match the program.
    pub fn new<S: Segments>(
        path: &WholePath<S>,
        program: &Program,
        module: &[u8],
        source: &dyn Source,
        wanted: InlinedFrames,
    ) -> Result<Self, ProfileError> {
        let mut executed: HashMap<FuncId, Vec<BlockId>> = HashMap::new();
        for node in path.nodes().values() {
            executed
                .entry(node.function)
                .or_default()
                .extend(&node.blocks);
        }
        let mut maker = Maker {
            wanted,
            into: Self::default(),
            functions: HashMap::new(),
            chains: HashMap::new(),
        };
        let mut body = Vec::new();
        let mut functions = Vec::from_iter(executed);
        functions.sort_unstable_by_key(|&(function, _)| function);
        for (id, mut blocks) in functions {
            let Some(function) = program.function(id) else {
                continue;
            };
            decode(program, module, function, &mut body)?;
            blocks.sort_unstable();
            blocks.dedup();
            for at in blocks {
                let Some(block) = function.cfg.blocks.get(at) else {
                    continue;
                };
                let ops = block.ops.start.index()..block.ops.end.index();
                let ops = body.get(ops).unwrap_or_default();
                let mut offsets = ops.iter().filter(|op| op.instruction).map(|op| op.offset);
                let own = first_with_line(offsets.clone(), block, source);
                let call = offsets.next_back().unwrap_or(own);
                let chains = [own, call].map(|offset| maker.chain(source, offset));
                if chains != [ChainId::ITSELF; 2] {
                    maker.into.blocks.insert((id, at), chains.into());
                }
            }
        }
        Ok(maker.into)
    }

    /// Assigns each block two arbitrary numbers below `u32::MAX`, instead of its own chain and its
    /// call's chain. The numbers do not represent functions.
    pub(super) fn of_numbers(numbers: HashMap<(FuncId, BlockId), (u32, u32)>) -> Self {
        let chains = |(block, call)| (ChainId(block), ChainId(call));
        let numbers = numbers.into_iter();
        Self {
            blocks: numbers.map(|(at, numbers)| (at, chains(numbers))).collect(),
            ..Self::default()
        }
    }

    /// Returns a function that was inlined.
    pub fn function(&self, id: InlineeId) -> &Inlinee {
        &self.functions[id.0 as usize]
    }

    /// Whether no executed code was inlined.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the chain from which a block comes.
    pub(super) fn of_block(&self, function: FuncId, block: BlockId) -> ChainId {
        let known = self.blocks.get(&(function, block));
        known.map_or(ChainId::ITSELF, |known| known.0)
    }

    /// Returns the chain from which the call at a block's end comes.
    pub(super) fn of_call(&self, function: FuncId, block: BlockId) -> ChainId {
        let known = self.blocks.get(&(function, block));
        known.map_or(ChainId::ITSELF, |known| known.1)
    }

    /// Returns a chain without its innermost frame, and that frame, or `None` for
    /// [`ChainId::ITSELF`].
    pub(super) fn split(&self, chain: ChainId) -> Option<(ChainId, Frame)> {
        let at = (chain.0 as usize).checked_sub(1)?;
        self.chains.get(at).copied()
    }
}

/// Returns the offset of the first instruction that has a line, or otherwise of the first
/// instruction. If the block has no instruction, returns the offset of the block.
fn first_with_line(
    mut offsets: impl Iterator<Item = OrigOffset> + Clone,
    block: &Block,
    source: &dyn Source,
) -> OrigOffset {
    let first = offsets.clone().next().unwrap_or(block.offsets.start);
    let with_line = offsets.find(|&offset| source.locate(offset).is_some());
    with_line.unwrap_or(first)
}

struct Maker {
    wanted: InlinedFrames,
    into: Inlining,
    functions: HashMap<(String, Option<Location>), InlineeId>,
    chains: HashMap<(ChainId, Frame), ChainId>,
}

impl Maker {
    fn chain(&mut self, source: &dyn Source, offset: OrigOffset) -> ChainId {
        let mut frames = source.inlined_frames(offset);
        // The outermost frame is the function that the module defines.
        let outermost = frames.pop();
        let mut chain = ChainId::ITSELF;
        if let Some(outermost) = outermost {
            chain = self.with_line(chain, outermost.location);
        }
        if !self.wanted.functions {
            return chain;
        }
        for frame in frames.into_iter().rev() {
            let Some(raw) = frame.function else { continue };
            let function = self.function(raw, frame.declared, frame.location);
            chain = self.longer(chain, Frame::Inlined(function));
            chain = self.with_line(chain, frame.location);
        }
        chain
    }

    fn with_line(&mut self, chain: ChainId, at: Option<Location>) -> ChainId {
        match at.filter(|_| self.wanted.lines) {
            Some(at) => self.longer(chain, Frame::Line(at.into())),
            None => chain,
        }
    }

    fn longer(&mut self, chain: ChainId, frame: Frame) -> ChainId {
        let chains = &mut self.into.chains;
        *self.chains.entry((chain, frame)).or_insert_with(|| {
            chains.push((chain, frame));
            ChainId(chains.len() as u32)
        })
    }

    fn function(
        &mut self,
        raw: String,
        declared: Option<Location>,
        place: Option<Location>,
    ) -> InlineeId {
        match self.functions.entry((raw, declared)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let (raw, declared) = new.key().clone();
                let name = demangle(&raw).unwrap_or_else(|| raw.clone());
                let functions = &mut self.into.functions;
                functions.push(Inlinee {
                    raw,
                    name,
                    declared,
                    place,
                });
                *new.insert(InlineeId(functions.len() as u32 - 1))
            }
        }
    }
}
