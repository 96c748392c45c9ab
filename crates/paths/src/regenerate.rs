//! Regenerates the paths of a run from the bits that it wrote.
//!
//! A table for each function contains the path for each start and number, and how the path ends.
//! The regenerator keeps the activations on a stack, because a callee's paths come between its
//! caller's paths.

mod bits;
mod boundary;
mod count;
mod end;
mod lookup;
mod null_sink;
mod stack;
mod tables;
mod waypoint;

use std::collections::VecDeque;

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId};
use afterimage_program::Program;

use crate::PathPlan;
use bits::Bits;
pub use boundary::Boundary;
pub use count::{Counter, Tally};
pub use end::{FinalFrame, Finish};
use lookup::UNKNOWN_PLACE;
pub use null_sink::NullSink;
use stack::{Activation, LEAVES, NOWHERE};
use tables::{PathEnd, Tables, Target};
pub use waypoint::Waypoint;

/// Receives the paths in the order of execution.
pub trait Sink {
    /// Defines a path that has not been executed before. Returns its node.
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId;
    /// Reports that a path was executed.
    fn path(&mut self, node: NodeId);
    /// Reports that an activation of a function begins.
    fn enter(&mut self, function: FuncId);
    /// Reports that the innermost activation ends.
    fn leave(&mut self);
}

/// The blocks of a path, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutedPath<'a> {
    /// The function to which the blocks belong.
    pub function: FuncId,
    /// The blocks, in the order of execution.
    pub blocks: &'a [BlockId],
    /// The headers of the loops around the first block, outermost first.
    pub loops: &'a [BlockId],
    /// Whether the first block is the last of these headers.
    pub header: bool,
    /// The vertex where the activation continues, or `None` if the activation ends. If the path
    /// ends with a call, this is the vertex after the call.
    pub next: Option<BlockId>,
    /// Whether the path ends with a call.
    pub calls: bool,
}

/// The reason why the bits do not describe a run of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegenerateError {
    /// No path that begins at the block has this number.
    #[error("no path of {function} that begins at {block} has number {number}")]
    NoSuchPath {
        /// The function of the path.
        function: FuncId,
        /// The block where the path begins.
        block: BlockId,
        /// The recorded number.
        number: u32,
    },
    /// The function that was entered is not the function that was called.
    #[error("a call to {called} reached another function")]
    OtherCallee {
        /// The function to which the call refers.
        called: FuncId,
    },
    /// A call through a table reached a function that does not exist.
    #[error("a call through a table in {0} reached no function of its type")]
    NoSuchCallee(FuncId),
    /// A word has no bits, or a number crosses a word's end.
    #[error("the recorded bits are damaged")]
    Bits,
    /// An exception arrived where none can be thrown.
    #[error("an exception left a call in {0} that cannot throw")]
    Exception(FuncId),
    /// The bits ended before the run did.
    #[error("the recorded bits end before the run does, in {0}")]
    Early(FuncId),
    /// The run ended before the bits did.
    #[error("the run ended before the recorded bits did")]
    Late,
    /// The path does not lead to the recorded end.
    #[error("the path does not lead to the recorded end")]
    Elsewhere,
    /// The numbers of a waypoint do not describe a moment of the run.
    #[error("the activations stored for a moment of the run are damaged")]
    Waypoint,
    /// There are more activations than the limit.
    #[error("more than {0} activations are open at once")]
    TooDeep(usize),
}

/// The maximum number of open activations.
const DEEPEST: usize = 1 << 26;

/// Regenerates the sequence of paths of a run from its bits, piece by piece. Time: O(1) per path,
/// plus O(length) once for each distinct path.
pub struct Regenerator<'a> {
    tables: Tables<'a>,
    bits: Bits,
    /// The innermost activation, or `None` between two calls by the host.
    current: Option<Activation>,
    outer: Vec<Activation>,
    /// A pending call, with its target and caller. The callee's first bits have not arrived yet.
    pending: Option<(Target, u32)>,
    /// Calls by the host that have not begun yet.
    host_calls: VecDeque<FuncId>,
    /// The number of blocks executed so far.
    time: u64,
}

/// The next action.
enum Next {
    Go,
    /// A call by the host, which is not known yet.
    Idle,
    /// Nothing, because the run ended in the call that was reached.
    End,
}

impl<'a> Regenerator<'a> {
    /// Creates a regenerator positioned before the first path.
    pub fn new(program: &'a Program, plan: &'a PathPlan) -> Self {
        Self {
            tables: Tables::new(program, plan),
            bits: Bits::default(),
            current: None,
            outer: Vec::new(),
            pending: None,
            host_calls: VecDeque::new(),
            time: 0,
        }
    }

    /// Adds a call by the host to a function.
    pub fn host_call(&mut self, function: FuncId) {
        self.host_calls.push_back(function);
    }

