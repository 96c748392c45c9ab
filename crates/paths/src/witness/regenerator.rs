//! From the tokens that a run wrote back to its path.

mod finish;

use std::collections::VecDeque;

use afterimage_ids::{BlockId, EdgeId, EntityRef, FuncId};
use afterimage_program::{Cfg, Program};

use super::plan::number;
use super::tables::{Leads, Step, Table, Target};
use super::{Token, WitnessPlan};

/// The bits of the tokens that a run wrote, one after the other, each with its most significant bit first.
pub trait TokenReader {
    /// The next so many bits (1 to 32), without taking them: zeros follow the last.
    fn peek(&mut self, width: u8) -> u32;

    /// Takes so many bits; false if there are not so many left, or no token ends there.
    fn take(&mut self, width: u8) -> bool;

    /// Whether no bit is left: at the end of what has been recorded so far or of the run.
    fn is_empty(&self) -> bool;
}

/// Who is told of the path, in the order of execution.
pub trait PathSink {
    /// An activation of a function begins.
    fn enter(&mut self, function: FuncId);
    /// The innermost activation executes these blocks, one after the other. Dispatch vertices and EXIT are not among them.
    fn blocks(&mut self, blocks: &[BlockId]);
    /// The innermost activation ends: it returns, an exception leaves it, or a tail call replaces it.
    fn leave(&mut self);
}

/// Why the tokens do not make a run of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WitnessError {
    /// A token that cannot come there.
    #[error("no path of {function} from {block} writes what comes next")]
    NoWay {
        /// The function.
        function: FuncId,
        /// Where control was.
        block: BlockId,
    },
    /// The function that was entered is not the one that was called.
    #[error("a call of {called} reached another function")]
    OtherCallee {
        /// The function that the call names.
        called: FuncId,
    },
    /// A call through a table reached a function that is not there.
    #[error("a call through a table in {0} reached no function of its type")]
    NoSuchCallee(FuncId),
    /// An exception arrived where none can, or a call returned that cannot.
    #[error("a call in {function} at {block} does not go on like that")]
    NoSuchReturn {
        /// The function.
        function: FuncId,
        /// The block that calls.
        block: BlockId,
    },
    /// The tokens ended and the run goes on.
    #[error("the recorded tokens end before the run does, in {0}")]
    Early(FuncId),
    /// The run ended and tokens are left.
    #[error("the run ended before the recorded tokens did")]
    Late,
    /// The path goes on without ever writing or coming to the end that the recording has.
    #[error("the path does not lead to where the recording ended")]
    Elsewhere,
    /// More activations than can be kept.
    #[error("more than {0} activations are open at once")]
    TooDeep(usize),
}

/// Most activations that may be open at once.
const DEEPEST: usize = 1 << 26;

/// An activation.
#[derive(Clone, Copy, Debug)]
struct Activation {
    /// Which defined function.
    function: u32,
    /// The vertex where it is.
    at: BlockId,
    /// A token that was read for a branch; its edge is still to come: `wit` of Ball and Larus 1992, Figure 7.
    pending: Option<u32>,
}

/// What the innermost activation does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It executes the vertex where it is.
    Arrives,
    /// The call at whose vertex it is has returned, or thrown.
    Returned { thrown: bool },
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It wrote nothing.
    Silent,
    /// What the last token stands for has happened.
    Read,
}

/// Regenerates the path of a run from its tokens, piece by piece: `regenerate` of Ball and Larus 1992, Figure 7, with a
/// stack (section 4.2) and tables. O(1) for every stretch of blocks without a decision.
#[derive(Debug)]
pub struct Regenerator<'a> {
    program: &'a Program,
    plan: &'a WitnessPlan,
    /// By defined function; made when it is first entered.
    tables: Vec<Option<Box<Table>>>,
    stack: Vec<Activation>,
    phase: Phase,
    /// Calls by the host that were not looked at yet.
    host_calls: VecDeque<FuncId>,
    /// How many activations were open when the last token was read.
    depth_at_token: usize,
}

impl<'a> Regenerator<'a> {
    /// Begins before the first block.
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

    /// The host calls a function, when all earlier calls by it have ended.
    pub fn host_call(&mut self, function: FuncId) {
        self.host_calls.push_back(function);
    }

