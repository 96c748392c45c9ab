//! Resolves positions in a run from the user's notation.
//!
//! ```text
//! 123456, t=123,456  the 123456th executed block
//! start, end         the first block, the last block
//! -1, -1000          the last block, the 1000th block from the end
//! 50%, 99.9%         the block at this share of the run, rounded down, and at least block 1
//! func#3             the first block of the 3rd call to a function
//! file.c:42#3        the block with the 3rd arrival at line 42
//! @0x1f3#3, f+0x2a#3 the block with this operator, executed for the 3rd time
//! ```
//!
//! `#last` selects the last time. A place without `#` selects the first. Places are written as in
//! [`afterimage_profile::location`].
//!
//! A profile counts *arrivals at a line* as the line's executions, so this count is the largest K
//! in `#K`. An arrival within a block has the time of the block. An arrival over an edge has the
//! time of the first block after the edge, even if this block is an unconditional jump on the way
//! to the line.
//!
//! For values *at* a place, a position becomes a [moment](Positions::moment) within a block. It is
//! right before the first operator of the line, right before the operator, or after the function's
//! prologue. `func+0` is a function's very first operator.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::rc::Rc;

use afterimage_ids::{BlockId, FuncId, OpId, OrigOffset, grouped, times};
use afterimage_program::{Function, Names, Program, SourceMap};
use afterimage_wpp::{MarksError, Occurrences, PathError, Segments, TargetError, WholePath};
use thiserror::Error as ThisError;

use super::arrivals::{
    ArrivalTimes, Arrivals, ByNodes, FunctionLines, Shared, Step, Times, WindowArrivals,
};
use super::numbering::{NumberError, Numbering};
use super::own::OwnVisits;
use super::{Window, WindowCounts};
use crate::values::{Types, block_at};
use afterimage_profile::location::{
    self, Form, Occurrence, Place, ResolveError, form, split_occurrence,
};
use afterimage_profile::{Line, ProfileError, PrologueEnd, Remarks, Resolver, Stop, prologue_end};

/// A moment of a run, right before an operator or a block is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The time of the block.
    pub time: u64,
    /// The operator within the block, or `None` for its start.
    pub op: Option<OpId>,
}

impl At {
    fn block(time: u64) -> Self {
        Self { time, op: None }
    }
}

/// The end of the prologue in activations of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prologue {
    end: Option<PrologueEnd>,
    /// The time of the last block in which an activation may have reached the end of the prologue.
    until: u64,
}

impl Prologue {
    /// Returns the number of blocks executed before the block in which the prologue ends, or `None`
    /// if its end is unknown.
    pub fn blocks(&self) -> Option<u64> {
        self.end.map(|end| end.blocks)
    }

    /// Returns the moment after the prologue in an activation that begins at a time. If the
    /// prologue's end is unknown, or the run ended in the prologue, this is the beginning of the
    /// activation.
    pub fn behind(&self, entered: u64) -> At {
        let end = self.end.filter(|end| entered + end.blocks <= self.until);
        end.map_or(At::block(entered), |end| At {
            time: entered + end.blocks,
            op: Some(end.op),
        })
    }
}

/// Finds positions in a run.
pub struct Positions<'a, S> {
    path: &'a WholePath<S>,
    program: &'a Program,
    module: &'a [u8],
    names: &'a Names,
    source: &'a SourceMap<'a>,
    stops: &'a [Stop],
    numbering: Numbering,
    remarks: Option<&'a dyn Remarks>,
    /// The lines of the functions in earlier questions.
    lines: RefCell<HashMap<FuncId, Rc<FunctionLines>>>,
    left_out: OnceCell<HashSet<FuncId>>,
}

