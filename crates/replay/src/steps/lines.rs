//! Iterates over a window of a run by source lines. The steps are all arrivals at lines, in all
//! functions, in order.
//!
//! The module [`lines`](afterimage_profile::lines) defines arrivals. So the steps at a line are the
//! line's [`ArrivalTimes`](crate::whole_path::ArrivalTimes).

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::error::Error;
use std::rc::Rc;

use afterimage_ids::{BlockId, EntityRef, FuncId, OpId};
use afterimage_profile::body::decode;
use afterimage_profile::lines::{Arrival, CallLines, arrivals, line_of};
use afterimage_profile::walk::{code_blocks, positions};
use afterimage_profile::{Line, ProfileError, Source, Stop};
use afterimage_program::{BlockKind, Cfg, Program};
use afterimage_wpp::{Activation, Cursor, NodeFilter, PathError, Segments, Visit, WholePath};

use super::{Run, Within};
use crate::whole_path::{TraceError, Visits, Window};

/// The number of consecutive paths without lines to walk one by one. After that, functions without
/// lines are skipped as a whole.
const FRUITLESS: u32 = 4096;

/// An arrival at a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineStep {
    /// The time of the block in which the line's code begins.
    pub time: u64,
    /// The operator after the step, or `None` if the run ended before reaching this operator.
    pub op: Option<OpId>,
    /// The function that contains the line's code.
    pub function: FuncId,
    /// The line at which control arrived.
    pub line: Line,
    /// The number of activations that enclose the step's activation.
    pub depth: usize,
    /// The execution of the node that contains the block.
    pub visit: Visit,
}

/// The reason why there are no more steps.
#[derive(Debug, thiserror::Error)]
pub enum LineStepsError<E: Error + 'static> {
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
    /// The window cannot be enumerated.
    #[error(transparent)]
    Trace(#[from] TraceError<E>),
    /// The module's bytes do not match the program.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// Only one of two edges between the same blocks is an arrival.
    #[error(
        "the path does not show whether function {0} reached line {1}: two edges connect the \
         same blocks"
    )]
    Ambiguous(u32, u32),
}

/// The calls that a walk by lines enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enter {
    /// All calls are entered.
    #[default]
    Calls,
    /// Only calls to this function.
    Function(FuncId),
    /// No calls. The walk follows only the activation of the window's first line and the
    /// activations to which it returns. Going backward, it follows the activation of the window's
    /// last line and its callers.
    Nothing,
    /// Only calls that leave at most this many activations open, including the callee's. If fewer
    /// activations are open, the limit drops to their number.
    UpTo(usize),
}

/// The steps to return.
#[derive(Clone, Copy, Debug)]
pub struct WantedLines {
    /// The window, which must be a part of the run.
    pub window: Window,
    /// The wanted parts of the window's first and last block.
    pub within: Within,
    /// Whether to go backward.
    pub reverse: bool,
    /// The calls to enter.
    pub enter: Enter,
    /// The function whose code the steps must be in, if given. Requires [`Enter::Calls`].
    pub function: Option<FuncId>,
}

/// Iterates over the arrivals at lines in a window, in order of time or backward.
///
/// A step takes O(blocks of the executed path), or O(depth of the grammar) if calls are skipped.
/// Long sequences of paths without lines are also skipped. The first such sequence takes
/// O(operators of all executed functions) to find the functions that have lines.
pub struct LineSteps<'a, S: Segments> {
    run: Run<'a, S>,
    source: &'a dyn Source,
    /// The place where the run ended in its last block.
    stop: Option<Stop>,
    wanted: WantedLines,
    tables: LineTables,
    visits: Enumeration<'a, S>,
    /// The largest number of activations that enclose a step's activation, if calls are skipped.
    level: usize,
    /// The nodes to examine in the activation at a depth, if not all.
    only: Option<(usize, NodeFilter)>,
    found: VecDeque<LineStep>,
    /// The number of paths without lines since the last path with lines.
    fruitless: u32,
    /// The number of consecutive paths without lines after which functions without lines are
    /// skipped.
    patience: u32,
}