    /// Returns the number of blocks executed so far.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Returns the functions whose activations are open, outermost first.
    pub fn open(&self) -> impl Iterator<Item = FuncId> + '_ {
        self.outer
            .iter()
            .chain(&self.current)
            .map(|a| self.tables.id(a.function))
    }

    /// Processes more words. The last word is held back until more words arrive, because its
    /// meaning depends on whether it is the last.
    ///
    /// # Errors
    /// Returns an error if the words do not continue the run.
    pub fn feed<S: Sink>(&mut self, words: &[u64], sink: &mut S) -> Result<(), RegenerateError> {
        for &word in words {
            if let Some(ready) = self.bits.push(word)? {
                self.bits.open(ready);
                while self.bits.left() {
                    if let Next::Idle = self.step(sink, None)? {
                        return Err(RegenerateError::Late);
                    }
                }
            }
        }
        Ok(())
    }

    /// Processes one path, or the beginning or end of an activation. `last` lists the activations
    /// at the end of the run, if the end may be near.
    #[inline]
    fn step<S: Sink>(
        &mut self,
        sink: &mut S,
        last: Option<&[FinalFrame]>,
    ) -> Result<Next, RegenerateError> {
        let Some(mut at) = self.current else {
            if let Some((target, caller)) = self.pending.take() {
                return self.call(target, caller, sink, last);
            }
            let Some(function) = self.host_calls.pop_front() else {
                return Ok(Next::Idle);
            };
            // The function is an exported import, so the host called its own function.
            if let Some(function) = self.tables.defined(function) {
                self.enter(function, sink)?;
            }
            return Ok(Next::Go);
        };
        let width = self.tables.width(at.function, at.start);
        let number = self.bits.take(width)?;
        let path = self.tables.path(at.function, at.start, number, sink)?;
        if path.length > 0 {
            sink.path(path.node);
            self.time += u64::from(path.length);
        }
        match path.end {
            PathEnd::Start(start) => {
                at.start = start;
                self.current = Some(at);
            }
            PathEnd::Call {
                target,
                returns,
                throws,
                block,
            } => {
                at.start = returns;
                at.throws = throws;
                at.block = block;
                at.called = self.time;
                at.place = UNKNOWN_PLACE;
                if self.outer.len() >= DEEPEST {
                    return Err(RegenerateError::TooDeep(DEEPEST));
                }
                self.outer.push(at);
                self.current = None;
                return self.reach(target, at.function, sink, last);
            }
            PathEnd::TailCall { target } => {
                let from = at.function;
                sink.leave();
                self.current = None;
                return self.reach(target, from, sink, last);
            }
            PathEnd::Return => {
                sink.leave();
                self.resume(sink);
            }
            PathEnd::Throw => {
                sink.leave();
                self.unwind()?;
            }
            PathEnd::Stop => return Err(RegenerateError::Elsewhere),
        }
        Ok(Next::Go)
    }

    /// Handles a call. The call begins now, or when the callee's first bits have arrived.
    #[inline]
    fn reach<S: Sink>(
        &mut self,
        target: Target,
        caller: u32,
        sink: &mut S,
        last: Option<&[FinalFrame]>,
    ) -> Result<Next, RegenerateError> {
        if self.bits.left() || last.is_some() {
            return self.call(target, caller, sink, last);
        }
        self.pending = Some((target, caller));
        Ok(Next::Go)
    }

    /// Begins a call. All waiting activations must already be on the stack of outer activations.
    #[inline]
    fn call<S: Sink>(
        &mut self,
        target: Target,
        caller: u32,
        sink: &mut S,
        last: Option<&[FinalFrame]>,
    ) -> Result<Next, RegenerateError> {
        // A call that found no function, or no room on the stack, has written nothing.
        let ends = |this: &Self| last.is_some_and(|f| !this.bits.left() && this.waits_at(f));
        if ends(self) {
            return Ok(Next::End);
        }
        match self.callee(target, caller)? {
            Some(callee) => self.enter(callee, sink)?,
            None if ends(self) => return Ok(Next::End),
            None => self.resume(sink),
        }
        Ok(Next::Go)
    }

    /// Continues the innermost activation after a call has returned. An activation that has nothing
    /// left to do after its call also ends.
    #[inline]
    fn resume<S: Sink>(&mut self, sink: &mut S) {
        self.current = self.outer.pop();
        while self.current.is_some_and(|at| at.start == LEAVES) {
            sink.leave();
            self.current = self.outer.pop();
        }
    }

    /// Handles an exception that has left an activation. The caller continues where it looks for a
    /// handler.
    fn unwind(&mut self) -> Result<(), RegenerateError> {
        self.current = self.outer.pop();
        if let Some(at) = &mut self.current {
            if at.throws == NOWHERE {
                return Err(RegenerateError::Exception(self.tables.id(at.function)));
            }
            at.start = at.throws;
        }
        Ok(())
    }

    /// Returns the callee, or `None` for an import.
    #[inline]
    fn callee(&mut self, target: Target, caller: u32) -> Result<Option<u32>, RegenerateError> {
        match target {
            Target::Defined(function) => Ok(Some(function)),
            Target::Import(function) => {
                self.import(function)?;
                Ok(None)
            }
            Target::Table(ty) => {
                let ids = self.tables.entry_ids();
                let number = self.bits.peek(ids.width(ty))?;
                let function = ids
                    .function(ty, number)
                    .ok_or_else(|| RegenerateError::NoSuchCallee(self.tables.id(caller)))?;
                let defined = self.tables.defined(function);
                if defined.is_none() {
                    self.import(function)?;
                }
                Ok(defined)
            }
        }
    }

    /// Reads an import's number, which the host writes if a table may hold the import.
    fn import(&mut self, function: FuncId) -> Result<(), RegenerateError> {
        match self.tables.entry_ids().of(function) {
            Some((number, width)) if self.bits.take(width)? != number => {
                Err(RegenerateError::OtherCallee { called: function })
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn enter<S: Sink>(&mut self, function: u32, sink: &mut S) -> Result<(), RegenerateError> {
        let (start, entry) = self.tables.entry(function);
        if let Some((number, width)) = entry
            && self.bits.take(width)? != number
        {
            let called = self.tables.id(function);
            return Err(RegenerateError::OtherCallee { called });
        }
        sink.enter(self.tables.id(function));
        self.current = Some(Activation {
            function,
            start,
            throws: NOWHERE,
            block: BlockId::new(0),
            place: UNKNOWN_PLACE,
            entered: self.time + 1,
            called: 0,
        });
        Ok(())
    }
}