/// The reason why a string is not a position of a run. `E` is the reason why a segment of its path
/// cannot be loaded.
#[derive(Debug, ThisError)]
pub enum PositionError<E: Error + 'static> {
    /// The text does not name a place of the program.
    #[error(transparent)]
    Place(#[from] ResolveError),
    /// The run executed nothing.
    #[error("the run executed no block, so it has no positions")]
    Empty,
    /// The run has no block at the requested time.
    #[error(
        "the run has {length} blocks, from t=1 to t={length}; there is no {text}; the nearest is t={}",
        grouped(*nearest),
        length = grouped(*length)
    )]
    Outside {
        /// The position as the user wrote it.
        text: String,
        /// The number of executed blocks.
        length: u64,
        /// The nearest existing time.
        nearest: u64,
    },
    /// No number follows `t=`.
    #[error(
        "\"{0}\" is not a time: write a number of executed blocks, from t=1 to t={last}",
        last = grouped(*.1)
    )]
    Time(String, u64),
    /// The text is not a valid percentage.
    #[error("\"{0}\" is not a share of the run: write 0% to 100%, with at most nine decimals")]
    Percent(String),
    /// The place was never reached.
    #[error("{what} was never {happened}")]
    Never {
        /// The place, as the user named it.
        what: String,
        /// The event that is counted, as "called", "executed" or "reached".
        happened: &'static str,
    },
    /// The place was reached fewer times.
    #[error(
        "{what} was {happened} {}, so there is no #{}; the last is #{}",
        times(*count),
        grouped(*number),
        grouped(*count)
    )]
    Fewer {
        /// The place, as the user named it.
        what: String,
        /// The event that is counted, as "called", "executed" or "reached".
        happened: &'static str,
        /// The number of times the place was reached.
        count: u64,
        /// The requested number.
        number: u64,
    },
    /// The function is imported, and the path does not contain the host's functions.
    #[error("{0} is imported, so its calls are not part of the path; see its callers")]
    Imported(String),
    /// The operator does not belong to a block.
    #[error(
        "the operator at {0} is in no block: it cannot be reached, or is a marker like `block` and `end`"
    )]
    Unreachable(OrigOffset),
    /// The position names a column, but arrivals are counted by line.
    #[error("\"{0}\" names a column, but arrivals are counted by line: leave out the column")]
    Column(String),
    /// The path does not determine the arrivals at the line.
    #[error(
        "the arrivals at {0} cannot be distinguished: a call there may return or throw to the \
         same block; write another line, or a time"
    )]
    Ambiguous(String),
    /// Code that must be counted was left out of the path.
    #[error(
        "the path leaves out code of the functions that contain {0}, so its executions cannot be counted; \
         write a time, or build the whole path with `afterimage build --lens paths --again`"
    )]
    LeftOut(String),
    /// The call was left out of the path, or there was no such call.
    #[error("{0}: {1}")]
    Call(String, NumberError),
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
    /// The path is too long to count.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The arrivals cannot be counted.
    #[error(transparent)]
    Marks(#[from] MarksError<E>),
    /// The module's bytes do not match the program.
    #[error(transparent)]
    Module(#[from] ProfileError),
}

/// Returns the time of a position that is a number or a percentage of the run, or `None` if the
/// position names a place. O(1).
///
/// # Errors
/// Returns an error if a run of `length` blocks has no such time.
pub fn time_of<E: Error + 'static>(
    text: &str,
    length: u64,
) -> Result<Option<u64>, PositionError<E>> {
    if length == 0 {
        return Err(PositionError::Empty);
    }
    let outside = |nearest| PositionError::Outside {
        text: text.to_owned(),
        length,
        nearest,
    };
    let text = text.trim();
    match text {
        "start" => return Ok(Some(1)),
        "end" => return Ok(Some(length)),
        _ => {}
    }
    if let Some(percent) = text.strip_suffix('%') {
        let time = part(percent, length).ok_or_else(|| PositionError::Percent(text.to_owned()));
        return time.map(|time| Some(time.max(1)));
    }
    let (from_end, digits) = match (text.strip_prefix("t="), text.strip_prefix('-')) {
        (Some(digits), _) => (false, digits),
        (None, Some(digits)) => (true, digits),
        (None, None) => (false, text),
    };
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits
            .chars()
            .all(|c| c.is_ascii_digit() || ",_".contains(c));
    // A number that does not fit in 64 bits is later than the end of the run.
    let time = match location::number(digits) {
        None if is_number && digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(u64::MAX),
        time => time,
    };
    match time {
        Some(time) if (1..=length).contains(&time) && from_end => Ok(Some(length - time + 1)),
        Some(time) if (1..=length).contains(&time) => Ok(Some(time)),
        Some(time) if (time == 0) == from_end => Err(outside(length)),
        Some(_) => Err(outside(1)),
        None if is_number || text.starts_with("t=") => {
            Err(PositionError::Time(text.to_owned(), length))
        }
        None => Ok(None),
    }
}