    /// The functions whose activations are open, the outermost first.
    pub fn open(&self) -> impl Iterator<Item = FuncId> + '_ {
        let program = self.program;
        let open = self.stack.iter();
        open.map(|a| program.functions[a.function as usize].id)
    }

    /// Tells the path as far as the tokens there are make it certain: up to what the last of them stands for.
    ///
    /// # Errors
    /// If they do not continue the run. The regenerator is of no use afterwards.
    pub fn advance<R: TokenReader, S: PathSink>(
        &mut self,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<(), WitnessError> {
        while !reader.is_empty() {
            self.depth_at_token = self.stack.len();
            // A token is left, so whatever happens before it is read has happened.
            while self.step(reader, sink)? == Progress::Silent {}
        }
        Ok(())
    }

    /// The innermost activation, and its function's table.
    #[inline]
    fn top(&mut self) -> Option<(&mut Activation, &mut Table, &'a Cfg)> {
        let top = self.stack.last_mut()?;
        let function = top.function as usize;
        let table = self.tables[function].as_deref_mut()?;
        Some((top, table, &self.program.functions[function].cfg))
    }

    /// Everything up to the next decision, and it.
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
        match self.go_within(reader, sink) {
            true => Ok(Progress::Read),
            false => self.end_of_vertex(reader, sink),
        }
    }

    /// Follows the innermost activation for as long as it stays in its function: a tight loop, where the time goes. True if it stopped
    /// because no token is left; false if it has told a vertex at whose end something else happens, an error among it.
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

    /// What happens at the end of the vertex where the innermost activation is.
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

    /// Goes over an edge.
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

    /// A call has returned, or thrown.
    fn go_on<R: TokenReader, S: PathSink>(
        &mut self,
        thrown: bool,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let Some((top, table, _)) = self.top() else {
            return Err(WitnessError::Late);
        };
        let edge = match table.step(top.at) {
            Step::Call { throws, .. } if thrown => throws,
            Step::Call { returns, .. } => returns,
            _ => None,
        };
        match edge {
            Some(edge) => self.cross(edge, reader, sink),
            None => Err(WitnessError::NoSuchReturn {
                block: top.at,
                function: self.innermost(),
            }),
        }
    }

    fn call<R: TokenReader, S: PathSink>(
        &mut self,
        target: Target,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let caller = self.innermost();
        let (callee, progress) = self.callee(target, caller, reader)?;
        match callee {
            Some(callee) => self.enter(callee, progress, reader, sink),
            None => {
                self.phase = Phase::Returned { thrown: false };
                Ok(progress)
            }
        }
    }

    /// What a tail call calls, after the caller has left.
    fn follow_tail_call<R: TokenReader, S: PathSink>(
        &mut self,
        target: Target,
        caller: FuncId,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let (callee, progress) = self.callee(target, caller, reader)?;
        match callee {
            Some(callee) => self.enter(callee, progress, reader, sink),
            // `leave` has said that a call returns.
            None => Ok(progress),
        }
    }

    /// Who is called: `None` for an import, which returns. [`Progress::Read`] if what the callee writes at its entry has been read.
    fn callee<R: TokenReader>(
        &mut self,
        target: Target,
        caller: FuncId,
        reader: &mut R,
    ) -> Result<(Option<u32>, Progress), WitnessError> {
        let imports = self.program.imports.len();
        match target {
            Target::Defined(position) => Ok((Some(position), Progress::Silent)),
            Target::Import(import) => {
                let token = number(self.plan.entry_ids(), import);
                Ok((None, self.expect(import, token, reader)?))
            }
            Target::Table(ty) => {
                let ids = self.plan.entry_ids();
                let width = ids.width(ty);
                let (value, progress) = match width {
                    0 => (0, Progress::Silent),
                    _ => (
                        read(reader, width).ok_or(WitnessError::Early(caller))?,
                        Progress::Read,
                    ),
                };
                let callee = ids.function(ty, value);
                let callee = callee.ok_or(WitnessError::NoSuchCallee(caller))?;
                let position = callee.index().checked_sub(imports);
                Ok((position.map(|p| p as u32), progress))
            }
        }
    }

    fn call_by_host<R: TokenReader, S: PathSink>(
        &mut self,
        function: FuncId,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let position = function.index().checked_sub(self.program.imports.len());
        match position.filter(|&p| p < self.tables.len()) {
            Some(position) => self.enter(position as u32, Progress::Silent, reader, sink),
            // An import that is exported: the host called itself.
            None => Ok(Progress::Silent),
        }
    }

    /// Reads what a function writes at its entry.
    fn expect<R: TokenReader>(
        &self,
        function: FuncId,
        token: Option<Token>,
        reader: &mut R,
    ) -> Result<Progress, WitnessError> {
        let Some(token) = token else {
            return Ok(Progress::Silent);
        };
        match read(reader, token.width) {
            Some(value) if value == token.value => Ok(Progress::Read),
            Some(_) => Err(WitnessError::OtherCallee { called: function }),
            None => Err(WitnessError::Early(function)),
        }
    }

    /// A function is entered. `number` says whether its number has been read.
    #[inline]
    fn enter<R: TokenReader, S: PathSink>(
        &mut self,
        position: u32,
        number: Progress,
        reader: &mut R,
        sink: &mut S,
    ) -> Result<Progress, WitnessError> {
        let function = &self.program.functions[position as usize];
        let witnesses = &self.plan.functions()[position as usize];
        let progress = match number {
            Progress::Read => Progress::Read,
            Progress::Silent => self.expect(function.id, witnesses.entry(), reader)?,
        };
        if self.stack.len() >= DEEPEST {
            return Err(WitnessError::TooDeep(DEEPEST));
        }
        self.tables[position as usize]
            .get_or_insert_with(|| Box::new(Table::new(self.program, &function.cfg, witnesses)));
        sink.enter(function.id);
        self.stack.push(Activation {
            function: position,
            at: function.cfg.graph.root(),
            pending: None,
        });
        self.phase = Phase::Arrives;
        // Of more silent activations inside each other than there are functions two are of one function, which calls itself
        // for ever.
        if !reader.is_empty() && self.stack.len() > self.depth_at_token + self.tables.len() {
            return Err(WitnessError::Late);
        }
        Ok(progress)
    }

    /// The innermost activation ends.
    #[inline]
    fn leave<S: PathSink>(&mut self, thrown: bool, sink: &mut S) {
        self.stack.pop();
        sink.leave();
        self.phase = Phase::Returned { thrown };
        self.depth_at_token = self.depth_at_token.min(self.stack.len());
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

    /// The next bits are no token, or there are none.
    #[cold]
    fn no_token<R: TokenReader>(&self, reader: &R) -> WitnessError {
        match reader.is_empty() {
            true => WitnessError::Early(self.innermost()),
            false => self.no_way(),
        }
    }
}

/// The next number of so many bits.
fn read<R: TokenReader>(reader: &mut R, width: u8) -> Option<u32> {
    let number = reader.peek(width);
    reader.take(width).then_some(number)
}
