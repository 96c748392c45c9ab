//! Computes slices of limited depth from the stored values, without following the run.
//!
//! A [slice](super::backward) of limited depth must follow the run back to the place where a wanted
//! value was made, even if that place is only a few steps away. Here each step is looked up
//! individually, so time depends only on the size of the slice. Some cases still require following
//! the run, because slices treat them differently from the stored values. Examples are bytes moved
//! by `memory.copy`, atomic operators, tables that are written, and exceptions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::{Code, NodeEnd, Range};
use afterimage_program::Callee;
use afterimage_slice::{Criterion, Follows, Reach, Slice, Want};
use wasmparser::Operator;

use afterimage_replay::values::{
    Controller, Controllers, Execution, HostReads, HostReadsError, Instance, Kind, Origin,
    RecordedValues, Statement, ValuesError, end_of, moves, moves_of, operands, origin_of, reads,
};

/// The maximum number of parts that the host may have read in a call.
const PARTS: u64 = 1000;

/// A point in the slice, or a point through which the search continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Point {
    /// An instruction of the execution that begins at this time.
    Inst(u64, usize),
    /// The end of the node whose execution begins at this time. With `true`, all operands of the
    /// end are wanted. With `false`, only the fact that it was reached is wanted.
    End(u64, bool),
    /// A block of the node whose execution begins at this time, by its position.
    Block(u64, usize),
}

impl Point {
    /// Returns the time at which the point's execution begins.
    pub(super) fn start(self) -> u64 {
        let (Self::Inst(start, _) | Self::End(start, _) | Self::Block(start, _)) = self;
        start
    }
}

/// The kind of dependence of one point on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dependence {
    /// The point uses a value that the other point produced.
    Data,
    /// The point reads from an address that the other point produced.
    Address,
    /// The point writes to an address that the other point produced.
    Destination,
    /// The point was executed because of the other point.
    Control,
}

/// Finds the points on which a point depends directly.
pub(super) struct Steps<'n, 'a> {
    values: &'n RecordedValues<'a>,
    host: &'n HostReads<'n, 'a>,
    controllers: Controllers<'a>,
    module: &'a [u8],
    /// Whether the program has code that writes to tables; `None` until known.
    tables: Option<bool>,
    follows: Follows,
    instances: HashMap<u64, Instance>,
    /// The points that led to the execution of each block, by the block's time. `None` means that
    /// the run must be followed.
    deciders: HashMap<u64, Option<Vec<Point>>>,
    /// The dependences found for the current point.
    found: Vec<(Point, Dependence)>,
    initial: Vec<Range>,
}

/// A slice that grows from its criteria.
struct Near<'n, 'a> {
    steps: Steps<'n, 'a>,
    /// The points that still have to be examined, by remaining depth.
    waiting: BTreeMap<u8, Vec<Point>>,
    seen: HashSet<Point>,
    /// Executions of operators in the slice, which are instructions and ends of nodes.
    marked: BTreeSet<(u64, Option<usize>)>,
}

/// Signals that the run must be followed, because slices treat a point differently from the stored
/// values.
pub(super) struct Left;

/// The reason why a step was not taken.
pub(super) enum Stop {
    Left,
    Error(HostReadsError),
}

impl From<Left> for Stop {
    fn from(_: Left) -> Self {
        Self::Left
    }
}

impl From<HostReadsError> for Stop {
    fn from(error: HostReadsError) -> Self {
        if error.is_outside() {
            Self::Left
        } else {
            Self::Error(error)
        }
    }
}

impl From<ValuesError> for Stop {
    fn from(error: ValuesError) -> Self {
        HostReadsError::from(error).into()
    }
}