impl<'a, S: Segments> Positions<'a, S> {
    /// Creates the positions in a path of a program. `module` contains the bytes from which the
    /// program was parsed. `stops` lists the places where the run ended.
    pub fn new(
        path: &'a WholePath<S>,
        program: &'a Program,
        module: &'a [u8],
        names: &'a Names,
        source: &'a SourceMap<'a>,
        stops: &'a [Stop],
    ) -> Self {
        Self {
            path,
            program,
            module,
            names,
            source,
            stops,
            numbering: Numbering::default(),
            remarks: None,
            lines: RefCell::default(),
            left_out: OnceCell::new(),
        }
    }

    /// Makes the positions report to `remarks` how they interpret a string that they do not take
    /// literally.
    #[must_use]
    pub fn heard_by(self, remarks: &'a dyn Remarks) -> Self {
        Self {
            remarks: Some(remarks),
            ..self
        }
    }

    /// Returns the same positions for a path with code left out. Calls keep their numbers in the
    /// whole run.
    #[must_use]
    pub fn numbered(self, numbering: Numbering) -> Self {
        Self { numbering, ..self }
    }

    /// Returns the time of a position. Finding a number takes O(1). Finding the k-th call or
    /// execution takes O(log n) for each rule on the way down, plus the time to read the grammar of
    /// one segment. Finding an arrival at a line may take time linear in all grammars.
    ///
    /// # Errors
    /// Returns an error if the text is not a position of this run. If the run only lacks this time
    /// or number, the error names the nearest time or number.
    pub fn time(&self, text: &str) -> Result<u64, PositionError<S::Error>> {
        match time_of(text, self.path.length())? {
            Some(time) => Ok(time),
            None => Ok(self.place(text.trim(), false)?.time),
        }
    }

    /// Returns the moment of a position, for questions about the state. For a line or an operator,
    /// the moment is right before the first operator. For a function, the moment is [after the
    /// prologue](afterimage_profile::prologue_end), where debuggers also stop. The moment may be in
    /// a block after the result of [`time`](Self::time), if the line begins with jumps, or if the
    /// prologue spans several blocks.
    ///
    /// # Errors
    /// Returns the same errors as [`time`](Self::time).
    pub fn moment(&self, text: &str) -> Result<At, PositionError<S::Error>> {
        match time_of(text, self.path.length())? {
            Some(time) => Ok(At::block(time)),
            None => self.place(text.trim(), true),
        }
    }

    /// Returns the arrival at a position, for ranges of lines. For a line, it is the moment right
    /// before its first operator. For an operator, it is that operator. A number, or a call to a
    /// function, names a whole block.
    ///
    /// # Errors
    /// Returns the same errors as [`time`](Self::time).
    pub fn arrived(&self, text: &str) -> Result<At, PositionError<S::Error>> {
        if let Some(time) = time_of(text, self.path.length())? {
            return Ok(At::block(time));
        }
        let text = text.trim();
        let is_function = matches!(self.resolved(text)?.0, Place::Function(_));
        self.place(text, !is_function)
    }