/// The enumeration of the executed paths of a window.
enum Enumeration<'a, S: Segments> {
    All(Box<Visits<'a, S>>),
    /// Callees are skipped.
    Over {
        cursor: Cursor<'a, S>,
        begun: bool,
    },
}

/// The places at which control arrives at lines, by function. Walks that share the tables read each
/// table only once.
#[derive(Clone, Default)]
pub struct LineTables(Rc<RefCell<HashMap<FuncId, Rc<Table>>>>);

impl LineTables {
    fn get(
        &self,
        code: (&Program, &[u8]),
        source: &dyn Source,
        function: FuncId,
    ) -> Result<Rc<Table>, ProfileError> {
        if let Some(known) = self.0.borrow().get(&function) {
            return Ok(Rc::clone(known));
        }
        let table = Rc::new(read(code, source, function)?);
        self.0.borrow_mut().insert(function, Rc::clone(&table));
        Ok(table)
    }

    /// Returns the operators that may follow a step when a function executes these blocks
    /// consecutively, with the lines of these steps. The earlier blocks may be any blocks.
    ///
    /// # Errors
    /// Returns an error if the module's bytes do not match the program.
    pub fn arrivals(
        &self,
        code: (&Program, &[u8]),
        source: &dyn Source,
        (function, blocks): (FuncId, &[BlockId]),
    ) -> Result<Vec<(OpId, Line)>, ProfileError> {
        let table = self.get(code, source, function)?;
        let mut found = Vec::new();
        let mut before = None;
        let mut arrived = BTreeSet::new();
        for &block in blocks {
            match before.replace(block) {
                Some(before) => match table.between(before, block) {
                    Ok(lines) => arrived.extend(lines.into_iter().flat_map(|lines| lines.iter())),
                    // Only one of the two edges between the blocks is an arrival.
                    Err(_) => {
                        let over = table.over.get(&(before, block));
                        let caught = table.caught.get(&block).and_then(Option::as_ref);
                        let lines = over.into_iter().chain(caught);
                        arrived.extend(lines.flat_map(|lines| lines.iter()));
                    }
                },
                None => arrived.extend(table.entered.get(&block).into_iter().flatten()),
            };
            if let Some(&first) = table.first.get(&block) {
                let lines = std::mem::take(&mut arrived).into_iter();
                found.extend(lines.map(|line| (first, line)));
            }
            found.extend(table.inside.get(&block).into_iter().flatten());
        }
        Ok(found)
    }

    /// Whether a function has code with lines. `code` consists of the program and the module from
    /// which it was parsed.
    ///
    /// # Errors
    /// Returns an error if the module's bytes do not match the program.
    pub fn has_lines(
        &self,
        code: (&Program, &[u8]),
        source: &dyn Source,
        function: FuncId,
    ) -> Result<bool, ProfileError> {
        Ok(!self.get(code, source, function)?.first.is_empty())
    }
}

/// Lines at which control arrives at the same place. Lines of inlined calls come first, and the
/// outermost call is the first of them.
type Lines = Rc<[Line]>;

/// The places in a function where control arrives at lines.
#[derive(Default)]
struct Table {
    entry: Option<Lines>,
    /// The operators in each block at which control arrives, ascending. An operator may occur
    /// several times, in the order of [`Lines`].
    inside: HashMap<BlockId, Vec<(OpId, Line)>>,
    /// The pairs of blocks joined by an edge that is an arrival. `not_over` contains the pairs
    /// joined by any other edge.
    over: HashMap<(BlockId, BlockId), Lines>,
    not_over: HashSet<(BlockId, BlockId)>,
    /// The first operator of each block that has a position.
    first: HashMap<BlockId, OpId>,
    /// The blocks before which the activation may have arrived at lines without executing their
    /// code, with these lines.
    entered: HashMap<BlockId, BTreeSet<Line>>,
    /// The blocks that an exception may leave for a dispatch vertex.
    throws: HashSet<BlockId>,
    /// The blocks to which dispatch vertices lead, each with the lines at which control then
    /// arrives.
    caught: HashMap<BlockId, Option<Lines>>,
}