/// Computes the slice of [`backward`](super::backward) for criteria with a limited reach. Returns
/// `None` if the slice has more than about `most` executions, or if the run must be followed.
///
/// Takes some tens of microseconds per execution, plus the time to open stored data.
///
/// # Errors
/// Returns an error if the recording is damaged.
pub fn near<'v, 'a>(
    host: &HostReads<'v, 'a>,
    module: &'a [u8],
    follows: Follows,
    criteria: &[Criterion],
    most: usize,
) -> Result<Option<Slice>, HostReadsError> {
    let mut near = Near {
        steps: Steps::new(host, module, follows),
        waiting: BTreeMap::new(),
        seen: HashSet::new(),
        marked: BTreeSet::new(),
    };
    match near.all(criteria, most) {
        Ok(slice) => Ok(Some(slice)),
        Err(Stop::Left) => Ok(None),
        Err(Stop::Error(error)) => Err(error),
    }
}

impl Near<'_, '_> {
    fn all(&mut self, criteria: &[Criterion], most: usize) -> Result<Slice, Stop> {
        for criterion in criteria {
            for (point, _) in self.steps.of_criterion(criterion, false)? {
                self.want(point, criterion.reach)?;
            }
        }
        // Points with the longest remaining reach come first, so that no point is examined twice.
        while let Some((left, points)) = self.waiting.pop_last() {
            for point in points {
                if self.seen.len() > most {
                    return Err(Stop::Left);
                }
                self.go_on(point, Reach::of_depth(left).ok_or(Left)?)?;
            }
        }
        self.slice()
    }

    /// Adds a wanted point, with the reach that remains for it.
    fn want(&mut self, point: Point, reach: Reach) -> Result<(), Stop> {
        if reach.is_some() && !self.seen.contains(&point) {
            let left = reach.depth().ok_or(Left)?;
            self.waiting.entry(left).or_default().push(point);
        }
        Ok(())
    }

    /// Continues from a point in the slice.
    fn go_on(&mut self, point: Point, reach: Reach) -> Result<(), Stop> {
        if !self.seen.insert(point) {
            return Ok(());
        }
        if self.steps.is_left(point)? {
            return Err(Stop::Left);
        }
        match point {
            Point::Inst(start, inst) => drop(self.marked.insert((start, Some(inst)))),
            Point::End(start, _) if self.steps.is_statement(start)? => {
                self.marked.insert((start, None));
            }
            Point::End(..) | Point::Block(..) => {}
        }
        let next = reach.next();
        if next.is_some() {
            for (point, _) in self.steps.of(point)? {
                self.want(point, next)?;
            }
        }
        Ok(())
    }

    /// Returns the slice that was found.
    fn slice(&mut self) -> Result<Slice, Stop> {
        let mut slice = Slice::default();
        let mut seen = HashSet::new();
        for (start, inst) in std::mem::take(&mut self.marked) {
            let instance = self.steps.instance(start)?;
            let compiled = self.steps.values.compiled(instance.node)?;
            let code = &compiled.code;
            let op = match inst {
                Some(inst) => code.insts.get(inst).ok_or(Left)?.op,
                None => {
                    let op = end_of(self.steps.values, instance)?;
                    // The last instruction of a function may also be its end, which is then not a
                    // separate statement.
                    if code.insts.iter().any(|inst| inst.op == op) {
                        continue;
                    }
                    op
                }
            };
            // An atomic operator has several instructions.
            if seen.insert((start, op)) {
                *slice.operators.entry((code.function, op)).or_default() += 1;
            }
        }
        slice.initial = joined(std::mem::take(&mut self.steps.initial));
        Ok(slice)
    }
}

impl<'n, 'a> Steps<'n, 'a> {
    /// Creates a finder without any points.
    pub(super) fn new(host: &'n HostReads<'n, 'a>, module: &'a [u8], follows: Follows) -> Self {
        Self {
            values: host.values(),
            host,
            controllers: Controllers::new(host.values().program()),
            module,
            tables: None,
            follows,
            instances: HashMap::new(),
            deciders: HashMap::new(),
            found: Vec::new(),
            initial: Vec::new(),
        }
    }

