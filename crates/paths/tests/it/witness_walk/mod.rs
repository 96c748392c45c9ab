//! Executes programs at random. The executions write according to a plan and record their events.

#![allow(
    dead_code,
    reason = "each test file compiles this module for itself and uses a part of it"
)]

use afterimage_ids::{BlockId, Counts, EdgeId, EntityRef, FuncId, FunctionCounts};
use afterimage_paths::witness::{PathSink, Token, TokenReader, WitnessPlan};
use afterimage_paths::{FinalFrame, Finish};
use afterimage_program::{BlockEnd, BlockKind, Callee, Cfg, EdgeKind, Program};

/// An event in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Enter(FuncId),
    Block(BlockId),
    Leave,
}

/// A run and its record.
#[derive(Clone, Debug)]
pub struct Run {
    pub events: Vec<Event>,
    pub tokens: Vec<Token>,
    pub host_calls: Vec<FuncId>,
    /// The edges crossed in all functions, in execution order.
    pub path: Vec<EdgeId>,
    pub finish: Finish,
    /// The number of executed branches.
    pub branches: u64,
    pub counts: Counts,
}

impl Run {
    pub fn blocks(&self) -> usize {
        let blocks = self.events.iter();
        blocks.filter(|e| matches!(e, Event::Block(_))).count()
    }

    pub fn bits(&self) -> u64 {
        self.tokens.iter().map(|t| u64::from(t.width)).sum()
    }
}

/// The part of a run's tokens that has been recorded so far. A token is taken whole or not at all.
pub struct Recorded<'a> {
    pub tokens: &'a [Token],
    pub read: usize,
    pub so_far: usize,
}

impl TokenReader for Recorded<'_> {
    fn peek(&mut self, width: u8) -> u32 {
        let (mut bits, mut free) = (0u64, u32::from(width));
        for token in &self.tokens[self.read..self.so_far] {
            let shift = u32::from(token.width).saturating_sub(free);
            free -= u32::from(token.width) - shift;
            bits |= u64::from(token.value >> shift) << free;
            if free == 0 {
                break;
            }
        }
        bits as u32
    }

    fn take(&mut self, width: u8) -> bool {
        let next = self.tokens[..self.so_far].get(self.read);
        self.read += 1;
        next.is_some_and(|t| t.width == width)
    }

    fn is_empty(&self) -> bool {
        self.read >= self.so_far
    }
}

/// Records the events that it receives.
#[derive(Default)]
pub struct EventLog(pub Vec<Event>);

impl PathSink for EventLog {
    fn enter(&mut self, function: FuncId) {
        self.0.push(Event::Enter(function));
    }

    fn blocks(&mut self, blocks: &[BlockId]) {
        self.0.extend(blocks.iter().map(|&b| Event::Block(b)));
    }

    fn leave(&mut self) {
        self.0.push(Event::Leave);
    }
}

/// The rules of a run. They state how unlikely the run is to end at any block, in an import, and
/// with a stack overflow.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub steps: usize,
    pub ends_one_in: usize,
    pub deepest: usize,
}

/// Executes the program. The host calls functions in sequence. The run ends in the middle of a call
/// when the steps are used up, or between two calls if `steps` says so.
pub fn walk(program: &Program, plan: &WitnessPlan, rules: Rules, seed: u64) -> Run {
    let counts = program.functions.iter().map(|f| FunctionCounts {
        entries: 0,
        edges: vec![0; f.cfg.edges.len()],
        open: Vec::new(),
    });
    let mut walker = Walker {
        program,
        plan,
        rules,
        random: Random(seed | 1),
        stack: Vec::new(),
        run: Run {
            events: Vec::new(),
            tokens: Vec::new(),
            host_calls: Vec::new(),
            path: Vec::new(),
            finish: Finish::Done,
            branches: 0,
            counts: Counts {
                functions: counts.collect(),
            },
        },
    };
    let mut steps = 0;
    let ends_between = walker.random.one_in(2);
    while steps < rules.steps {
        let f = walker.random.below(program.functions.len());
        walker.run.host_calls.push(program.functions[f].id);
        walker.enter(f);
        while let Some(&top) = walker.stack.last() {
            steps += 1;
            let long = !ends_between && steps >= rules.steps || steps > 20 * rules.steps;
            if long || walker.random.one_in(rules.ends_one_in) || !walker.step(top) {
                return walker.end();
            }
        }
    }
    walker.run
}

type Frame = (usize, BlockId);

struct Walker<'a> {
    program: &'a Program,
    plan: &'a WitnessPlan,
    rules: Rules,
    random: Random,
    stack: Vec<Frame>,
    run: Run,
}

