//! Caches the paths that have been looked up, by start and number.

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId, TypeId};
use afterimage_program::{BlockEnd, BlockKind, Callee, EdgeKind, Program};

use afterimage_graph::{DepthFirst, LoopForest};

use super::lookup::UNKNOWN_PLACE;
use super::stack::{LEAVES, NOWHERE};
use super::{ExecutedPath, RegenerateError, Sink};
use crate::{EntryIds, PathPlan};

/// A path that has been looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub node: NodeId,
    /// The number of the path's blocks, or 0 if it leads from one dispatch vertex to the next.
    pub length: u32,
    pub end: PathEnd,
}

/// The end of a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum PathEnd {
    /// The next path of this activation begins at this start.
    Start(u32),
    /// The path ends with a call. The starts say where the activation continues when the call
    /// returns, and when it throws.
    Call {
        target: Target,
        returns: u32,
        throws: u32,
        block: BlockId,
    },
    TailCall {
        target: Target,
    },
    Return,
    /// An exception leaves the function.
    Throw,
    /// The path ends with a trap.
    Stop,
}

/// The callee of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// A defined function, by its position.
    Defined(u32),
    Import(FuncId),
    Table(TypeId),
}

/// Numbers below this are looked up in a list, and larger numbers in a map.
const DENSE: usize = 1 << 12;

/// The paths from one start.
#[derive(Debug)]
struct Start {
    block: BlockId,
    width: u8,
    /// The place of the start's lookup table, if paths are being counted.
    place: u32,
    dense: Vec<u32>,
    sparse: std::collections::HashMap<u32, u32>,
}

/// The starts of one function.
#[derive(Debug)]
struct Function {
    starts: Vec<Start>,
    /// For each block that is a start, the index of the start.
    of_block: Vec<u32>,
    /// The index of the root's start.
    root: u32,
    entry: Option<(u32, u8)>,
    loops: LoopForest,
}

#[derive(Debug)]
pub(super) struct Tables<'a> {
    program: &'a Program,
    plan: &'a PathPlan,
    functions: Vec<Option<Box<Function>>>,
    paths: Vec<Path>,
    blocks: Vec<BlockId>,
}

/// Marks a path that has not been looked up yet.
const UNKNOWN: u32 = u32::MAX;

impl<'a> Tables<'a> {
    pub(super) fn new(program: &'a Program, plan: &'a PathPlan) -> Self {
        Self {
            program,
            plan,
            functions: program.functions.iter().map(|_| None).collect(),
            paths: Vec::new(),
            blocks: Vec::new(),
        }
    }