    /// Returns the points that a criterion wants. The node in which the run ended may have been
    /// executed only in part. Its executed part counts only if `partly` is true.
    pub(super) fn of_criterion(
        &mut self,
        criterion: &Criterion,
        partly: bool,
    ) -> Result<Vec<(Point, Dependence)>, Stop> {
        let start = criterion.start;
        let instance = self.values.at(start)?.ok_or(Left)?;
        let path = self.values.path();
        let is_whole = start + path.nodes()[instance.node].length() <= path.length();
        if instance.time != start || !is_whole && !partly {
            return Err(Stop::Left);
        }
        if !is_whole {
            for want in &criterion.wants {
                let block = match *want {
                    Want::Inst(inst) => self.block_of(instance, inst)?,
                    Want::Block(block) => block,
                    Want::Variable(_) => 0,
                    Want::End | Want::Bytes(..) | Want::Global(..) => return Err(Stop::Left),
                };
                if start + block as u64 > path.length() {
                    return Err(Stop::Left);
                }
            }
        }
        self.instances.insert(start, instance);
        self.found.clear();
        for want in &criterion.wants {
            match *want {
                Want::Inst(inst) => self.add(Point::Inst(start, inst), Dependence::Data),
                Want::End => self.add(Point::End(start, true), Dependence::Data),
                Want::Block(block) => self.add(Point::Block(start, block), Dependence::Control),
                // Without data dependences, arguments are not followed.
                Want::Variable(_) if !self.follows.data => return Err(Stop::Left),
                Want::Variable(variable) => {
                    if self.follows.control {
                        for moved in moves_of(self.values, instance, variable, None)? {
                            self.controlled(&moved)?;
                        }
                    }
                    let origin = origin_of(self.values, instance, variable)?;
                    self.origin(origin, Dependence::Data)?;
                }
                Want::Bytes(..) | Want::Global(..) => return Err(Stop::Left),
            }
        }
        Ok(std::mem::take(&mut self.found))
    }

    /// Returns the direct dependences of a point.
    pub(super) fn of(&mut self, point: Point) -> Result<Vec<(Point, Dependence)>, Stop> {
        // The search from an earlier point may have stopped halfway.
        self.found.clear();
        match point {
            Point::Inst(start, inst) => {
                let instance = self.instance(start)?;
                let compiled = self.values.compiled(instance.node)?;
                let of = compiled.code.insts.get(inst).ok_or(Left)?;
                let block = self.block_of(instance, inst)?;
                let kind = Kind::Inst(inst);
                let statement = Statement {
                    kind,
                    block: block as u64,
                };
                self.data(
                    instance,
                    statement,
                    (where_to(of.code), writes(of.code), true),
                )?;
                self.control(instance, block)?;
            }
            Point::End(start, takes) => self.end(start, takes)?,
            Point::Block(start, block) => {
                let instance = self.instance(start)?;
                self.control(instance, block)?;
            }
        }
        Ok(std::mem::take(&mut self.found))
    }

    /// Returns the position of the block that contains an instruction in an execution.
    fn block_of(&self, instance: Instance, inst: usize) -> Result<usize, Stop> {
        let compiled = self.values.compiled(instance.node)?;
        let of = compiled.code.insts.get(inst).ok_or(Left)?;
        let function = self.values.program().function(compiled.code.function);
        let block = function.ok_or(Left)?.block_of(of.op);
        let node = &self.values.path().nodes()[instance.node];
        let position = node.blocks.iter().position(|&b| Some(b) == block);
        Ok(position.ok_or(Left)?)
    }

    /// Returns the operator of a point. Returns `None` if the point is only a block, or an end that
    /// is not a statement.
    pub(super) fn operator(&mut self, point: Point) -> Result<Option<(FuncId, OpId)>, Stop> {
        let instance = self.instance(point.start())?;
        let compiled = self.values.compiled(instance.node)?;
        let op = match point {
            Point::Inst(_, inst) => compiled.code.insts.get(inst).ok_or(Left)?.op,
            Point::End(..) if matches!(compiled.code.end, NodeEnd::Next | NodeEnd::Trap) => {
                return Ok(None);
            }
            Point::End(..) => end_of(self.values, instance)?,
            Point::Block(..) => return Ok(None),
        };
        // The last instruction of a function may also be its end, which is then not a separate
        // statement.
        let is_end = matches!(point, Point::End(..));
        if is_end && compiled.code.insts.iter().any(|inst| inst.op == op) {
            return Ok(None);
        }
        Ok(Some((compiled.code.function, op)))
    }

