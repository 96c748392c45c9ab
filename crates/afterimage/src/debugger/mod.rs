//! Steps through a run in both directions, for debuggers and for the explorer's page.
//!
//! A [`Debugger`] steps by the user's own lines. It keeps no position: [`step`](Debugger::step) and
//! [`run_to`](Debugger::run_to) take a position and return the next one. All other questions also
//! take a position. Positions are found in the path, so the distance to the next position does not
//! matter. The values of variables are found by following the run from the last snapshot or
//! checkpoint before the position. If this stretch is long, snapshots are taken within it and kept
//! for the debugger's lifetime.

mod changes;
mod frames;
mod inspect;
mod memory;
mod scan;
mod stops;
mod walk;

use std::cell::{Cell, RefCell};
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use afterimage_ids::{BlockId, EntityRef, FuncId, OpId, OrigOffset, grouped};
use afterimage_profile::{Folded, Line, Source, Stop};
use afterimage_program::{InlinedFrame, SourceMap};
pub use afterimage_replay::state::Local;
use afterimage_replay::state::{Bodies, DebugError, FunctionScopes, Variables};
use afterimage_replay::steps::{LineTables, Run};
use afterimage_replay::values::RecordedValues;
use afterimage_replay::whole_path::{At, FileSegments, Positions, Prologue, RecordedPath};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::error::QuestionError;
use crate::named::{NamedProgram, calls_within, frames_around, line_named, with_names};

pub(crate) use changes::Named;
pub use frames::StackFrame;
pub use inspect::{Inspection, Near};
pub use memory::Access;
pub use stops::{Hits, LineMoment, RunTo, StopAt, StopPoint};
pub use walk::{Direction, Step};

/// A position in a run, right before the execution of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The time of the operator's block.
    pub time: u64,
    /// The operator's number in its function.
    pub op: u32,
    /// The number of inlined calls at the operator that are not entered yet. It is not 0 at a line
    /// whose only code belongs to inlined calls. At such a line, the position is in the function
    /// around these calls.
    pub ahead: u32,
}

impl Position {
    pub(crate) fn new(time: u64, op: OpId) -> Self {
        Self {
            time,
            op: op.as_u32(),
            ahead: 0,
        }
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |at: &Self| (at.time, at.op, Reverse(at.ahead));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The error of a question that was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was interrupted")]
pub struct Interrupted {
    /// The number of executions at which conditions were examined before the cancellation.
    pub looked_at: u64,
}

/// Steps through a run.
pub struct Debugger<'a> {
    program: NamedProgram<'a>,
    folded: &'a Folded<'a>,
    positions: Positions<'a, FileSegments>,
    values: RecordedValues<'a>,
    run: Run<'a, FileSegments>,
    variables: Result<&'a Variables<'a>, DebugError>,
    bodies: Bodies<'a>,
    /// The place in the last block where the run ended.
    stop: Option<Stop>,
    tables: LineTables,
    /// Like `tables`, but also with the lines of libraries.
    all_tables: LineTables,
    prologues: RefCell<HashMap<FuncId, Prologue>>,
    frames: RefCell<HashMap<OrigOffset, Rc<[InlinedFrame]>>>,
    scopes: RefCell<HashMap<FuncId, Result<Rc<FunctionScopes>, String>>>,
    near: RefCell<Near>,
    /// The number of consecutive arrivals to examine one by one while none of them ends the step.
    patience: Cell<u32>,
    cancelled: &'a AtomicBool,
}

/// Opens a run for stepping through it. Builds the data that stepping needs and takes snapshots,
/// unless they exist. Long operations check `cancelled`, and end early with an error once it is
/// set.
///
/// # Errors
/// Returns an error if the program is still running, the run executed no block or cannot be
/// executed again, the recording is damaged, or `ask` fails.
pub fn with_debugger<R>(
    session: &Session,
    cancelled: &AtomicBool,
    ask: impl FnOnce(&Debugger<'_>) -> Result<R>,
) -> Result<R, QuestionError> {
    let opened = || -> Result<R> {
        let stretched = session.for_stepping()?;
        let session = stretched.as_ref().unwrap_or(session);
        let mut run = session.run_from_checkpoints()?;
        if stretched.is_none() {
            run.snapshots = session.snapshots()?.filter(|_| run.checkpoints.is_none());
        }
        debug(session, run, cancelled, ask)
    };
    opened().map_err(|error| error.context(session.at().display().to_string()).into())
}

/// Opens a run whose path and values exist, for stepping through it.
///
/// # Errors
/// Returns an error if the run executed no block, the recording is damaged, or `ask` fails.
pub(crate) fn debug<R>(
    session: &Session,
    run: Run<'_, FileSegments>,
    cancelled: &AtomicBool,
    ask: impl FnOnce(&Debugger<'_>) -> Result<R>,
) -> Result<R> {
    with_names(session, |program| {
        if run.path.length() == 0 {
            bail!("the run executed no block, so there is nothing to step through");
        }
        ask(&Debugger {
            program,
            folded: program.own.folded,
            positions: program.positions()?,
            values: session.values()?,
            run,
            variables: session.variables(),
            bodies: Bodies::new(session.program(), session.bytes()),
            stop: session.stops()?.first().copied(),
            tables: LineTables::default(),
            all_tables: LineTables::default(),
            prologues: RefCell::default(),
            frames: RefCell::default(),
            scopes: RefCell::default(),
            near: RefCell::default(),
            patience: Cell::new(walk::PATIENCE),
            cancelled,
        })
    })
}

impl<'a> Debugger<'a> {
    /// Sets the number of consecutive arrivals in inlined code to examine one by one before paths
    /// are skipped. The number does not affect the steps.
    #[doc(hidden)]
    pub fn set_patience(&self, arrivals: u32) {
        self.patience.set(arrivals);
    }

    /// Returns the session with the recording.
    pub fn session(&self) -> &'a Session {
        self.program.session
    }

    /// Returns the program with its names and lines.
    pub fn program(&self) -> NamedProgram<'a> {
        self.program
    }

    /// Returns the source positions of code.
    pub fn source(&self) -> &'a SourceMap<'a> {
        self.program.source
    }

    /// Returns the source positions of code. Library code has the position of the user's own line
    /// that called it.
    pub fn folded(&self) -> &'a Folded<'a> {
        self.folded
    }

    /// Returns the variables of the source, or why none are known.
    pub fn variables(&self) -> Result<&'a Variables<'a>, &DebugError> {
        self.variables.as_ref().copied()
    }

    /// Returns the number of blocks that the run executed.
    pub fn length(&self) -> u64 {
        self.path().length()
    }

    fn path(&self) -> &'a RecordedPath {
        self.run.path
    }