impl Table {
    /// Returns the lines at which an activation arrives on its way from one block to another.
    /// Returns `Err` with a line if the blocks do not determine whether the activation arrives.
    fn between(&self, from: BlockId, to: BlockId) -> Result<Option<&Lines>, Line> {
        let over = self.over.get(&(from, to)).map(Some);
        let not_over = self.not_over.contains(&(from, to)).then_some(None);
        let thrown = self.throws.contains(&from);
        let thrown = thrown.then(|| self.caught.get(&to)).flatten();
        let ways = [over, not_over, thrown.map(Option::as_ref)];
        let mut ways = ways.into_iter().flatten();
        let first = ways.next().flatten();
        let line = |lines: &Lines| lines.last().copied();
        match ways.find(|way| *way != first) {
            Some(other) => first.or(other).and_then(line).map_or(Ok(None), Err),
            None => Ok(first),
        }
    }
}

impl Table {
    fn blocks_after_arrivals(&self, cfg: &Cfg) -> HashMap<BlockId, BTreeSet<Line>> {
        let over = self.over.iter().map(|(&(_, to), lines)| (to, lines));
        let caught = self.caught.iter();
        let caught = caught.filter_map(|(&to, lines)| Some((to, lines.as_ref()?)));
        let root = self.entry.iter().map(|lines| (cfg.graph.root(), lines));
        let begun = over.chain(caught).chain(root);
        let mut work = Vec::from_iter(begun.map(|(to, lines)| (to, lines.to_vec())));
        let mut entered: HashMap<BlockId, BTreeSet<Line>> = HashMap::new();
        while let Some((block, mut lines)) = work.pop() {
            let known = entered.entry(block).or_default();
            lines.retain(|line| known.insert(*line));
            // Code without a position passes the arrivals on.
            if !lines.is_empty() && !self.first.contains_key(&block) {
                let next = cfg.graph.successors(block);
                work.extend(next.map(|to| (to, lines.clone())));
            }
        }
        entered
    }
}

/// The progress of an activation.
#[derive(Clone, Debug, Default)]
struct Way {
    /// The last block that the activation executed.
    block: Option<BlockId>,
    /// The lines at which the activation arrived, with the time, until code of the lines follows.
    arrived: Option<(Lines, u64)>,
}

impl Way {
    fn go_on<E: Error>(
        &mut self,
        table: &Table,
        function: FuncId,
        time: u64,
        to: BlockId,
    ) -> Result<(), LineStepsError<E>> {
        let Some(from) = self.block.replace(to) else {
            return Ok(());
        };
        match table.between(from, to) {
            Ok(None) => Ok(()),
            Ok(Some(lines)) => {
                self.arrived = Some((Rc::clone(lines), time));
                Ok(())
            }
            Err(line) => Err(LineStepsError::Ambiguous(function.as_u32(), line.number)),
        }
    }
}