    /// Returns the operator of a point, as [`operator`](Self::operator) returns it, with the time
    /// of its block.
    pub(super) fn spot(&mut self, point: Point) -> Result<Option<(FuncId, OpId, u64)>, Stop> {
        let Some((function, op)) = self.operator(point)? else {
            return Ok(None);
        };
        let instance = self.instance(point.start())?;
        let node = &self.values.path().nodes()[instance.node];
        let code = self.values.program().function(function).ok_or(Left)?;
        let block = code.block_of(op);
        let position = node.blocks.iter().rposition(|&one| Some(one) == block);
        let position = position.ok_or(Left)?;
        Ok(Some((function, op, instance.time + position as u64)))
    }

    /// Whether slices treat a point differently from the stored values.
    fn is_left(&mut self, point: Point) -> Result<bool, Stop> {
        match point {
            Point::Inst(start, inst) => {
                let instance = self.instance(start)?;
                let compiled = self.values.compiled(instance.node)?;
                let insts = &compiled.code.insts;
                let of = insts.get(inst).ok_or(Left)?;
                // The instructions of an atomic operator are next to each other.
                let beside = [inst.checked_sub(1), Some(inst + 1)];
                let mut beside = beside.into_iter().flatten().filter_map(|at| insts.get(at));
                Ok(is_left(of.code) || beside.any(|other| other.op == of.op))
            }
            Point::End(start, _) => {
                let instance = self.instance(start)?;
                let compiled = self.values.compiled(instance.node)?;
                Ok(match &compiled.code.end {
                    NodeEnd::Throw { .. } | NodeEnd::Rethrow { .. } => true,
                    NodeEnd::Call { callee, .. } | NodeEnd::TailCall { callee, .. } => {
                        matches!(callee, Callee::Indirect { .. }) && self.writes_tables()
                    }
                    NodeEnd::Next | NodeEnd::Trap | NodeEnd::Return(_) => false,
                })
            }
            Point::Block(..) => Ok(false),
        }
    }

    /// Whether the end of an execution is a separate statement, such as a call or a return.
    fn is_statement(&mut self, start: u64) -> Result<bool, Stop> {
        let instance = self.instance(start)?;
        let compiled = self.values.compiled(instance.node)?;
        Ok(!matches!(compiled.code.end, NodeEnd::Next | NodeEnd::Trap))
    }

    fn add(&mut self, point: Point, how: Dependence) {
        self.found.push((point, how));
    }

    /// Continues from the end of an execution.
    fn end(&mut self, start: u64, takes: bool) -> Result<(), Stop> {
        let instance = self.instance(start)?;
        let compiled = self.values.compiled(instance.node)?;
        let kind = match &compiled.code.end {
            NodeEnd::Call { callee, .. } | NodeEnd::TailCall { callee, .. } => Kind::Call(*callee),
            NodeEnd::Return(_) => Kind::Return,
            NodeEnd::Next | NodeEnd::Trap => return Ok(()),
            NodeEnd::Throw { .. } | NodeEnd::Rethrow { .. } => return Err(Stop::Left),
        };
        let node = &self.values.path().nodes()[instance.node];
        let last = node.blocks.len().checked_sub(1).ok_or(Left)?;
        let block = last as u64;
        let statement = Statement { kind, block };
        self.data(instance, statement, (0, false, takes))?;
        if takes && matches!(kind, Kind::Call(_)) && self.follows.data {
            let (parts, besides) = self.host.parts(instance, PARTS)?;
            if besides > 0 {
                return Err(Stop::Left);
            }
            for part in parts {
                match part.origin {
                    Origin::Initial => self.initial.push(part.range),
                    origin => self.origin(origin, Dependence::Data)?,
                }
            }
        }
        self.control(instance, last)
    }