impl<'a> Walker<'a> {
    fn cfg(&self, f: usize) -> &'a Cfg {
        &self.program.functions[f].cfg
    }

    fn end(mut self) -> Run {
        let frames = self.stack.iter().map(|&(f, block)| FinalFrame {
            function: self.program.functions[f].id,
            block,
        });
        self.run.finish = Finish::Open(frames.collect());
        self.run
    }

    fn enter(&mut self, f: usize) {
        let root = self.cfg(f).graph.root();
        self.run.counts.functions[f].entries += 1;
        self.run.tokens.extend(self.plan.functions()[f].entry());
        self.run
            .events
            .push(Event::Enter(self.program.functions[f].id));
        self.stack.push((f, root));
        self.arrive();
    }

    /// Records that control arrives at the top frame's vertex, unless it is a dispatch vertex.
    fn arrive(&mut self) {
        let Some(&(f, v)) = self.stack.last() else {
            return;
        };
        if self.cfg(f).blocks[v].kind == BlockKind::Code {
            self.run.events.push(Event::Block(v));
        }
    }

    /// Executes the end of a block and the dispatch vertices after it. Returns false if the run
    /// ends there.
    fn step(&mut self, top: Frame) -> bool {
        if !self.end_of_block(top) {
            return false;
        }
        while let Some(&(f, v)) = self.stack.last() {
            if self.cfg(f).blocks[v].kind == BlockKind::Code {
                break;
            }
            if !self.end_of_block((f, v)) {
                return false;
            }
        }
        true
    }

    fn end_of_block(&mut self, (f, v): Frame) -> bool {
        let cfg = self.cfg(f);
        match cfg.blocks[v].end {
            BlockEnd::Call(callee) => match self.resolve(callee) {
                None => false,
                Some(callee) => match callee.index().checked_sub(self.program.imports.len()) {
                    None => self.import(callee) && self.resume(false),
                    Some(_) if self.overflows() => false,
                    Some(g) => {
                        self.enter(g);
                        true
                    }
                },
            },
            BlockEnd::TailCall(callee) => {
                let Some(callee) = self.resolve(callee) else {
                    return false;
                };
                self.run.counts.functions[f].edges[cfg.graph.out_edges(v)[0].index()] += 1;
                self.run.events.push(Event::Leave);
                self.stack.pop();
                match callee.index().checked_sub(self.program.imports.len()) {
                    None => self.import(callee) && self.resume(false),
                    Some(_) if self.overflows() => false,
                    Some(g) => {
                        self.enter(g);
                        true
                    }
                }
            }
            _ => {
                let out = cfg.graph.out_edges(v);
                if out.is_empty() {
                    return false;
                }
                self.run.branches += u64::from(out.len() > 1);
                let e = out[self.random.below(out.len())];
                self.cross(f, e)
            }
        }
    }

    /// Crosses an edge. Returns false if this would throw an exception for which a caller has no
    /// edge. The run then ends before the edge.
    fn cross(&mut self, f: usize, e: EdgeId) -> bool {
        let cfg = self.cfg(f);
        let edge = &cfg.edges[e];
        let leaves = edge.to == cfg.graph.exit();
        let thrown = leaves
            && matches!(
                edge.kind,
                EdgeKind::Unwind | EdgeKind::CallThrow | EdgeKind::Throw
            );
        if edge.kind == EdgeKind::Throw && thrown && !self.may_leave_by_exception() {
            return false;
        }
        self.run.counts.functions[f].edges[e.index()] += 1;
        self.run.path.push(e);
        let witnesses = self.plan.functions()[f].edges();
        if let Ok(i) = witnesses.binary_search_by_key(&e, |w| w.0) {
            self.run.tokens.push(witnesses[i].1);
        }
        if leaves {
            self.run.events.push(Event::Leave);
            self.stack.pop();
            return self.resume(thrown);
        }
        if let Some(top) = self.stack.last_mut() {
            top.1 = edge.to;
        }
        self.arrive();
        true
    }

    /// Whether every caller, up to the first that catches, has an edge for an exception. In
    /// programs parsed from bytes, this is always so.
    fn may_leave_by_exception(&self) -> bool {
        let callers = self.stack.iter().rev().skip(1);
        for &(f, v) in callers {
            match self.continuation(f, v, true) {
                None => return false,
                Some(e) if self.cfg(f).edges[e].to != self.cfg(f).graph.exit() => return true,
                Some(_) => {}
            }
        }
        true
    }

    fn continuation(&self, f: usize, v: BlockId, thrown: bool) -> Option<EdgeId> {
        let cfg = self.cfg(f);
        let wanted = if thrown {
            EdgeKind::CallThrow
        } else {
            EdgeKind::CallReturn
        };
        let mut out = cfg.graph.out_edges(v).iter().copied();
        out.find(|&e| cfg.edges[e].kind == wanted)
    }

    /// Continues after the call of the top frame has returned or thrown.
    fn resume(&mut self, thrown: bool) -> bool {
        let Some(&(f, v)) = self.stack.last() else {
            return true;
        };
        match self.continuation(f, v, thrown) {
            Some(e) => self.cross(f, e),
            None => false,
        }
    }

    fn overflows(&mut self) -> bool {
        self.stack.len() >= self.rules.deepest
            || self
                .random
                .one_in(self.rules.ends_one_in.saturating_mul(10))
    }

    /// Calls an import. Returns false if the run ends in it.
    fn import(&mut self, import: FuncId) -> bool {
        if let Some((value, width)) = self.plan.entry_ids().of(import)
            && width > 0
        {
            self.run.tokens.push(Token { value, width });
        }
        !self.random.one_in(self.rules.ends_one_in)
    }

    fn resolve(&mut self, callee: Callee) -> Option<FuncId> {
        let ty = match callee {
            Callee::Direct(f) => return Some(f),
            Callee::Indirect { ty, .. } => &self.program.types[ty],
        };
        let imports = self.program.imports.iter().map(|i| i.ty);
        let types = imports.chain(self.program.functions.iter().map(|f| f.ty));
        let fits = types.enumerate().filter(|(f, t)| {
            self.program.address_taken.contains(FuncId::new(*f)) && self.program.types[*t] == *ty
        });
        let fits: Vec<usize> = fits.map(|(f, _)| f).collect();
        if fits.is_empty() || self.random.one_in(self.rules.ends_one_in) {
            return None;
        }
        Some(FuncId::new(fits[self.random.below(fits.len())]))
    }
}

/// A xorshift generator (Marsaglia 2003).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}
