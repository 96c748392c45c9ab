//! Regenerates a run's path from the tokens that it wrote.

mod calls;
mod error;
mod finish;
mod streams;

use std::collections::VecDeque;

use afterimage_ids::{BlockId, EdgeId, EntityRef, FuncId};
use afterimage_program::{Cfg, Program};

use super::plan::number;
use super::tables::{Leads, Step, Table, Target};
use super::{Token, WitnessPlan};
pub use error::WitnessError;
pub use streams::{PathSink, TokenReader};

/// The maximum number of open activations.
const DEEPEST: usize = 1 << 26;

/// An activation.
#[derive(Clone, Copy, Debug)]
struct Activation {
    /// The defined function, by its index.
    function: u32,
    /// The vertex that the activation has reached.
    at: BlockId,
    /// A token that has been read for a branch before the path reaches the token's edge. This is
    /// `wit` of Ball and Larus 1992, Figure 7.
    pending: Option<u32>,
}

/// The next action of the innermost activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The activation executes its current vertex.
    Arrives,
    /// The call at the activation's current vertex has returned, or thrown an exception.
    Returned { thrown: bool },
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The step wrote nothing.
    Silent,
    /// The event of the last token has happened.
    Read,
}

/// Regenerates the path of a run from its tokens, piece by piece. This is `regenerate` of Ball and
/// Larus 1992, Figure 7, with a stack (section 4.2) and tables. Time: O(1) for every sequence of
/// blocks without a decision.
#[derive(Debug)]
pub struct Regenerator<'a> {
    program: &'a Program,
    plan: &'a WitnessPlan,
    /// The table of each defined function, created when the function is first entered.
    tables: Vec<Option<Box<Table>>>,
    stack: Vec<Activation>,
    phase: Phase,
    /// Calls by the host that have not begun yet.
    host_calls: VecDeque<FuncId>,
    /// The number of activations open when the last token was read.
    depth_at_token: usize,
}

impl<'a> Regenerator<'a> {
    /// Creates a regenerator positioned before the first block.
    pub fn new(program: &'a Program, plan: &'a WitnessPlan) -> Self {
        Self {
            program,
            plan,
            tables: program.functions.iter().map(|_| None).collect(),
            stack: Vec::new(),
            phase: Phase::Arrives,
            host_calls: VecDeque::new(),
            depth_at_token: 0,
        }
    }

    /// Adds a call by the host to a function. The call begins when all earlier calls have ended.
    pub fn host_call(&mut self, function: FuncId) {
        self.host_calls.push_back(function);
    }

