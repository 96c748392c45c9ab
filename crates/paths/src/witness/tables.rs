//! Represents a function in the form that the decoder uses.

mod decide;
mod runs;

use std::collections::{BTreeMap, HashMap};

use afterimage_ids::{BlockId, EdgeId, EntityRef, FuncId, TypeId};
use afterimage_program::{BlockEnd, Callee, Cfg, EdgeKind, Program};

use super::code::Code;
use super::{FunctionWitnesses, Token, TokenReader};

/// The facts about an edge that the decoder needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub to: BlockId,
    /// The code of the edge's token, and the token's rank in it.
    pub token: Option<Coded>,
    pub leads: Leads,
}

/// The destination of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    On,
    /// The edge leads to EXIT by a return.
    Returns,
    /// The edge leads to EXIT by an exception.
    Throws,
}

/// The way in which control continues at the end of a vertex.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Control can follow only this edge.
    Next(EdgeId),
    /// A token of this code selects the edge. If there is no code, every edge leads to the end of
    /// the run.
    Branch(Option<u32>),
    Call {
        target: Target,
        returns: Option<EdgeId>,
        throws: Option<EdgeId>,
    },
    TailCall(Target),
    /// Nothing follows.
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

/// The blocks from a vertex on, as long as control can follow only one edge, which is silent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    start: u32,
    length: u32,
    /// The last vertex. After it, control needs a decision or an event, or another run begins.
    pub last: BlockId,
}

/// Tokens with a rank below this are looked up in a list, and other tokens in a map.
const DENSE: u32 = 1 << 8;

/// Marks an edge that has not been looked up yet.
const UNKNOWN: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Table {
    ways: Vec<Way>,
    codes: Vec<Code>,
    steps: Vec<Step>,
    runs: Vec<Run>,
    /// The blocks of the runs. Runs with the same end share blocks.
    blocks: Vec<BlockId>,
    /// The edge to take, by branch and rank of the token.
    dense: Vec<Vec<u32>>,
    /// The edge to take, for ranks from [`DENSE`] on.
    sparse: HashMap<(BlockId, u32), EdgeId>,
    /// The edges that write each token, except edges whose backward walk is complete.
    writers: HashMap<Coded, Vec<EdgeId>>,
    /// For each vertex, the last walk that reached it.
    walked: Vec<u32>,
    walks: u32,
}

impl Table {
    /// Builds the table of a function. Time: O(V + E).
    pub(super) fn new(program: &Program, cfg: &Cfg, witnesses: &FunctionWitnesses) -> Self {
        let (codes, tokens) = codes(cfg, witnesses);
        let ways: Vec<Way> = cfg
            .edges
            .iter()
            .map(|(e, edge)| Way {
                to: edge.to,
                token: tokens[e.index()],
                leads: match edge.kind {
                    _ if edge.to != cfg.graph.exit() => Leads::On,
                    EdgeKind::Unwind | EdgeKind::CallThrow | EdgeKind::Throw => Leads::Throws,
                    _ => Leads::Returns,
                },
            })
            .collect();
        let codes_at = codes_at(cfg, &ways);
        let steps: Vec<Step> = cfg
            .blocks
            .keys()
            .map(|v| step(program, cfg, v, &codes_at))
            .collect();
        let mut writers: HashMap<Coded, Vec<EdgeId>> = HashMap::new();
        for (e, way) in cfg.edges.keys().zip(&ways) {
            if let Some(coded) = way.token {
                writers.entry(coded).or_default().push(e);
            }
        }
        let mut this = Self {
            ways,
            codes,
            steps,
            runs: Vec::new(),
            blocks: Vec::new(),
            dense: vec![Vec::new(); cfg.blocks.len()],
            sparse: HashMap::new(),
            writers,
            walked: vec![0; cfg.blocks.len()],
            walks: 0,
        };
        this.lay_runs(cfg);
        this
    }

    #[inline]
    pub(super) fn way(&self, edge: EdgeId) -> Way {
        self.ways[edge.index()]
    }

    /// Returns the rank of the next token of a code, or `None` if the next bits are not a token of
    /// this code.
    #[inline]
    pub(super) fn read<R: TokenReader>(&self, code: u32, reader: &mut R) -> Option<u32> {
        self.codes[code as usize].read(reader)
    }

    #[inline]
    pub(super) fn step(&self, v: BlockId) -> Step {
        self.steps[v.index()]
    }

    /// Returns the blocks that are executed from a vertex on without any decision, and the vertex
    /// where they end.
    #[inline]
    pub(super) fn run(&self, v: BlockId) -> (&[BlockId], BlockId) {
        let run = self.runs[v.index()];
        let start = run.start as usize;
        (&self.blocks[start..start + run.length as usize], run.last)
    }
}

/// A code and the rank of a token in it.
pub(super) type Coded = (u32, u32);

/// Returns the codes of a function, one per group, and for each edge the code and the rank of its
/// token.
fn codes(cfg: &Cfg, witnesses: &FunctionWitnesses) -> (Vec<Code>, Vec<Option<Coded>>) {
    let mut groups: BTreeMap<u32, Vec<Token>> = BTreeMap::new();
    for (_, token, group) in witnesses.coded() {
        groups.entry(group).or_default().push(token);
    }
    let numbers: BTreeMap<u32, u32> = groups.keys().copied().zip(0..).collect();
    let codes: Vec<Code> = groups.into_values().map(Code::new).collect();
    let mut tokens = vec![None; cfg.edges.len()];
    for (e, token, group) in witnesses.coded() {
        let code = numbers[&group];
        tokens[e.index()] = codes[code as usize].rank(token).map(|rank| (code, rank));
    }
    (codes, tokens)
}

/// Returns, for each vertex, the code of the tokens that silent paths from it reach. These tokens
/// all belong to one code.
fn codes_at(cfg: &Cfg, ways: &[Way]) -> Vec<Option<u32>> {
    let graph = &cfg.graph;
    let mut codes = vec![None; graph.vertex_count()];
    let mut stack = Vec::new();
    for e in graph.edges() {
        let Some((code, _)) = ways[e.index()].token else {
            continue;
        };
        stack.push(graph.from(e));
        while let Some(v) = stack.pop() {
            if codes[v.index()].replace(code).is_none() {
                let edges = graph.in_edges(v).iter();
                let silent = edges.filter(|e| ways[e.index()].token.is_none());
                stack.extend(silent.map(|&e| graph.from(e)));
            }
        }
    }
    codes
}

fn step(program: &Program, cfg: &Cfg, v: BlockId, codes_at: &[Option<u32>]) -> Step {
    let ways = cfg.graph.out_edges(v);
    let of_kind = |kind| ways.iter().copied().find(|&e| cfg.edges[e].kind == kind);
    match (cfg.blocks[v].end, ways) {
        (BlockEnd::Call(callee), _) => Step::Call {
            target: target(program, callee),
            returns: of_kind(EdgeKind::CallReturn),
            throws: of_kind(EdgeKind::CallThrow),
        },
        (BlockEnd::TailCall(callee), _) => Step::TailCall(target(program, callee)),
        (_, []) => Step::Stop,
        (_, [only]) => Step::Next(*only),
        _ => Step::Branch(codes_at[v.index()]),
    }
}

fn target(program: &Program, callee: Callee) -> Target {
    match callee {
        Callee::Direct(function) => match function.index().checked_sub(program.imports.len()) {
            Some(position) => Target::Defined(position as u32),
            None => Target::Import(function),
        },
        Callee::Indirect { ty, .. } => Target::Table(ty),
    }
}