    /// Marks the operands of a statement and the data that it reads as wanted. The first `where_to`
    /// operands are addresses. The arguments that the statement passes on are wanted only if
    /// `takes` is true.
    fn data(
        &mut self,
        instance: Instance,
        statement: Statement,
        (where_to, writes, takes): (usize, bool, bool),
    ) -> Result<(), Stop> {
        if !self.follows.data {
            return Ok(());
        }
        let first = if self.follows.addresses { 0 } else { where_to };
        let is_taken = |number: usize, role: &str| number >= first && (takes || role != "argument");
        let operands = operands(self.values, instance, statement)?;
        for (number, (role, origin)) in operands.into_iter().enumerate() {
            if is_taken(number, role) {
                let how = if number >= where_to {
                    Dependence::Data
                } else if number == 0 && writes {
                    Dependence::Destination
                } else {
                    Dependence::Address
                };
                self.origin(origin, how)?;
            }
        }
        // The number of bytes read so far.
        let mut read = 0;
        for one in reads(self.values, instance, statement)? {
            match (one.role, one.origin) {
                ("memory", Origin::Initial) => {
                    let range = self.read(instance, statement, read, one.bytes)?;
                    self.initial.push(range);
                }
                (_, origin) => self.origin(origin, Dependence::Data)?,
            }
            read += one.bytes;
        }
        if self.follows.control {
            for moved in moves(self.values, instance, statement, is_taken)? {
                self.controlled(&moved)?;
            }
        }
        Ok(())
    }

    /// Returns a part of the range that a load reads, without the first `skipped` bytes. If
    /// `length` is 0, returns the whole range.
    fn read(
        &self,
        instance: Instance,
        statement: Statement,
        skipped: u64,
        length: u64,
    ) -> Result<Range, Stop> {
        let compiled = self.values.compiled(instance.node)?;
        let Kind::Inst(inst) = statement.kind else {
            return Err(Stop::Left);
        };
        let inst = compiled.code.insts.get(inst).ok_or(Left)?;
        let (base, _) = self.values.value(instance, inst.a)?;
        let whole = inst.accesses([base, 0, 0]).read.ok_or(Left)?;
        Ok(match length {
            0 => whole,
            length => Range {
                address: whole.address + skipped,
                length,
                ..whole
            },
        })
    }

    /// Marks the origin of a value, or of bytes that were read, as wanted.
    fn origin(&mut self, origin: Origin, how: Dependence) -> Result<(), Stop> {
        match origin {
            Origin::Constant | Origin::Zero | Origin::Argument { .. } | Origin::Initial => {}
            Origin::Operator { instance, op } => {
                let compiled = self.values.compiled(instance.node)?;
                let inst = compiled.code.inst_of(op).ok_or(Left)?;
                self.instances.insert(instance.time, instance);
                self.add(Point::Inst(instance.time, inst), how);
            }
            Origin::Returned { instance, .. } => {
                self.instances.insert(instance.time, instance);
                self.add(Point::End(instance.time, true), how);
            }
            Origin::Host { call } => {
                // Actions of the host outside calls depend on nothing in the run.
                self.values.host()?.of_guest(call).ok_or(Left)?;
                let caller = self.host.caller_of(call)?;
                self.instances.insert(caller.time, caller);
                self.add(Point::End(caller.time, true), how);
            }
        }
        Ok(())
    }

    /// Marks the decision that led to a block in an execution as wanted.
    fn control(&mut self, instance: Instance, block: usize) -> Result<(), Stop> {
        if !self.follows.control {
            return Ok(());
        }
        let execution = Execution {
            number: 0,
            time: instance.time + block as u64,
            instance,
            statement: None,
        };
        self.controlled(&execution)
    }

    fn controlled(&mut self, execution: &Execution) -> Result<(), Stop> {
        // All statements of a block have the same deciders, which a search back through the
        // activation finds.
        if !self.deciders.contains_key(&execution.time) {
            let points = match self.deciders_of(execution) {
                Ok(points) => Some(points),
                Err(Stop::Left) => None,
                Err(error) => return Err(error),
            };
            self.deciders.insert(execution.time, points);
        }
        let known = self.deciders.get(&execution.time).and_then(Option::as_ref);
        let points = known.ok_or(Left)?.iter();
        self.found
            .extend(points.map(|&point| (point, Dependence::Control)));
        Ok(())
    }

