//! Steps by lines of the user's own code, in both directions.
//!
//! A *frame* is an activation, or a function of the user's own that was inlined into its code.
//! Stepping over goes to the next arrival at a line in a frame that is open now. Stepping out goes
//! to the next arrival in a frame around the innermost one. Stepping in goes to the next arrival in
//! any frame. Backward steps work in the same way. Stepping out of an activation leads to the
//! calling line: right after the call, or right before it when going backward.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{FuncId, OpId};
use afterimage_profile::Line;
use afterimage_program::{InlinedFrame, Location};
use afterimage_replay::state::{Activation, calls};
use afterimage_replay::steps::{Enter, LineStep, LineSteps, WantedLines, Within};
use afterimage_replay::whole_path::{FileSegments, Window};
use afterimage_wpp::{Cursor, NodeFilter, Visit};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::{Debugger, Position};

/// The kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// To the next line, including lines inside a call.
    In,
    /// To the next line of this frame, or of a frame around it.
    Over,
    /// Out of the innermost frame of the user's own code.
    Out,
}

/// The direction of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Forward in time.
    Forward,
    /// Backward in time.
    Backward,
}

impl Direction {
    /// Whether a step in this direction may end at `to`.
    fn goes_beyond(self, from: Position, to: Position) -> bool {
        match self {
            Self::Forward => to > from,
            Self::Backward => to < from,
        }
    }
}

/// The number of arrivals examined between checks for cancellation.
const ASK: u32 = 1 << 12;
/// The number of consecutive arrivals in other frames of an activation to examine one by one. After
/// that, the paths without arrivals in the wanted frames are skipped.
pub(super) const PATIENCE: u32 = 64;

/// A frame of the user's own code in an activation. It is identified by its functions, outermost
/// first, each with the place where it calls the next.
#[derive(Clone, Debug)]
struct Chain {
    function: FuncId,
    inlined: Rc<[InlinedFrame]>,
}

impl Chain {
    fn len(&self) -> usize {
        self.inlined.len().max(1)
    }

    /// Returns the name and the call of the frame at a depth. Depth 0 is the activation itself.
    fn level(&self, level: usize) -> Option<(Option<&str>, Option<Location>)> {
        let from = self.inlined.len().checked_sub(level + 1)?;
        let frame = self.inlined.get(from)?;
        let call = frame.location.filter(|_| from > 0);
        Some((frame.function.as_deref(), call))
    }

    /// Whether this is one of the first `count` frames of another chain.
    fn is_of(&self, other: &Self, count: usize) -> bool {
        let own = self.len();
        if own > count || self.function != other.function {
            return false;
        }
        let is_same = |level: usize| match (self.level(level), other.level(level)) {
            (Some((name, call)), Some((other, at))) => {
                name == other && (level + 1 == own || call == at)
            }
            (a, b) => a.is_none() && b.is_none(),
        };
        (0..own).all(is_same)
    }

    /// Whether both chains represent the same frame, possibly at different positions.
    fn is(&self, other: &Self) -> bool {
        self.len() == other.len() && self.is_of(other, other.len())
    }
}

/// The frames open at a position, found on demand.
struct Open<'d, 'a> {
    debugger: &'d Debugger<'a>,
    at: Position,
    /// The number of activations around the position.
    depth: usize,
    known: RefCell<HashMap<usize, Option<Chain>>>,
}

impl Open<'_, '_> {
    /// Returns the chain of the activation at a depth. Depth 1 is the outermost activation.
    fn chain(&self, depth: usize) -> Result<Option<Chain>> {
        if let Some(known) = self.known.borrow().get(&depth) {
            return Ok(known.clone());
        }
        let found = self.find(depth)?;
        self.known.borrow_mut().insert(depth, found.clone());
        Ok(found)
    }