    fn code(&self) -> (&'a afterimage_program::Program, &'a [u8]) {
        (self.run.program, self.run.module)
    }

    /// Fails if the operation was cancelled.
    fn check(&self) -> Result<()> {
        if self.cancelled.load(std::sync::atomic::Ordering::Relaxed) {
            bail!(Interrupted { looked_at: 0 });
        }
        Ok(())
    }

    /// Parses a position as a user writes it, such as `parser.c:42#7`, `parse#3`, `t=123456`, `50%`
    /// or `end`.
    ///
    /// # Errors
    /// Returns an error if the text is not a position, or the run has no such position.
    pub fn position(&self, text: &str) -> Result<Position> {
        if text.trim() == "end" {
            return self.last();
        }
        let at = self.positions.moment(text)?;
        let position = self.canonical(at)?;
        if at.op.is_none() {
            return Ok(position);
        }
        let (_, offset) = self.place(position)?;
        let line = line_named(&self.program.resolver(), text);
        let ahead = line.map_or(0, |line| self.ahead(offset, line));
        Ok(Position { ahead, ..position })
    }

    /// Converts a moment to a position. The moment before a block becomes the position before its
    /// first operator.
    fn canonical(&self, At { time, op }: At) -> Result<Position> {
        match op {
            Some(op) => Ok(Position::new(time, op)),
            None => self.first_of(time),
        }
    }

    /// Returns the position before the block executed at a time.
    pub(crate) fn first_of(&self, time: u64) -> Result<Position> {
        let (function, block) = self.block(time)?;
        let first = self.bodies.first_of(function, block)?;
        Ok(Position::new(
            time,
            first.context("a block is not in the program")?,
        ))
    }

    /// Returns the block executed at a time, and its function.
    fn block(&self, time: u64) -> Result<(FuncId, BlockId)> {
        let visit = self.path().cursor().seek(time)?;
        let visit = visit.with_context(|| format!("the run has no block t={}", grouped(time)))?;
        let node = &self.path().nodes()[visit.node];
        let block = node.blocks.get((time - visit.start) as usize);
        let block = block.context("a block is not in the program")?;
        Ok((node.function, *block))
    }

