//! One function as the decoder sees it.

use std::collections::{BTreeMap, HashMap, HashSet};

use afterimage_ids::{BlockId, EdgeId, EntityRef, FuncId, TypeId};
use afterimage_program::{BlockEnd, BlockKind, Callee, Cfg, EdgeKind, Program};

use super::code::Code;
use super::{FunctionWitnesses, Token, TokenReader};

/// An edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub to: BlockId,
    /// The code of what it writes, and the token's rank there.
    pub token: Option<Coded>,
    pub leads: Leads,
}

/// Where an edge leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    On,
    /// To EXIT, returning.
    Returns,
    /// To EXIT, by an exception.
    Throws,
}

/// What happens at the end of a vertex.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Only one way leads on.
    Next(EdgeId),
    /// A token of this code tells which way. `None`: every way leads to the end of the run.
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

/// Who is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// A defined function, by its position.
    Defined(u32),
    Import(FuncId),
    Table(TypeId),
}

/// Where control goes from a vertex as long as there is only one silent way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    start: u32,
    length: u32,
    /// The last vertex, at whose end something else happens or another run begins.
    pub last: BlockId,
}

/// Tokens of a rank below this are looked up in a list, others in a map.
const DENSE: u32 = 1 << 8;

/// Not looked up yet.
const UNKNOWN: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Table {
    ways: Vec<Way>,
    codes: Vec<Code>,
    steps: Vec<Step>,
    runs: Vec<Run>,
    /// The code of the runs. Runs that end alike share their ends.
    blocks: Vec<BlockId>,
    /// By branch and rank of a token: the edge to take.
    dense: Vec<Vec<u32>>,
    /// The same for ranks from [`DENSE`] on.
    sparse: HashMap<(BlockId, u32), EdgeId>,
    /// By token: the edges that write it, without those that have been walked back from wholly.
    writers: HashMap<Coded, Vec<EdgeId>>,
    /// By vertex: the last walk that came there.
    walked: Vec<u32>,
    walks: u32,
}

impl Table {
    /// O(V + E).
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

    /// The rank of the next token of a code; `None` if the next bits are no such token.
    #[inline]
    pub(super) fn read<R: TokenReader>(&self, code: u32, reader: &mut R) -> Option<u32> {
        self.codes[code as usize].read(reader)
    }

    #[inline]
    pub(super) fn step(&self, v: BlockId) -> Step {
        self.steps[v.index()]
    }

    /// The code that is executed from a vertex on without any decision, and the vertex where that ends.
    #[inline]
    pub(super) fn run(&self, v: BlockId) -> (&[BlockId], BlockId) {
        let run = self.runs[v.index()];
        let start = run.start as usize;
        (&self.blocks[start..start + run.length as usize], run.last)
    }

    /// The edge to take from a branch when this token comes next; `None` if it cannot.
    #[inline]
    pub(super) fn decide(&mut self, cfg: &Cfg, v: BlockId, coded: Coded) -> Option<EdgeId> {
        match self.dense[v.index()].get(coded.1 as usize) {
            Some(&edge) if edge != UNKNOWN => Some(EdgeId::from_u32(edge)),
            _ => self.look_up(cfg, v, coded),
        }
    }

    /// Walks back from the edges that write the token to branches that see them, until this branch is found to be one of them.
    ///
    /// Where several edges write the same, the walks are short in all (see [`colours`](super::colours)), and each is done once and
    /// whole. Where it is only one, it goes twice as far as it must, so that all walks for a token take linear time together.
    #[cold]
    fn look_up(&mut self, cfg: &Cfg, v: BlockId, coded: Coded) -> Option<EdgeId> {
        let rank = coded.1;
        loop {
            match self.dense[v.index()].get(rank as usize) {
                Some(&edge) if edge != UNKNOWN => return Some(EdgeId::from_u32(edge)),
                _ => {}
            }
            if let Some(&edge) = self.sparse.get(&(v, rank)) {
                return Some(edge);
            }
            let writers = self.writers.get_mut(&coded)?;
            match writers[..] {
                [only] => {
                    if !self.walk_back(cfg, only, rank, Some(v)) {
                        return None;
                    }
                }
                _ => {
                    let writer = writers.pop()?;
                    self.walk_back(cfg, writer, rank, None);
                }
            }
        }
    }