    fn find(&self, depth: usize) -> Result<Option<Chain>> {
        let debugger = self.debugger;
        let Some(outside) = self.depth.checked_sub(depth) else {
            return Ok(None);
        };
        if outside == 0 {
            let (function, offset) = debugger.place(self.at)?;
            let inlined = debugger.own_frames_around(offset, self.at.ahead);
            return Ok(Some(Chain { function, inlined }));
        }
        let (found, _) = calls(&debugger.values, self.at.time, outside + 1)?;
        let Some(call) = found.get(outside) else {
            return Ok(None);
        };
        let at = Activation::at_call(&debugger.values, &debugger.bodies, call.time)?;
        Ok(Some(Chain {
            function: call.function,
            inlined: debugger.own_frames(at.offset),
        }))
    }
}

/// The part of a line that a step over has already passed. Inlined code in the middle of a line
/// does not make the rest a new line.
struct Passed {
    direction: Direction,
    /// The line that a forward step leaves.
    line: Option<Line>,
    level: usize,
    /// Whether the step has passed inlined code since the last line of an open frame.
    inside: bool,
    /// The line that was found, with the depth of its activation and its frame.
    last: Option<(Line, usize, Chain)>,
    found: Option<Position>,
}

impl Passed {
    fn new(direction: Direction, line: Option<Line>, level: usize) -> Self {
        Self {
            direction,
            line,
            level,
            inside: false,
            last: None,
            found: None,
        }
    }

    /// Processes the next arrival. `arrived` is the open frame of the arrival, if it has one.
    /// `skipped` returns whether the walk has skipped inlined code since the previous arrival.
    /// Returns whether the step is complete.
    fn is_over(
        &mut self,
        at: Position,
        (line, depth): (Line, usize),
        arrived: Option<Chain>,
        innermost: Option<&Chain>,
        skipped: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        let Some(chain) = arrived else {
            let own = self.last.as_ref().map_or(self.level, |last| last.1);
            self.inside |= depth == own;
            return Ok(false);
        };
        let inside = std::mem::replace(&mut self.inside, false);
        if self.direction == Direction::Backward {
            // A backward step continues to the beginning of the line.
            if let Some((last, its_depth, frame)) = &self.last {
                let is_same = (*last, *its_depth) == (line, depth) && frame.is(&chain);
                if !is_same || !(inside || skipped()?) {
                    return Ok(true);
                }
            }
            self.last = Some((line, depth, chain));
            self.found = Some(at);
            return Ok(false);
        }
        let is_same = depth == self.level && self.line == Some(line);
        let is_same = is_same && innermost.is_some_and(|frame| frame.is(&chain));
        if is_same && (inside || skipped()?) {
            return Ok(false);
        }
        self.found = Some(at);
        Ok(true)
    }
}

impl<'a> Debugger<'a> {
    /// Returns the position to which a step leads, or `None` if the step would leave the run.
    ///
    /// Takes O(blocks on the way). Each call that is passed over takes O(depth of the grammar).
    ///
    /// # Errors
    /// Returns an error if the path cannot be read, or the step was interrupted.
    pub fn step(
        &self,
        from: Position,
        step: Step,
        direction: Direction,
    ) -> Result<Option<Position>> {
        let level = self.own_depth(from)?;
        match (step, level) {
            (Step::In, _) | (_, None) => self.next_line(from, direction),
            (Step::Over, Some(level)) => self.over(from, direction, level, None),
            (Step::Out, Some(level)) => self.out(from, direction, level),
        }
    }