impl<'a, S: Segments> LineSteps<'a, S> {
    /// Creates an iterator over the requested steps of a run. `source` maps code to lines. `stop`
    /// is the place where the run ended in its last block.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn new(
        run: Run<'a, S>,
        source: &'a dyn Source,
        stop: Option<Stop>,
        wanted: WantedLines,
    ) -> Result<Self, LineStepsError<S::Error>> {
        Self::sharing(LineTables::default(), run, source, stop, wanted)
    }

    /// Like [`new`](Self::new), but shares the tables with other walks over the same program and
    /// the same source.
    ///
    /// # Errors
    /// Returns the same errors as [`new`](Self::new).
    pub fn sharing(
        tables: LineTables,
        run: Run<'a, S>,
        source: &'a dyn Source,
        stop: Option<Stop>,
        wanted: WantedLines,
    ) -> Result<Self, LineStepsError<S::Error>> {
        let mut window = wanted.window;
        let mut cursor = run.path.cursor();
        cursor.seek(if wanted.reverse {
            window.last
        } else {
            window.first
        })?;
        let mut level = usize::MAX;
        if let Enter::UpTo(most) = wanted.enter {
            level = most;
        } else if wanted.enter != Enter::Calls {
            // The walk begins at code with lines.
            let all = WantedLines {
                enter: Enter::Calls,
                function: None,
                ..wanted
            };
            let mut all = Self::sharing(tables.clone(), run, source, stop, all)?;
            if let Some(first) = all.next()? {
                cursor.seek(first.time)?;
                level = cursor.depth();
                if wanted.reverse {
                    window.last = first.time
                } else {
                    window.first = first.time
                }
            }
        }
        let visits = match wanted.enter {
            Enter::Calls | Enter::Function(_) => {
                let visits = Visits::new(run.path, window, wanted.reverse, wanted.function);
                Enumeration::All(Box::new(visits.map_err(TraceError::from)?))
            }
            Enter::Nothing | Enter::UpTo(_) => Enumeration::Over {
                cursor,
                begun: false,
            },
        };
        Ok(Self {
            run,
            source,
            stop,
            wanted,
            tables,
            visits,
            level,
            only: None,
            found: VecDeque::new(),
            fruitless: 0,
            patience: FRUITLESS,
        })
    }

    /// Sets the number of paths without lines to pass before functions without lines are skipped.
    /// The default is 4,096. The number does not affect the steps.
    pub fn with_patience(mut self, paths: u32) -> Self {
        self.patience = paths;
        self
    }

    /// From now on, examines only executions of these nodes in the activation at this depth. The
    /// outermost activation has depth 1. Has no effect on walks that enter all calls.
    pub fn keep_only(&mut self, depth: usize, nodes: NodeFilter) {
        self.only = Some((depth, nodes));
    }

    /// Returns the next step, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read, or does not determine an arrival.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail, and ends when it does"
    )]
    pub fn next(&mut self) -> Result<Option<LineStep>, LineStepsError<S::Error>> {
        loop {
            if let Some(step) = self.found.pop_front() {
                return Ok(Some(step));
            }
            let Some((visit, depth)) = self.next_visit()? else {
                return Ok(None);
            };
            let function = self.run.path.nodes()[visit.node].function;
            let is_entered = self.wanted.enter == Enter::Function(function);
            if depth > self.level && !is_entered {
                continue;
            }
            if self.level < usize::MAX {
                self.level = self.level.min(depth);
            }
            let has_lines = self.steps_of(visit, depth)?;
            if has_lines {
                self.fruitless = 0;
            } else {
                self.fruitless = self.fruitless.saturating_add(1);
            }
            if self.fruitless == self.patience {
                self.skip_functions_without_lines()?;
            }
        }
    }

    fn skip_functions_without_lines(&mut self) -> Result<(), LineStepsError<S::Error>> {
        if self.wanted.function.is_some() || self.wanted.enter != Enter::Calls {
            return Ok(());
        }
        let nodes = self.run.path.nodes().values();
        let executed = HashSet::<FuncId>::from_iter(nodes.map(|node| node.function));
        let mut with_lines = HashSet::new();
        for function in executed {
            if !self.table(function)?.first.is_empty() {
                with_lines.insert(function);
            }
        }
        if let Enumeration::All(visits) = &mut self.visits {
            visits.keep_only(with_lines).map_err(TraceError::from)?;
        }
        Ok(())
    }

    /// Returns the next executed path, and the number of open activations, including its own.
    fn next_visit(&mut self) -> Result<Option<(Visit, usize)>, LineStepsError<S::Error>> {
        match &mut self.visits {
            Enumeration::All(visits) => {
                let visit = visits.next_visit()?;
                Ok(visit.map(|visit| (visit, visits.depth() + 1)))
            }
            Enumeration::Over { cursor, begun } => {
                let visit = match (std::mem::replace(begun, true), self.wanted.reverse) {
                    (false, _) => cursor.visit(),
                    (true, false) => {
                        let depth = cursor.depth();
                        let mut next = match &self.only {
                            Some((own, nodes)) if *own == depth => {
                                match cursor.next_among(nodes)? {
                                    Some(next) => Some(next),
                                    None => cursor.skip_activation()?,
                                }
                            }
                            _ => cursor.next()?,
                        };
                        while next.is_some() && cursor.depth() > self.level {
                            next = cursor.skip_activation()?;
                        }
                        next
                    }
                    (true, true) => {
                        let own = match &self.only {
                            _ if cursor.depth() > self.level => None,
                            Some((own, nodes)) if *own == cursor.depth() => {
                                cursor.previous_among(nodes)?
                            }
                            _ => cursor.previous_in_activation()?,
                        };
                        match own {
                            Some(visit) => Some(visit),
                            None => {
                                let mut next = before_activation(cursor)?;
                                while next.is_some() && cursor.depth() > self.level {
                                    next = before_activation(cursor)?;
                                }
                                next
                            }
                        }
                    }
                };
                let window = self.wanted.window;
                let visit = visit.filter(|at| at.start <= window.last && at.last() >= window.first);
                Ok(visit.map(|visit| (visit, cursor.depth())))
            }
        }
    }

    /// Finds the steps of an executed path. Returns `false` if its function has no lines.
    fn steps_of(&mut self, visit: Visit, depth: usize) -> Result<bool, LineStepsError<S::Error>> {
        let node = &self.run.path.nodes()[visit.node];
        let function = node.function;
        let table = self.table(function)?;
        if table.first.is_empty() {
            return Ok(false);
        }
        let mut way = self.before(visit, &table)?;
        let mut found = Vec::new();
        let length = self.run.path.length();
        for (time, &block) in (visit.start..).zip(&*node.blocks) {
            way.go_on(&table, function, time, block)?;
            let mut step = |time, op, line| {
                let WantedLines { window, within, .. } = self.wanted;
                if (window.first..=window.last).contains(&time) && within.has(time, op) {
                    found.push(LineStep {
                        time,
                        op,
                        function,
                        line,
                        depth: depth - 1,
                        visit,
                    });
                }
            };
            if let Some(&first) = table.first.get(&block) {
                if let Some((lines, _)) = way.arrived.take() {
                    lines.iter().for_each(|&line| step(time, Some(first), line));
                }
            } else if let Some((lines, time)) = way.arrived.as_ref().filter(|_| time == length) {
                lines.iter().for_each(|&line| step(*time, None, line));
            }
            let stop = self.stop.filter(|_| time == length);
            let stop = stop.filter(|stop| (stop.function, stop.block) == (function, block));
            for &(op, line) in table.inside.get(&block).into_iter().flatten() {
                if stop.is_none_or(|stop| op < stop.next) {
                    step(time, Some(op), line);
                }
            }
        }
        if self.wanted.reverse {
            found.reverse();
        }
        self.found.extend(found);
        Ok(true)
    }

    /// Returns the progress of an activation before a path.
    fn before(&self, visit: Visit, table: &Table) -> Result<Way, LineStepsError<S::Error>> {
        let nodes = self.run.path.nodes();
        let function = nodes[visit.node].function;
        let known = self.run.program.function(function);
        let root = known.map(|known| known.cfg.graph.root());
        let begins = |visit: Visit| nodes[visit.node].blocks.first() == root.as_ref();
        // These are the blocks executed since the last code with a position, the last block first.
        let mut blocks: Vec<(u64, BlockId)> = Vec::new();
        let mut begun = begins(visit).then_some(visit.start);
        if begun.is_none() {
            let mut cursor = self.run.path.cursor();
            cursor.seek(visit.start)?;
            'back: while let Some(visit) = cursor.previous_in_activation()? {
                let own = (visit.start..).zip(&*nodes[visit.node].blocks);
                for (time, &block) in Vec::from_iter(own).into_iter().rev() {
                    blocks.push((time, block));
                    if table.first.contains_key(&block) {
                        break 'back;
                    }
                }
                begun = begins(visit).then_some(visit.start);
            }
        }
        let mut way = Way::default();
        let mut blocks = blocks.into_iter().rev().peekable();
        match begun {
            // The block has code with a position.
            Some(_)
                if blocks
                    .peek()
                    .is_some_and(|(_, block)| table.first.contains_key(block)) => {}
            Some(time) => way.arrived = table.entry.clone().map(|lines| (lines, time)),
            None => {}
        }
        for (time, block) in blocks {
            way.go_on(table, function, time, block)?;
        }
        Ok(way)
    }

    fn table(&self, function: FuncId) -> Result<Rc<Table>, ProfileError> {
        let code = (self.run.program, self.run.module);
        self.tables.get(code, self.source, function)
    }
}