    /// Returns the position at which the run first arrives at a line of the user's own code. If it
    /// never does, returns the position where the run begins.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn first(&self) -> Result<Position> {
        let begin = self.first_of(1)?;
        match self.arrival_from(begin)? {
            Some(first) => Ok(first),
            None => Ok(begin),
        }
    }

    /// Returns where the run ended: before the operator that trapped, or before the call to the
    /// host that did not return. If every call into the guest returned, returns the position before
    /// the last block.
    ///
    /// # Errors
    /// Returns an error if the end of the run is damaged.
    pub fn last(&self) -> Result<Position> {
        let length = self.length();
        match self.session().final_operator()? {
            Some((_, op)) => Ok(Position::new(length, op)),
            None => self.first_of(length),
        }
    }

    /// Returns the function that is executed at a position, and the offset of the operator.
    ///
    /// # Errors
    /// Returns an error if there is no such position.
    pub fn place(&self, at: Position) -> Result<(FuncId, OrigOffset)> {
        let (function, _) = self.block(at.time)?;
        // No function has enough operators for this number.
        let offset = match at.op {
            u32::MAX => None,
            op => self.offset(function, OpId::from_u32(op))?,
        };
        let offset = offset.context("an operator is not in the program")?;
        Ok((function, offset))
    }

    /// Returns the position before the operator at an offset, in the function executed at a time.
    pub(crate) fn before(&self, time: u64, offset: OrigOffset) -> Result<Position> {
        let (function, _) = self.block(time)?;
        Ok(Position::new(
            time,
            self.program.operator_at(function, offset, time)?,
        ))
    }

    fn offset(&self, function: FuncId, op: OpId) -> Result<Option<OrigOffset>> {
        let found = self.program.operators.get(function, op)?;
        Ok(found.map(|found| found.offset))
    }

    /// Returns the position as commands accept it: for example, `@0x1f3#7`. If inlined calls are
    /// ahead, this is the position after they are entered.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn written(&self, at: Position) -> Result<String> {
        let (function, _) = self.block(at.time)?;
        let written = self
            .positions
            .written(function, OpId::from_u32(at.op), at.time)?;
        Ok(written.unwrap_or_else(|| format!("t={}", at.time)))
    }

    fn prologue(&self, function: FuncId) -> Result<Prologue> {
        if let Some(known) = self.prologues.borrow().get(&function) {
            return Ok(*known);
        }
        let found = self.positions.prologue(function)?;
        self.prologues.borrow_mut().insert(function, found);
        Ok(found)
    }

    /// Whether a function has lines of the user's own code.
    fn is_own(&self, function: FuncId) -> Result<bool> {
        Ok(self.tables.has_lines(self.code(), self.folded, function)?)
    }

    /// Returns the functions of the user's own code that contain an operator, innermost first. All
    /// but the last were inlined.
    fn own_frames(&self, offset: OrigOffset) -> Rc<[InlinedFrame]> {
        if let Some(known) = self.frames.borrow().get(&offset) {
            return Rc::clone(known);
        }
        let found: Rc<[InlinedFrame]> = self.folded.inlined_frames(offset).into();
        self.frames.borrow_mut().insert(offset, Rc::clone(&found));
        found
    }

    /// Like [`own_frames`](Self::own_frames), but first drops the innermost `ahead` frames,
    /// including those of library code.
    fn own_frames_around(&self, offset: OrigOffset, ahead: u32) -> Rc<[InlinedFrame]> {
        if ahead == 0 {
            return self.own_frames(offset);
        }
        let mut frames = frames_around(self.program.source, offset, ahead as usize);
        let whole = frames.pop();
        frames.retain(|frame| frame.location.is_some_and(|at| self.folded.shows(at.file)));
        frames.extend(whole);
        frames.into()
    }

    /// Returns the number of inlined calls ahead of an arrival at a line, before the operator at
    /// `offset`.
    fn ahead(&self, offset: OrigOffset, line: Line) -> u32 {
        let own = self.own_frames(offset);
        let innermost = own.first().and_then(|frame| frame.location);
        if innermost.map(Line::from) == Some(line) {
            return 0;
        }
        calls_within(&self.program.source.inlined_frames(offset), line) as u32
    }

    /// Returns the first block of a function.
    fn root(&self, function: FuncId) -> Option<BlockId> {
        let code = self.run.program.function(function)?;
        Some(code.cfg.graph.root())
    }

    /// Returns the operators of a block.
    fn ops(&self, (function, block): (FuncId, BlockId)) -> Option<std::ops::Range<u32>> {
        let code = self.run.program.function(function)?;
        let ops = &code.cfg.blocks.get(block)?.ops;
        Some(ops.start.index() as u32..ops.end.index() as u32)
    }
}