    /// Returns the exact statement of a position, for ranges of statements. For a line, it is the
    /// first statement that the arrival executes, or the moment right before its first operator if
    /// it has no statement. For an operator, it is that operator. A number, or a call to a
    /// function, names a whole block.
    ///
    /// # Errors
    /// Returns the same errors as [`time`](Self::time).
    pub fn statement(&self, text: &str) -> Result<At, PositionError<S::Error>> {
        if let Some(time) = time_of(text, self.path.length())? {
            return Ok(At::block(time));
        }
        let text = text.trim();
        match self.resolved(text)?.0 {
            Place::Function(_) => self.place(text, false),
            Place::Operator(..) => self.place(text, true),
            Place::Line(..) => {
                let types = Types::new(self.program, self.module);
                let is_statement = |step: &Step| {
                    // The step of a function's last operator is its return.
                    let code = self.program.function(step.function);
                    let is_end = code.is_some_and(|code| step.op.as_u32() + 1 == code.operators);
                    let ssa = types.statements(step.function);
                    is_end || ssa.is_some_and(|ssa| ssa.statement_at(step.op).is_some())
                };
                let executed = self.executed(text)?;
                match executed.into_iter().find(is_statement) {
                    Some(Step { time, op, .. }) => Ok(At { time, op: Some(op) }),
                    None => self.place(text, true),
                }
            }
        }
    }

    /// Returns a place and its selected occurrence. The default is the first.
    fn resolved(&self, text: &str) -> Result<(Place, Occurrence), ResolveError> {
        let resolver = Resolver::new(self.program, self.module, self.names, self.source);
        let resolver = resolver.heard_by(self.remarks);
        let resolved = resolver.location(text)?;
        let which = resolved.occurrence.unwrap_or(Occurrence::Kth(1));
        Ok((resolved.place, which))
    }

    /// Finds a place. Also finds its position within the block if `within` is set.
    fn place(&self, text: &str, within: bool) -> Result<At, PositionError<S::Error>> {
        let (place, which) = self.resolved(text)?;
        match place {
            Place::Function(function) => {
                let time = self.call(function, which)?;
                if within {
                    Ok(self.prologue(function)?.behind(time))
                } else {
                    Ok(At::block(time))
                }
            }
            Place::Operator(function, op) => {
                let offset = self.offset(function, op);
                let block = self.block(function, op);
                let block = block.ok_or(PositionError::Unreachable(offset))?;
                let what = || format!("the operator at {offset}");
                if self.numbering.lacks(function) {
                    return Err(PositionError::LeftOut(what()));
                }
                let executions = self.executions(function, block)?;
                let count = executions.count() - self.unreached(function, block, op);
                let number = number(which, count, "executed", what)?;
                let found = executions.select(number)?;
                let time = found.map_or(0, |found| found.time);
                let op = within.then_some(op);
                Ok(At { time, op })
            }
            Place::Line(line, operators) => {
                refuse_column(text)?;
                let functions = operators.iter().map(|(function, _)| *function);
                self.arrival(line, functions, which, within)
            }
        }
    }