    /// Returns the functions whose activations are open, outermost first.
    pub fn open(&self) -> impl Iterator<Item = FuncId> + '_ {
        let program = self.program;
        let open = self.stack.iter();
        open.map(|a| program.functions[a.function as usize].id)
    }

    /// Reports the path as far as the available tokens determine it, up to the event of the last
    /// token.
    ///
    /// # Errors
    /// Returns an error if the tokens do not continue the run. The regenerator is unusable
    /// afterwards.
    pub fn advance<R: TokenReader, S: PathSink>(
        &mut self,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<(), WitnessError> {
        while !reader.is_empty() {
            self.depth_at_token = self.stack.len();
            // A token is left, so everything before the next token has happened.
            while self.step(reader, sink)? == Progress::Silent {}
        }
        Ok(())
    }

    /// Returns the innermost activation, and its function's table.
    #[inline]
    fn top(&mut self) -> Option<(&mut Activation, &mut Table, &'a Cfg)> {
        let top = self.stack.last_mut()?;
        let function = top.function as usize;
        let table = self.tables[function].as_deref_mut()?;
        Some((top, table, &self.program.functions[function].cfg))
    }

    /// Processes everything up to and including the next decision.
    #[inline]
    fn step<R: TokenReader, S: PathSink>(
        &mut self,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        if let (Phase::Returned { thrown }, false) = (self.phase, self.stack.is_empty()) {
            return self.go_on(thrown, reader, sink);
        }
        if self.stack.is_empty() {
            let function = self.host_calls.pop_front().ok_or(WitnessError::Late)?;
            return self.call_by_host(function, reader, sink);
        }
        if self.go_within(reader, sink) {
            Ok(Progress::Read)
        } else {
            self.end_of_vertex(reader, sink)
        }
    }

    /// Follows the innermost activation while it stays in its function. This is the tight loop that
    /// takes most of the time. Returns `true` if it stopped because no token is left. Returns
    /// `false` if it stopped at a vertex whose end, such as a call or an error, needs other
    /// treatment.
    #[inline]
    fn go_within<R: TokenReader, S: PathSink>(&mut self, reader: &mut R, sink: &mut S) -> bool {
        let depth = self.stack.len();
        let Some(top) = self.stack.last_mut() else {
            return false;
        };
        let function = top.function as usize;
        let Some(table) = self.tables[function].as_deref_mut() else {
            return false;
        };
        let cfg = &self.program.functions[function].cfg;
        loop {
            let (blocks, last) = table.run(top.at);
            if !blocks.is_empty() {
                sink.blocks(blocks);
            }
            top.at = last;
            let edge = match table.step(last) {
                Step::Next(edge) => Some(edge),
                Step::Branch(Some(code)) => {
                    top.pending = top.pending.or_else(|| table.read(code, reader));
                    let token = top.pending;
                    token.and_then(|token| table.decide(cfg, last, (code, token)))
                }
                _ => None,
            };
            let Some(way) = edge.map(|e| table.way(e)).filter(|w| w.leads == Leads::On) else {
                return false;
            };
            if let Some((code, token)) = way.token {
                top.pending = top.pending.or_else(|| table.read(code, reader));
                if top.pending != Some(token) {
                    return false;
                }
                top.pending = None;
                self.depth_at_token = depth;
                if reader.is_empty() {
                    top.at = way.to;
                    return true;
                }
            }
            top.at = way.to;
        }
    }

    /// Handles the end of the innermost activation's current vertex.
    #[inline]
    fn end_of_vertex<R: TokenReader, S: PathSink>(
        &mut self,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let program = self.program;
        let Some((top, table, cfg)) = self.top() else {
            return Err(WitnessError::Late);
        };
        match table.step(top.at) {
            Step::Next(edge) => self.cross(edge, reader, sink),
            Step::Branch(Some(code)) => {
                let Some(token) = top.pending.or_else(|| table.read(code, reader)) else {
                    return Err(self.no_token(reader));
                };
                top.pending = Some(token);
                match table.decide(cfg, top.at, (code, token)) {
                    Some(edge) => self.cross(edge, reader, sink),
                    None => Err(self.no_way()),
                }
            }
            Step::Call { target, .. } => self.call(target, reader, sink),
            Step::TailCall(target) => {
                let caller = program.functions[top.function as usize].id;
                self.leave(false, sink);
                self.follow_tail_call(target, caller, reader, sink)
            }
            Step::Branch(None) | Step::Stop => Err(WitnessError::Late),
        }
    }

    /// Passes over an edge.
    #[inline]
    fn cross<R: TokenReader, S: PathSink>(
        &mut self,
        edge: EdgeId,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let Some((top, table, _)) = self.top() else {
            return Err(WitnessError::Late);
        };
        let way = table.way(edge);
        let mut progress = Progress::Silent;
        if let Some((code, token)) = way.token {
            let pending = top.pending.take();
            let Some(found) = pending.or_else(|| table.read(code, reader)) else {
                return Err(self.no_token(reader));
            };
            if found != token {
                return Err(self.no_way());
            }
            progress = Progress::Read;
        }
        match way.leads {
            Leads::On => {
                top.at = way.to;
                self.phase = Phase::Arrives;
            }
            leads => self.leave(leads == Leads::Throws, sink),
        }
        Ok(progress)
    }

    fn innermost(&self) -> FuncId {
        let function = self.stack.last().map_or(0, |a| a.function);
        self.program.functions[function as usize].id
    }

    #[cold]
    fn no_way(&self) -> WitnessError {
        WitnessError::NoWay {
            function: self.innermost(),
            block: self.stack.last().map_or(BlockId::new(0), |a| a.at),
        }
    }

    /// Returns the error for bits that are not a token, or for the lack of bits.
    #[cold]
    fn no_token<R: TokenReader>(&self, reader: &R) -> WitnessError {
        if reader.is_empty() {
            WitnessError::Early(self.innermost())
        } else {
            self.no_way()
        }
    }
}