    /// Notes for branches that see this edge by which way: for all, or for twice as many as it takes to find one. False if that
    /// one does not see it. No branch sees a call that writes, so walking back beyond one meets none.
    fn walk_back(&mut self, cfg: &Cfg, writer: EdgeId, rank: u32, wanted: Option<BlockId>) -> bool {
        self.walks += 1;
        let mut queue = vec![writer];
        let mut next = 0;
        let mut limit = usize::MAX;
        while next < queue.len().min(limit) {
            let e = queue[next];
            next += 1;
            let v = cfg.graph.from(e);
            if std::mem::replace(&mut self.walked[v.index()], self.walks) == self.walks {
                continue;
            }
            if let Step::Branch(_) = self.step(v) {
                self.note(v, rank, e);
            }
            if wanted == Some(v) {
                limit = 2 * next;
            }
            let before = cfg.graph.in_edges(v).iter().copied();
            let silent = before.filter(|&e| self.way(e).token.is_none());
            queue.extend(silent.take(limit - queue.len().min(limit)));
        }
        limit < usize::MAX
    }

    fn note(&mut self, v: BlockId, rank: u32, edge: EdgeId) {
        if rank >= DENSE {
            self.sparse.insert((v, rank), edge);
            return;
        }
        let row = &mut self.dense[v.index()];
        if row.len() <= rank as usize {
            row.resize(rank as usize + 1, UNKNOWN);
        }
        row[rank as usize] = edge.as_u32();
    }

    /// The edge to take from a branch from where the run ends in `end` without writing anything more. O(what it sees).
    pub(super) fn lead_to(&self, cfg: &Cfg, v: BlockId, end: BlockId) -> Option<EdgeId> {
        let mut stack = Vec::new();
        let mut seen = HashSet::new();
        cfg.graph.out_edges(v).iter().copied().find(|&first| {
            stack.push(first);
            while let Some(e) = stack.pop() {
                let way = self.way(e);
                if way.token.is_none() && seen.insert(way.to) {
                    if way.to == end {
                        return true;
                    }
                    stack.extend(cfg.graph.out_edges(way.to));
                }
            }
            false
        })
    }

    /// Lays the runs into `blocks`, each vertex right before the one that follows it where that is still free.
    fn lay_runs(&mut self, cfg: &Cfg) {
        let n = cfg.blocks.len();
        let is_code = |v: BlockId| cfg.blocks[v].kind == BlockKind::Code;
        // What follows silently and is code as well.
        let next: Vec<Option<BlockId>> = cfg
            .blocks
            .keys()
            .map(|v| match self.steps[v.index()] {
                Step::Next(e) if is_code(v) => {
                    let way = self.way(e);
                    (way.token.is_none() && is_code(way.to)).then_some(way.to)
                }
                _ => None,
            })
            .collect();
        let mut previous = vec![None; n];
        for (v, next) in next.iter().enumerate() {
            if let Some(next) = next {
                previous[next.index()] = Some(BlockId::new(v));
            }
        }
        let follows = |v: BlockId| next[v.index()].filter(|w| previous[w.index()] == Some(v));
        self.runs = cfg
            .blocks
            .keys()
            .map(|v| Run {
                start: 0,
                length: 0,
                last: v,
            })
            .collect();
        let mut path = Vec::new();
        for last in cfg
            .blocks
            .keys()
            .filter(|&v| is_code(v) && follows(v).is_none())
        {
            path.clear();
            let mut at = Some(last);
            while let Some(v) = at {
                path.push(v);
                at = previous[v.index()].filter(|&p| follows(p) == Some(v));
            }
            let end = self.blocks.len() + path.len();
            for (i, &v) in path.iter().enumerate() {
                let length = i + 1;
                self.runs[v.index()] = Run {
                    start: (end - length) as u32,
                    length: length as u32,
                    last,
                };
            }
            self.blocks.extend(path.iter().rev());
        }
    }
}

/// A code and the rank of a token in it.
pub(super) type Coded = (u32, u32);

/// The codes of a function, one per group, and by edge the code and the rank of its token.
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

/// By vertex: the code of the tokens that it sees. They are all of one code.
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