    /// Returns the position of an operator's execution in the block at `time`, as
    /// [`statement`](Self::statement) accepts it: for example, `@0x1f3#3`. Returns `None` if the
    /// operator is in no block, or its block was not executed at that time.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn written(
        &self,
        function: FuncId,
        op: OpId,
        time: u64,
    ) -> Result<Option<String>, PositionError<S::Error>> {
        let Some(block) = self.block(function, op) else {
            return Ok(None);
        };
        let executions = self.executions(function, block)?;
        let number = executions.rank(time)?;
        // A function may return without executing a further block.
        let found = executions.select(number)?;
        let is_here = found.is_some_and(|found| found.time == time);
        Ok(is_here.then(|| format!("@{}#{number}", self.offset(function, op))))
    }

    fn block(&self, function: FuncId, op: OpId) -> Option<BlockId> {
        block_at(self.program.function(function)?, op)
    }

    /// Returns all executions of an operator's block, or `None` if the operator is in no block.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn executions_of(
        &self,
        function: FuncId,
        op: OpId,
    ) -> Result<Option<Occurrences<'a, S>>, PositionError<S::Error>> {
        let block = self.block(function, op);
        block
            .map(|block| self.executions(function, block))
            .transpose()
    }

    /// Returns all executions of a block.
    fn executions(
        &self,
        function: FuncId,
        block: BlockId,
    ) -> Result<Occurrences<'a, S>, PositionError<S::Error>> {
        let nodes = self.path.nodes().iter();
        let own = nodes.filter(|(_, node)| node.function == function);
        let targets = own.filter_map(|(id, node)| {
            let at = node.blocks.iter().position(|&other| other == block)?;
            Some((id, at as u64))
        });
        Ok(self.path.executions(targets)?)
    }

    /// Returns the number of executions of a block that the end of the run cut off before the
    /// block's operator `op`.
    fn unreached(&self, function: FuncId, block: BlockId, op: OpId) -> u64 {
        let stops = self.stops.iter();
        let here = stops.filter(|stop| stop.function == function && stop.block == block);
        here.filter(|stop| stop.next <= op).count() as u64
    }

    /// Returns the prologue of a function. O(log rows of the line table + size of the body).
    ///
    /// # Errors
    /// Returns an error if the module's bytes do not match the program.
    pub fn prologue(&self, function: FuncId) -> Result<Prologue, ProfileError> {
        let code = self.program.function(function);
        let end = match code {
            Some(code) => prologue_end(self.program, self.module, self.source, code)?,
            None => None,
        };
        // The run may have ended in its last block, before the operator.
        let unreached = end.is_some_and(|end| {
            let block = code.and_then(|code| code.block_of(end.op));
            block.is_none_or(|block| self.unreached(function, block, end.op) > 0)
        });
        let until = self.path.length() - u64::from(unreached);
        Ok(Prologue { end, until })
    }

    fn offset(&self, function: FuncId, op: OpId) -> OrigOffset {
        let code = self.program.function(function);
        let operators = code.map(|code| self.program.operators(self.module, code));
        let found = operators.and_then(|mut all| all.nth(op.as_u32() as usize));
        found.map_or(OrigOffset(0), |(_, offset, _)| offset)
    }

    fn call(&self, function: FuncId, which: Occurrence) -> Result<u64, PositionError<S::Error>> {
        let name = || self.names.function(function).to_owned();
        if self.program.function(function).is_none() {
            return Err(PositionError::Imported(name()));
        }
        let calls = self.path.activations(function)?;
        if !self.numbering.lacks(function) {
            let number = number(which, calls.count(), "called", name)?;
            return Ok(calls.select(number)?.map_or(0, |found| found.time));
        }
        let count = calls.count();
        let kept = match which {
            Occurrence::Kth(number) => self.numbering.kept(function, number, count),
            Occurrence::Last => self.numbering.last(function, count),
        };
        let number = kept.map_err(|error| PositionError::Call(name(), error))?;
        Ok(calls.select(number)?.map_or(0, |found| found.time))
    }

    fn arrival(
        &self,
        line: Line,
        functions: impl Iterator<Item = FuncId>,
        which: Occurrence,
        within: bool,
    ) -> Result<At, PositionError<S::Error>> {
        let what = || format!("{}:{}", self.source.path(line.file), line.number);
        let arrivals = self.arrivals(line, functions)?;
        let number = number(which, arrivals.count(), "reached", what)?;
        if !within {
            return Ok(At::block(arrivals.time(number)?.unwrap_or(0)));
        }
        let found = arrivals.get(number)?;
        Ok(found.map_or(At::block(0), |found| At {
            time: found.time,
            op: found.op,
        }))
    }

    /// Returns the operators executed at a place, in order of time. For a line, these are the
    /// operators of the k-th [arrival](ArrivalTimes::executed). For a function, they are the first
    /// execution of each operator in the k-th call. For an operator, it is this operator.
    ///
    /// This takes as long as finding the place. For a function, it also takes a step for each node
    /// of the call, until all operators that the function ever executes have been found.
    ///
    /// # Errors
    /// Returns the same errors as [`time`](Self::time). A number or percentage is not a place.
    pub fn executed(&self, text: &str) -> Result<Vec<Step>, PositionError<S::Error>> {
        let text = text.trim();
        let (place, which) = self.resolved(text)?;
        match place {
            Place::Function(function) => {
                let time = self.call(function, which)?;
                self.in_call(function, time)
            }
            Place::Operator(function, op) => {
                let At { time, .. } = self.place(text, false)?;
                Ok(vec![Step { time, function, op }])
            }
            Place::Line(line, operators) => {
                refuse_column(text)?;
                let what = || format!("{}:{}", self.source.path(line.file), line.number);
                let functions = operators.iter().map(|(function, _)| *function);
                let arrivals = self.arrivals(line, functions)?;
                let number = number(which, arrivals.count(), "reached", what)?;
                Ok(arrivals.executed(number)?)
            }
        }
    }

    /// Returns the first execution of each operator of a function in the call that begins at
    /// `time`.
    fn in_call(&self, function: FuncId, time: u64) -> Result<Vec<Step>, PositionError<S::Error>> {
        let mut found = Vec::new();
        let Some(code) = self.program.function(function) else {
            return Ok(found);
        };
        let nodes = self.path.nodes();
        let own = nodes.values().filter(|node| node.function == function);
        let mut unseen: HashSet<BlockId> =
            own.flat_map(|node| node.blocks.iter().copied()).collect();
        let mut visits = OwnVisits::from(self.path, time)?;
        while !unseen.is_empty()
            && let Some(visit) = visits.next()?
        {
            for (time, block) in (visit.start..).zip(&nodes[visit.node].blocks) {
                if unseen.remove(block) {
                    let ops = &code.cfg.blocks[*block].ops;
                    let ops = ops.start.as_u32()..ops.end.as_u32();
                    let ops = ops.map(OpId::from_u32);
                    found.extend(ops.map(|op| Step { time, function, op }));
                }
            }
        }
        Ok(found)
    }

    /// Returns all arrivals at a line of these functions. Takes time linear in the nodes, and in
    /// all grammars if earlier nodes decide whether a node begins with an arrival.
    ///
    /// # Errors
    /// Returns an error if the path does not determine the arrivals.
    pub fn arrivals(
        &self,
        line: Line,
        functions: impl Iterator<Item = FuncId>,
    ) -> Result<ArrivalTimes<'a, S>, PositionError<S::Error>> {
        let what = || format!("{}:{}", self.source.path(line.file), line.number);
        let mut arrivals = Arrivals::new(self.path, line);
        for function in functions {
            if self.numbering.lacks(function) {
                return Err(PositionError::LeftOut(what()));
            }
            if let Some(code) = self.program.function(function) {
                arrivals.add(code, &*self.lines_of(code)?);
            }
        }
        if arrivals.leaves_out() {
            return Err(PositionError::LeftOut(what()));
        }
        let unreached = arrivals.unreached(self.stops);
        let arrivals = Rc::new(arrivals);
        let times = match arrivals.by_nodes() {
            Some(ByNodes { positions, behind }) => Times::Nodes {
                all: self.path.executions_of_each(positions)?,
                behind,
            },
            None => Times::Marks(self.path.marks(Shared(Rc::clone(&arrivals)))?),
        };
        if arrivals.is_ambiguous() {
            return Err(PositionError::Ambiguous(what()));
        }
        // The arrivals that the last block did not reach come last.
        let count = times.count()? - unreached;
        Ok(ArrivalTimes::new(self.path, arrivals, times, count))
    }

    /// Counts the arrivals at the lines of a function in a window. `counts` are the counts of the
    /// window. Takes time linear in the function's body and its executed edges, however long the
    /// window is.
    ///
    /// # Errors
    /// Returns an error if the function's blocks were left out of the path, or if the module's
    /// bytes do not match the program.
    pub fn arrivals_in(
        &self,
        function: &Function,
        window: Window,
        counts: &WindowCounts,
    ) -> Result<WindowArrivals, PositionError<S::Error>> {
        let lines = self.lines_of(function)?;
        if self.numbering.lacks(function.id) || self.left_out().contains(&function.id) {
            let line = lines.first();
            let what = line.map(|line| format!("{}:{}", self.source.path(line.file), line.number));
            return Err(PositionError::LeftOut(what.unwrap_or_default()));
        }
        let is_end = window.last == self.path.length();
        let stops = if is_end { self.stops } else { &[] };
        Ok(WindowArrivals::count(function, &lines, counts, stops))
    }

    /// Returns the functions with nodes that were left out of the path.
    fn left_out(&self) -> &HashSet<FuncId> {
        self.left_out.get_or_init(|| {
            let nodes = self.path.nodes().values();
            let left_out = nodes.filter(|node| node.left_out > 0);
            left_out.map(|node| node.function).collect()
        })
    }

    /// Returns the operators of a function and the arrivals at all its lines. The first call for a
    /// function takes time linear in its body.
    fn lines_of(&self, function: &Function) -> Result<Rc<FunctionLines>, ProfileError> {
        if let Some(known) = self.lines.borrow().get(&function.id) {
            return Ok(Rc::clone(known));
        }
        let found = FunctionLines::read(self.program, self.module, self.source, function)?;
        let found = Rc::new(found);
        self.lines
            .borrow_mut()
            .insert(function.id, Rc::clone(&found));
        Ok(found)
    }
}