/// Reads the table of a function. O(operators + edges of the function).
fn read(
    (program, module): (&Program, &[u8]),
    source: &dyn Source,
    function: FuncId,
) -> Result<Table, ProfileError> {
    let Some(code) = program.function(function) else {
        return Ok(Table::default());
    };
    let cfg = &code.cfg;
    let mut table = Table::default();
    let (mut body, mut operators) = (Vec::new(), Vec::new());
    decode(program, module, code, &mut body)?;
    positions(code, &body, source, &mut operators);
    if operators.iter().all(|operator| line_of(operator).is_none()) {
        return Ok(table);
    }
    let calls = CallLines::of(&operators, source);
    let mut entry = Vec::new();
    let mut edges: HashMap<_, Vec<Line>> = HashMap::new();
    for (line, arrival) in arrivals(code, (&operators, source), &calls) {
        match arrival {
            Arrival::Entry => entry.push(line),
            Arrival::Over(edge) => edges.entry(edge).or_default().push(line),
            Arrival::At(op) => {
                if let Some(block) = code.block_of(op) {
                    table.inside.entry(block).or_default().push((op, line));
                }
            }
        }
    }
    table.entry = Some(entry.into()).filter(|lines: &Lines| !lines.is_empty());
    let edges = edges.into_iter();
    let edges: HashMap<_, Lines> = edges.map(|(edge, lines)| (edge, lines.into())).collect();
    for (id, edge) in cfg.edges.iter() {
        let pair = (edge.from, edge.to);
        match edges.get(&id) {
            Some(lines) => drop(table.over.insert(pair, Rc::clone(lines))),
            None => drop(table.not_over.insert(pair)),
        }
        let is_dispatch = |block| matches!(cfg.blocks[block].kind, BlockKind::Dispatch(_));
        if is_dispatch(edge.to) {
            table.throws.insert(edge.from);
        }
        if is_dispatch(edge.from) {
            table.caught.insert(edge.to, edges.get(&id).cloned());
        }
    }
    for (id, block) in code_blocks(code) {
        let mut all = operators[block.ops.start.index()..block.ops.end.index()].iter();
        if let Some(first) = all.find(|operator| operator.is_step()) {
            table.first.insert(id, first.op);
        }
    }
    table.entered = table.blocks_after_arrivals(cfg);
    Ok(table)
}

/// Goes to the last node executed before the innermost activation began.
fn before_activation<S: Segments>(
    cursor: &mut Cursor<'_, S>,
) -> Result<Option<Visit>, PathError<S::Error>> {
    match cursor.innermost()? {
        Some(Activation { entered, .. }) => cursor.seek(entered - 1),
        None => Ok(None),
    }
}

/// Returns the activation that contains a step.
///
/// # Errors
/// Returns an error if the path cannot be read.
pub fn activation_of<S: Segments>(
    path: &WholePath<S>,
    step: &LineStep,
) -> Result<Option<Activation>, PathError<S::Error>> {
    let mut cursor = path.cursor();
    cursor.seek(step.time)?;
    cursor.innermost()
}