    fn deciders_of(&mut self, execution: &Execution) -> Result<Vec<Point>, Stop> {
        let mut points = Vec::new();
        for controller in self.controllers.of_execution(self.values, execution)? {
            let (time, block) = match controller {
                Controller::Host => continue,
                Controller::Throw { .. } => return Err(Stop::Left),
                Controller::Call { time } => (time, None),
                Controller::Branch { time, block } => (time, Some(block)),
            };
            let instance = self.values.at(time)?.ok_or(Left)?;
            self.instances.insert(instance.time, instance);
            let compiled = self.values.compiled(instance.node)?;
            let code = &compiled.code;
            let function = self.values.program().function(code.function).ok_or(Left)?;
            let position = (time - instance.time) as usize;
            let branch = block.and_then(|block| {
                let ends = |op| function.block_of(op) == Some(block);
                let mut insts = code.insts.iter();
                insts.rposition(|inst| matches!(inst.code, Code::Branch(_)) && ends(inst.op))
            });
            let node = &self.values.path().nodes()[instance.node];
            let is_last = position + 1 == node.blocks.len();
            let point = match branch {
                Some(inst) => Point::Inst(instance.time, inst),
                None if is_last && !matches!(code.end, NodeEnd::Next | NodeEnd::Return(_)) => {
                    Point::End(instance.time, false)
                }
                None => Point::Block(instance.time, position),
            };
            points.push(point);
        }
        Ok(points)
    }

    fn instance(&mut self, start: u64) -> Result<Instance, Stop> {
        match self.instances.get(&start) {
            Some(known) => Ok(*known),
            None => Ok(self.values.at(start)?.ok_or(Left)?),
        }
    }

    /// Whether the program has code that writes to tables. O(code size), once.
    fn writes_tables(&mut self) -> bool {
        let (program, module) = (self.values.program(), self.module);
        *self.tables.get_or_insert_with(|| {
            program.functions.iter().any(|function| {
                let mut operators = program.operators(module, function);
                operators.any(|(_, _, operator)| {
                    matches!(
                        operator,
                        Operator::TableSet { .. }
                            | Operator::TableGrow { .. }
                            | Operator::TableFill { .. }
                            | Operator::TableCopy { .. }
                            | Operator::TableInit { .. }
                    )
                })
            })
        })
    }
}

/// Returns the number of leading operands that form a memory address.
fn where_to(code: Code) -> usize {
    match code {
        Code::Load(_) | Code::LoadVector(_) | Code::Store(_) | Code::StoreVector(_) => 1,
        Code::MemoryFill | Code::MemoryInit => 1,
        Code::MemoryCopy => 2,
        _ => 0,
    }
}

/// Whether the operator writes to the address in its first operand.
fn writes(code: Code) -> bool {
    matches!(
        code,
        Code::Store(_)
            | Code::StoreVector(_)
            | Code::MemoryFill
            | Code::MemoryInit
            | Code::MemoryCopy
    )
}

/// Whether slices follow the operator byte by byte, while the stored values treat it as a whole.
fn is_left(code: Code) -> bool {
    matches!(
        code,
        Code::MemoryCopy
            | Code::TableGet
            | Code::TableSet
            | Code::TableSize
            | Code::TableGrow
            | Code::TableFill
            | Code::TableCopy
            | Code::TableInit
    )
}

/// Joins ranges. The result covers the same bytes, in order and without duplicates.
fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable_by_key(|range| (range.memory, range.address));
    let mut all: Vec<Range> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last)
                if last.memory == range.memory && range.address <= last.address + last.length =>
            {
                let end = (range.address + range.length).max(last.address + last.length);
                last.length = end - last.address;
            }
            _ => all.push(range),
        }
    }
    all
}