    /// Returns the position of the next or previous executed operator, or `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn step_operator(&self, from: Position, direction: Direction) -> Result<Option<Position>> {
        let block = self.block(from.time)?;
        let ops = self.ops(block).context("a block is not in the program")?;
        match direction {
            Direction::Forward => {
                if from.op + 1 < ops.end {
                    let op = OpId::from_u32(from.op + 1);
                    return Ok(Some(Position::new(from.time, op)));
                }
                if from.time < self.length() {
                    self.first_of(from.time + 1).map(Some)
                } else {
                    Ok(None)
                }
            }
            Direction::Backward => {
                if from.op > self.first_of(from.time)?.op {
                    let op = OpId::from_u32(from.op - 1);
                    return Ok(Some(Position::new(from.time, op)));
                }
                let Some(time) = from.time.checked_sub(1).filter(|time| *time > 0) else {
                    return Ok(None);
                };
                let ops = self
                    .ops(self.block(time)?)
                    .context("a block is not in the program")?;
                let first = self.first_of(time)?;
                let op = ops.end.saturating_sub(1).max(first.op);
                Ok(Some(Position::new(time, OpId::from_u32(op))))
            }
        }
    }

    /// Returns the depth of the innermost activation that contains the user's own code, from 1.
    fn own_depth(&self, at: Position) -> Result<Option<usize>> {
        let mut cursor = self.path().cursor();
        cursor.seek(at.time)?;
        let depth = cursor.depth();
        if let Some(function) = cursor.function()
            && self.is_own(function)?
        {
            return Ok(Some(depth));
        }
        for (number, open) in cursor.stack()?.iter().enumerate().rev() {
            if self.is_own(open.function)? {
                return Ok(Some(number + 1));
            }
        }
        Ok(None)
    }

    /// Goes to the next arrival in an open frame. If `frames` is given, only the first `frames`
    /// frames of the activation at `level` count, and the search ends with this activation.
    ///
    /// To pass a long sequence of arrivals in other frames of this activation, such as an inlined
    /// loop, skips executed paths without an arrival in the wanted frames.
    fn over(
        &self,
        from: Position,
        direction: Direction,
        level: usize,
        frames: Option<usize>,
    ) -> Result<Option<Position>> {
        let mut cursor = self.path().cursor();
        cursor.seek(from.time)?;
        let open = Open {
            debugger: self,
            at: from,
            depth: cursor.depth(),
            known: RefCell::default(),
        };
        let mut passed = Passed::new(direction, self.located(from)?.map(Line::from), level);
        let mut steps = self.lines(from, direction, Enter::UpTo(level))?;
        let mut looked_at = 0u32;
        let mut other = 0u32;
        // The latest step in the activation at `level`, once the walk skips paths.
        let mut before = None;
        while let Some(step) = steps.next()? {
            looked_at = looked_at.wrapping_add(1);
            if looked_at.is_multiple_of(ASK) {
                self.check()?;
            }
            let position = self.arrived(&step)?;
            if !direction.goes_beyond(from, position) {
                continue;
            }
            let depth = step.depth + 1;
            if depth < level && frames.is_some() {
                break;
            }
            let count = frames.filter(|_| depth == level);
            let arrived = match step.op {
                Some(op) => {
                    let offset = self.offset(step.function, op)?;
                    let offset = offset.context("an operator is not in the program")?;
                    let inlined = self.own_frames_around(offset, self.ahead(offset, step.line));
                    let function = step.function;
                    let own = Chain { function, inlined };
                    let open = open.chain(depth)?;
                    open.is_some_and(|chain| own.is_of(&chain, count.unwrap_or(chain.len())))
                        .then_some(own)
                }
                None => return Ok(passed.found.or(Some(position))),
            };
            let line = if Some(Self::op(position)) == step.op {
                step.line
            } else {
                self.located(position)?.map_or(step.line, Line::from)
            };
            other = match arrived {
                None if depth == level => other.saturating_add(1),
                _ => 0,
            };
            let innermost = open.chain(level)?;
            let skipped = || match before.filter(|_| depth == level) {
                Some(before) => self.arrives_between(before, step.visit, level),
                None => Ok(false),
            };
            let line = (line, depth);
            if passed.is_over(position, line, arrived, innermost.as_ref(), skipped)? {
                break;
            }
            if before.is_some() {
                before = Some(step.visit);
            } else if other > self.patience.get()
                && let Some(chain) = &innermost
            {
                let frames = frames.unwrap_or(chain.len());
                steps.keep_only(level, self.nodes_of_frames(chain, frames)?);
                before = Some(step.visit);
            }
        }
        Ok(passed.found)
    }

    /// Returns the nodes with an arrival in the first `frames` frames of an activation.
    fn nodes_of_frames(&self, chain: &Chain, frames: usize) -> Result<NodeFilter> {
        let function = chain.function;
        let mut known: HashMap<(OpId, Line), bool> = HashMap::new();
        let mut is_wanted = |op: OpId, line: Line| -> Result<bool> {
            if let Some(&known) = known.get(&(op, line)) {
                return Ok(known);
            }
            let offset = self.offset(function, op)?;
            let offset = offset.context("an operator is not in the program")?;
            let inlined = self.own_frames_around(offset, self.ahead(offset, line));
            let found = (Chain { function, inlined }).is_of(chain, frames);
            known.insert((op, line), found);
            Ok(found)
        };
        // The run may end on the way to a line.
        let last = self.path().cursor().seek(self.length())?;
        let mut wanted = Vec::from_iter(last.map(|last| last.node));
        for (id, node) in self.path().nodes().iter() {
            if node.function != function {
                continue;
            }
            let tables = &self.tables;
            for (op, line) in tables.arrivals(self.code(), self.folded, (function, &node.blocks))? {
                if is_wanted(op, line)? {
                    wanted.push(id);
                    break;
                }
            }
        }
        Ok(NodeFilter::new(wanted))
    }

    /// Whether the activation at a depth arrived at a line between two of its executed paths.
    fn arrives_between(&self, one: Visit, other: Visit, depth: usize) -> Result<bool> {
        let (first, last) = if one.start < other.start {
            (one, other)
        } else {
            (other, one)
        };
        if first.last() + 1 >= last.start {
            return Ok(false);
        }
        let window = Window {
            first: first.last() + 1,
            last: last.start - 1,
        };
        let mut steps = self.lines_in(window, Direction::Forward, Enter::UpTo(depth))?;
        while let Some(step) = steps.next()? {
            if step.depth + 1 == depth {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn out(&self, from: Position, direction: Direction, level: usize) -> Result<Option<Position>> {
        let mut cursor = self.path().cursor();
        cursor.seek(from.time)?;
        let open = Open {
            debugger: self,
            at: from,
            depth: cursor.depth(),
            known: RefCell::default(),
        };
        // The step leaves the inlined code.
        if let Some(chain) = open.chain(level)?
            && chain.len() > 1
        {
            let frames = Some(chain.len() - 1);
            if let Some(found) = self.over(from, direction, level, frames)? {
                return Ok(Some(found));
            }
        }
        match direction {
            Direction::Forward => self.returned(&mut cursor, level),
            Direction::Backward => self.called(&mut cursor, level),
        }
    }

    /// Returns the position right after the return of the activation at this depth, in the user's
    /// own code.
    fn returned(
        &self,
        cursor: &mut Cursor<'_, FileSegments>,
        level: usize,
    ) -> Result<Option<Position>> {
        let mut level = level;
        loop {
            let mut next = cursor.visit();
            while next.is_some() && cursor.depth() >= level {
                next = cursor.skip_activation()?;
            }
            let Some(visit) = next else { return Ok(None) };
            let position = self.first_of(visit.start)?;
            let (function, offset) = self.place(position)?;
            if self.is_own(function)? {
                if self.line(offset).is_some() {
                    return Ok(Some(position));
                }
                return self.over(position, Direction::Forward, cursor.depth(), None);
            }
            level = cursor.depth();
        }
    }

    /// Returns the position right before the call of the activation at this depth, in the user's
    /// own code.
    fn called(
        &self,
        cursor: &mut Cursor<'_, FileSegments>,
        level: usize,
    ) -> Result<Option<Position>> {
        let mut level = level;
        loop {
            while cursor.visit().is_some() && cursor.depth() >= level {
                let Some(innermost) = cursor.innermost()? else {
                    return Ok(None);
                };
                if cursor.seek(innermost.entered - 1)?.is_none() {
                    return Ok(None);
                }
            }
            let Some(visit) = cursor.visit() else {
                return Ok(None);
            };
            let call = Activation::at_call(&self.values, &self.bodies, visit.last())?;
            let position = Position::new(visit.last(), call.op);
            if self.is_own(call.function)? {
                if self.line(call.offset).is_some() {
                    return Ok(Some(position));
                }
                return self.over(position, Direction::Backward, cursor.depth(), None);
            }
            level = cursor.depth();
        }
    }

    /// Returns the first arrival at or after a position.
    pub(super) fn arrival_from(&self, from: Position) -> Result<Option<Position>> {
        let mut steps = self.lines(from, Direction::Forward, Enter::Calls)?;
        while let Some(step) = steps.next()? {
            let position = self.arrived(&step)?;
            if position >= from {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    fn lines(
        &self,
        from: Position,
        direction: Direction,
        enter: Enter,
    ) -> Result<LineSteps<'_, FileSegments>> {
        let (first, last) = match direction {
            Direction::Forward => (from.time, self.length()),
            Direction::Backward => (1, from.time),
        };
        self.lines_in(Window { first, last }, direction, enter)
    }

    fn lines_in(
        &self,
        window: Window,
        direction: Direction,
        enter: Enter,
    ) -> Result<LineSteps<'_, FileSegments>> {
        let wanted = WantedLines {
            window,
            within: Within::default(),
            reverse: direction == Direction::Backward,
            enter,
            function: None,
        };
        let tables = self.tables.clone();
        Ok(LineSteps::sharing(
            tables,
            self.run,
            self.folded,
            self.stop,
            wanted,
        )?)
    }

    /// Returns the nearest arrival beyond a position.
    fn next_line(&self, from: Position, direction: Direction) -> Result<Option<Position>> {
        let mut steps = self.lines(from, direction, Enter::Calls)?;
        while let Some(step) = steps.next()? {
            let position = self.arrived(&step)?;
            if direction.goes_beyond(from, position) {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// Returns the position at which an arrival at a line stops. It is not before the end of the
    /// function's prologue, which puts variables in their places.
    pub(super) fn arrived(&self, step: &LineStep) -> Result<Position> {
        let position = match step.op {
            Some(op) => {
                let offset = self.offset(step.function, op)?;
                let offset = offset.context("an operator is not in the program")?;
                Position {
                    ahead: self.ahead(offset, step.line),
                    ..Position::new(step.time, op)
                }
            }
            None => self.first_of(step.time)?,
        };
        let prologue = self.prologue(step.function)?;
        let Some(blocks) = prologue.blocks() else {
            return Ok(position);
        };
        let node = &self.path().nodes()[step.visit.node];
        let begins = node.blocks.first().copied() == self.root(step.function);
        let entered = match (begins, blocks) {
            (true, _) => step.visit.start,
            (false, 0) => return Ok(position),
            (false, _) => {
                let mut cursor = self.path().cursor();
                cursor.seek(step.time)?;
                let innermost = cursor.innermost()?;
                innermost.context("a line is outside of all calls")?.entered
            }
        };
        let behind = self.canonical(prologue.behind(entered))?;
        if (behind.time, behind.op) > (position.time, position.op) {
            let (_, offset) = self.place(behind)?;
            let ahead = self.ahead(offset, step.line);
            return Ok(Position { ahead, ..behind });
        }
        Ok(position)
    }

    /// Returns the user's own line of an operator.
    pub(super) fn line(&self, offset: afterimage_ids::OrigOffset) -> Option<Location> {
        use afterimage_profile::Source as _;
        self.folded.locate(offset)
    }

    /// Returns the operator of a position.
    pub(super) fn op(at: Position) -> OpId {
        OpId::from_u32(at.op)
    }
}