    pub(super) fn entry_ids(&self) -> &'a EntryIds {
        self.plan.entry_ids()
    }

    pub(super) fn id(&self, function: u32) -> FuncId {
        self.program.functions[function as usize].id
    }

    /// Returns the position of a defined function, or `None` for an import.
    pub(super) fn defined(&self, function: FuncId) -> Option<u32> {
        let position = function.index().checked_sub(self.program.imports.len())?;
        (position < self.functions.len()).then_some(position as u32)
    }

    /// Returns the first start of an activation, and the number that it writes before its first
    /// path.
    #[inline]
    pub(super) fn entry(&mut self, function: u32) -> (u32, Option<(u32, u8)>) {
        let table = self.function(function);
        (table.root, table.entry)
    }

    /// Returns the index of a block among the starts, if paths begin at it.
    pub(super) fn start_of(&mut self, function: u32, block: BlockId) -> Option<u32> {
        let known = self.function(function).of_block.get(block.index()).copied();
        known.filter(|&start| start != NOWHERE)
    }

    /// Whether there is a defined function at a position.
    pub(super) fn has(&self, function: u32) -> bool {
        (function as usize) < self.functions.len()
    }

    /// Returns the type, if the program has it.
    pub(super) fn ty(&self, ty: TypeId) -> Option<TypeId> {
        self.program.types.is_valid(ty).then_some(ty)
    }

    /// Returns the place of a start's lookup table, or `None` if the start is invalid.
    pub(super) fn place(&mut self, function: u32, start: u32) -> Option<&mut u32> {
        let table = self.function(function);
        table.starts.get_mut(start as usize).map(|s| &mut s.place)
    }

    #[inline]
    pub(super) fn width(&self, function: u32, start: u32) -> u8 {
        // An invalid start was refused when its path was looked up.
        self.functions[function as usize]
            .as_ref()
            .and_then(|f| f.starts.get(start as usize))
            .map_or(0, |s| s.width)
    }

    /// Returns the path that begins at a start and has this number.
    #[inline]
    pub(super) fn path<S: Sink>(
        &mut self,
        function: u32,
        start: u32,
        number: u32,
        sink: &mut S,
    ) -> Result<Path, RegenerateError> {
        if let Some(table) = &self.functions[function as usize]
            && let Some(from) = table.starts.get(start as usize)
            && let Some(&path) = from.dense.get(number as usize)
            && path != UNKNOWN
        {
            return Ok(self.paths[path as usize]);
        }
        self.look_up(function, start, number, sink)
    }

    #[cold]
    fn look_up<S: Sink>(
        &mut self,
        function: u32,
        start: u32,
        number: u32,
        sink: &mut S,
    ) -> Result<Path, RegenerateError> {
        if let Some(&path) = self.start(function, start)?.sparse.get(&number) {
            return Ok(self.paths[path as usize]);
        }
        let end = self.walk(function, start, number)?;
        let length = self.blocks.len() as u32;
        let node = if length > 0 {
            self.define(function, Some(end), sink)
        } else {
            NodeId::new(0)
        };
        let path = Path { node, length, end };
        let position = self.paths.len() as u32;
        self.paths.push(path);
        let from = self.start(function, start)?;
        let number = number as usize;
        if number < DENSE {
            if from.dense.len() <= number {
                from.dense.resize(number + 1, UNKNOWN);
            }
            from.dense[number] = position;
        } else {
            from.sparse.insert(number as u32, position);
        }
        Ok(path)
    }

    /// Defines the path that was walked last, or the part of it that [`shorten`](Self::shorten)
    /// kept. `end` says how the path ends, if it was walked to its end.
    pub(super) fn define<S: Sink>(
        &mut self,
        function: u32,
        end: Option<PathEnd>,
        sink: &mut S,
    ) -> NodeId {
        let table = self.function(function);
        let block_of = |start: u32| table.starts.get(start as usize).map(|s| s.block);
        let (next, calls) = match end {
            Some(PathEnd::Start(start)) => (block_of(start), false),
            Some(PathEnd::Call { returns, .. }) => (block_of(returns), true),
            _ => (None, false),
        };
        let (mut loops, mut header) = (Vec::new(), false);
        if let Some(&first) = self.blocks.first()
            && let Some(table) = &self.functions[function as usize]
        {
            let forest = table.loops.loops();
            loops.extend(table.loops.around(first).map(|l| forest[l].header));
            header = loops.first() == Some(&first);
            loops.reverse();
        }
        sink.define(ExecutedPath {
            function: self.id(function),
            blocks: &self.blocks,
            loops: &loops,
            header,
            next,
            calls,
        })
    }

    /// Keeps the first `blocks` blocks of the path that was walked last.
    pub(super) fn shorten(&mut self, blocks: usize) {
        self.blocks.truncate(blocks);
    }

    fn start(&mut self, function: u32, start: u32) -> Result<&mut Start, RegenerateError> {
        let id = self.id(function);
        self.function(function)
            .starts
            .get_mut(start as usize)
            .ok_or(RegenerateError::Early(id))
    }

    /// Puts the blocks of a path into `self.blocks`, and returns how it ends.
    pub(super) fn walk(
        &mut self,
        function: u32,
        start: u32,
        number: u32,
    ) -> Result<PathEnd, RegenerateError> {
        let first = self.start(function, start)?.block;
        let cfg = &self.program.functions[function as usize].cfg;
        let numbering = &self.plan.functions[function as usize];
        let refuse = || RegenerateError::NoSuchPath {
            function: self.program.functions[function as usize].id,
            block: first,
            number,
        };
        self.blocks.clear();
        let mut rest = number;
        let mut v = first;
        let last = loop {
            if cfg.blocks[v].kind == BlockKind::Code {
                self.blocks.push(v);
            }
            if matches!(cfg.blocks[v].end, BlockEnd::Call(_)) {
                break None;
            }
            let ways = cfg.graph.out_edges(v).iter().copied();
            let fitting = ways.filter(|&e| numbering.value(e) <= rest);
            let Some(edge) = fitting.max_by_key(|&e| numbering.value(e)) else {
                break None;
            };
            rest -= numbering.value(edge);
            v = cfg.graph.to(edge);
            if v == cfg.graph.exit() || numbering.start(v).is_some() {
                break Some(edge);
            }
        };
        if rest != 0 {
            return Err(refuse());
        }
        let from = last.map_or(v, |edge| cfg.graph.from(edge));
        let of_block = |v: BlockId| match &self.functions[function as usize] {
            Some(table) => table.of_block[v.index()],
            None => NOWHERE,
        };
        Ok(match (cfg.blocks[from].end, last) {
            (BlockEnd::Call(callee), _) => {
                let mut way = cfg.graph.out_edges(from).iter();
                let returns = way
                    .clone()
                    .find(|&&e| cfg.edges[e].kind == EdgeKind::CallReturn);
                let throws = way.find(|&&e| cfg.edges[e].kind == EdgeKind::CallThrow);
                let to = |edge: Option<&afterimage_ids::EdgeId>| match edge {
                    Some(&edge) if cfg.graph.to(edge) == cfg.graph.exit() => LEAVES,
                    Some(&edge) => of_block(cfg.graph.to(edge)),
                    None => NOWHERE,
                };
                PathEnd::Call {
                    target: self.target(callee),
                    returns: to(returns),
                    throws: to(throws),
                    block: from,
                }
            }
            (_, Some(edge)) if cfg.graph.to(edge) != cfg.graph.exit() => {
                PathEnd::Start(of_block(cfg.graph.to(edge)))
            }
            (BlockEnd::TailCall(callee), _) => PathEnd::TailCall {
                target: self.target(callee),
            },
            (BlockEnd::Dispatch, Some(edge)) if cfg.edges[edge].kind != EdgeKind::Unwind => {
                PathEnd::Return
            }
            (BlockEnd::Throw | BlockEnd::Dispatch, _) => PathEnd::Throw,
            (BlockEnd::Unreachable, _) | (_, None) => PathEnd::Stop,
            _ => PathEnd::Return,
        })
    }

    /// Returns the blocks of the path that was walked last.
    pub(super) fn walked(&self) -> &[BlockId] {
        &self.blocks
    }

    fn target(&self, callee: Callee) -> Target {
        match callee {
            Callee::Direct(function) => match self.defined(function) {
                Some(function) => Target::Defined(function),
                None => Target::Import(function),
            },
            Callee::Indirect { ty, .. } => Target::Table(ty),
        }
    }

    /// Returns the table of a function, created when the function is first entered.
    #[inline]
    fn function(&mut self, function: u32) -> &mut Function {
        let position = function as usize;
        let (program, plan) = (self.program, self.plan);
        self.functions[position].get_or_insert_with(|| {
            let numbering = &plan.functions[position];
            let cfg = &program.functions[position].cfg;
            let mut of_block = vec![NOWHERE; cfg.graph.vertex_count()];
            let starts: Vec<Start> = numbering
                .starts()
                .enumerate()
                .map(|(i, (block, width))| {
                    of_block[block.index()] = i as u32;
                    Start {
                        block,
                        width,
                        place: UNKNOWN_PLACE,
                        dense: Vec::new(),
                        sparse: std::collections::HashMap::new(),
                    }
                })
                .collect();
            let root = of_block[cfg.graph.root().index()];
            let search = DepthFirst::compute(&cfg.graph);
            Box::new(Function {
                starts,
                of_block,
                root,
                entry: plan.entry_ids.of(program.functions[position].id),
                loops: LoopForest::compute(&cfg.graph, &search),
            })
        })
    }
}