/// Returns an error for a column, since arrivals are counted by line.
fn refuse_column<E: Error + 'static>(text: &str) -> Result<(), PositionError<E>> {
    let place = split_occurrence(text).map_or(text, |split| split.0);
    match form(place) {
        Form::Line {
            column: Some(_), ..
        } => Err(PositionError::Column(place.to_owned())),
        _ => Ok(()),
    }
}

/// Resolves an occurrence among `count` occurrences.
fn number<E: Error + 'static>(
    which: Occurrence,
    count: u64,
    happened: &'static str,
    what: impl Fn() -> String,
) -> Result<u64, PositionError<E>> {
    match which {
        _ if count == 0 => Err(PositionError::Never {
            what: what(),
            happened,
        }),
        Occurrence::Last => Ok(count),
        Occurrence::Kth(number) if number <= count => Ok(number),
        Occurrence::Kth(number) => Err(PositionError::Fewer {
            what: what(),
            happened,
            count,
            number,
        }),
    }
}

/// Returns a percentage of a whole, rounded down. Uses integers, because floating-point numbers do
/// not have 64 bits of precision.
fn part(percent: &str, whole: u64) -> Option<u64> {
    const DECIMALS: usize = 9;
    let (integer, decimals) = percent.split_once('.').unwrap_or((percent, "0"));
    let number = |digits: &str| {
        let digits_only = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits_only.then(|| digits.parse::<u64>().ok()).flatten()
    };
    let integer = number(integer).filter(|&integer| integer <= 100)?;
    if decimals.len() > DECIMALS {
        return None;
    }
    let scale = 10u128.pow(DECIMALS as u32);
    let fraction = number(decimals)? * 10u64.pow((DECIMALS - decimals.len()) as u32);
    let share = u128::from(integer) * scale + u128::from(fraction);
    let exact = share <= 100 * scale;
    exact.then(|| u64::try_from(u128::from(whole) * share / (100 * scale)).ok())?
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn percentages_are_exact() {
        assert_eq!(part("50", 7), Some(3));
        assert_eq!(part("100", u64::MAX), Some(u64::MAX));
        assert_eq!(
            part("99.999999999", 1_000_000_000_000),
            Some(999_999_999_990)
        );
        assert_eq!(part("0.5", 1000), Some(5));
        for none in [
            "",
            "101",
            "100.1",
            "-1",
            "+5",
            "1e2",
            "5.",
            "1.0000000001",
            "x",
        ] {
            assert_eq!(part(none, 10), None, "{none}");
        }
    }
}
