//! Finds direct data dependences in reverse: all uses of the results of a statement's execution.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::rc::Rc;

use afterimage_ids::{NodeId, OpId};
use afterimage_machine::{Code, Range};
use afterimage_program::Program;
use afterimage_wet::{
    Compiled, Definition, FileEpochs, Held, Holders, HoldersMark, ReadBy, Readers, TakenBy, Takers,
    write_to,
};

use super::host::{HostReaders, HostUse};
use super::{
    HostReads, HostReadsError, Instance, Kind, RecordedValues, Statement, ValuesError,
    role_of_place, role_of_read,
};
use crate::whole_path::FileSegments;
use afterimage_profile::Stop;

/// A direct use, which is a statement's execution that depends on data from another execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The time of the statement's block.
    pub time: u64,
    /// The time of the first block of the statement's node.
    pub begun: u64,
    /// The node that contains the statement.
    pub node: NodeId,
    /// The operator of the statement.
    pub op: OpId,
    /// The operator's statement in the node.
    pub statement: Statement,
    /// The part of the statement that depends on data. For an operand, this is the operand's role.
    /// For a read, it is "memory", "global", "element" (of a table) or "size" (of a table or a
    /// memory).
    pub role: &'static str,
    /// The number of bytes read from memory, or 0 for all.
    pub bytes: u64,
    /// The number of elements taken from a table, and otherwise 0.
    pub elements: u64,
    /// The range that the host read, if the host is the user.
    pub read: Option<Range>,
}

impl Use {
    /// Returns the execution of the node. Counts the node's executions to find the number of this
    /// execution.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn instance(&self, values: &RecordedValues<'_>) -> Result<Instance, ValuesError> {
        let found = values.at(self.begun)?;
        found.ok_or(ValuesError::Damaged("an execution that does not exist"))
    }
}

/// Iterates over all direct uses of the results of a statement's execution, in order of time. The
/// iterator can go in both directions.
///
/// Uses are the [`dependences`](super::dependences) of all executions, and the host's
/// [reads](HostReads::parts), in reverse. Each occurrence of a dependence or read that names this
/// execution is a use. For a call, these are the uses of its results and of the host's writes
/// during the call. The function that computed a result does not matter. For a throw, they are the
/// uses of the reference to the exception. For a rethrow, they also include the uses of all values
/// that the exception carries.
///
/// The nearest uses are found first. A value is followed along the path as long as a variable holds
/// it. The labels of later executions are searched in parts of growing length. About a thousand
/// uses are in memory at a time.
pub struct Uses<'h, 'a> {
    values: &'h RecordedValues<'a>,
    program: &'a Program,
    stop: Option<Stop>,
    nodes: HashMap<NodeId, Rc<NodeUses>>,
    holders: Holders<'h, 'a, FileSegments, FileEpochs>,
    readers: Readers<'h, 'a, FileSegments, FileEpochs>,
    takers: Takers<'h, 'a, FileSegments, FileEpochs>,
    host: HostReaders<'h, 'a>,
    /// The next use from each of the four sources.
    held: Option<Held>,
    read: Option<ReadBy>,
    taken: Option<TakenBy>,
    by_host: Option<HostUse>,
    /// Consecutive uses, from whole executions of nodes.
    batch: Vec<Use>,
    /// The number of uses that the iterator has passed.
    at: usize,
    /// The start of each batch, up to the current batch.
    marks: Vec<Mark<'a>>,
}

/// The start of a batch.
struct Mark<'a> {
    /// The number of earlier uses.
    before: u64,
    held: Option<Held>,
    holders: HoldersMark<'a, FileSegments>,
    read: Option<ReadBy>,
    taken: Option<TakenBy>,
    by_host: Option<HostUse>,
}

/// The approximate number of uses in memory.
const BATCH: usize = 1 << 10;

/// The uses of each register of a node.
struct NodeUses {
    compiled: Rc<Compiled>,
    /// The statements, in order, each with the position of its block.
    statements: Vec<(OpId, Statement)>,
    /// The operands of all statements, sorted by their registers.
    operands: Vec<OfRegister>,
    /// The statement of each instruction.
    of_inst: HashMap<usize, u32>,
}

/// An operand of a statement.
struct OfRegister {
    register: u32,
    statement: u32,
    /// The number of the operand.
    position: u32,
    role: &'static str,
}

/// The order of uses in an execution of a node, first by statement and then by operand. A
/// statement's reads come after its operands.
type Order = (u32, u32);

/// Returns the data that a statement's execution produces for other executions.
pub fn definition(
    compiled: &Compiled,
    instance: Instance,
    statement: Statement,
) -> Option<Definition> {
    match statement.kind {
        Kind::Inst(inst) => {
            let code = compiled.code.insts.get(inst)?.code;
            match code {
                Code::TableSet | Code::TableFill | Code::TableCopy | Code::TableInit => {
                    Some(Definition::Write { instance, inst })
                }
                code if write_to(code).is_some() => Some(Definition::Write { instance, inst }),
                code => code
                    .gives()
                    .then_some(Definition::Result { instance, inst }),
            }
        }
        Kind::Call(_) | Kind::Throw => Some(Definition::After { instance }),
        Kind::Return => None,
    }
}

/// Returns the write that an atomic operator makes in addition to its result.
fn written_besides(
    values: &RecordedValues<'_>,
    definition: Definition,
) -> Result<Option<Definition>, ValuesError> {
    let Definition::Result { instance, inst } = definition else {
        return Ok(None);
    };
    let compiled = values.compiled(instance.node)?;
    let insts = &compiled.code.insts;
    let op = insts.get(inst).map(|inst| inst.op);
    let mut following = (inst + 1..).zip(insts.iter().skip(inst + 1));
    let store = following
        .by_ref()
        .take_while(|(_, one)| Some(one.op) == op)
        .find(|(_, one)| write_to(one.code).is_some());
    Ok(store.map(|(inst, _)| Definition::Write { instance, inst }))
}

impl<'h, 'a> Uses<'h, 'a> {
    /// Creates an iterator over the uses of a [`definition`]. `host` provides the host's reads.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or lacks the required data.
    pub fn of(
        host: &'h HostReads<'h, 'a>,
        program: &'a Program,
        definition: Definition,
    ) -> Result<Self, HostReadsError> {
        let values = host.values();
        let written = written_besides(values, definition)?.unwrap_or(definition);
        let mut holders = values.holders(definition)?;
        let mut readers = values.readers(written)?;
        let mut takers = values.takers(definition)?;
        let mut host = HostReaders::new(host, written)?;
        let held = holders.next()?;
        let read = readers.next()?;
        let taken = takers.next()?;
        let by_host = host.next()?;
        Ok(Self {
            values,
            program,
            stop: None,
            nodes: HashMap::new(),
            holders,
            readers,
            takers,
            host,
            held,
            read,
            taken,
            by_host,
            batch: Vec::new(),
            at: 0,
            marks: Vec::new(),
        })
    }

    /// Sets the place where the run ended, which is the first of its
    /// [`stops`](afterimage_profile::stops). An operator that trapped then counts as a use of its
    /// operands.
    #[must_use]
    pub fn ending(mut self, stop: Option<Stop>) -> Self {
        self.stop = stop;
        self
    }

    /// Returns the number of uses that the iterator has passed.
    pub fn position(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.before) + self.at as u64
    }

    /// Moves past the next use. Returns the use, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or lacks the required data.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail and turn round, which iterators cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Use>, HostReadsError> {
        if self.at == self.batch.len() && !self.fill(self.position())? {
            return Ok(None);
        }
        let found = self.batch[self.at];
        self.at += 1;
        Ok(Some(found))
    }

    /// Moves back past the previous use. Returns the use, or `None` at the beginning.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or lacks the required data.
    pub fn previous(&mut self) -> Result<Option<Use>, HostReadsError> {
        if self.at == 0 {
            if self.marks.len() < 2 {
                return Ok(None);
            }
            self.marks.pop();
            if let Some(mark) = self.marks.pop() {
                self.go(&mark)?;
                self.fill(mark.before)?;
            }
            self.at = self.batch.len();
        }
        let Some(at) = self.at.checked_sub(1) else {
            return Ok(None);
        };
        self.at = at;
        Ok(Some(self.batch[at]))
    }

    /// Returns the number of remaining uses. Does not move the iterator, but takes as long as
    /// visiting all of them.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or lacks the required data.
    pub fn rest(&mut self) -> Result<u64, HostReadsError> {
        let here = self.mark(0);
        let mut count = (self.batch.len() - self.at) as u64;
        let mut holders = self.held.take();
        while let Some(held) = holders {
            count += self.of_held(&held)?.len() as u64;
            holders = self.holders.next()?;
        }
        if self.read.is_some() {
            count += 1 + self.readers.count()?;
        }
        if let Some(taken) = &here.taken {
            // The last taker does not count if it is a call that was not attempted.
            let mut rest = self.takers.clone();
            let mut next = Some(*taken);
            while let Some(taken) = next {
                count += u64::from(self.of_taken(&taken)?.is_some());
                next = rest.next()?;
            }
        }
        if self.by_host.is_some() {
            count += 1 + self.host.count()?;
        }
        self.held.clone_from(&here.held);
        self.holders.go(&here.holders)?;
        Ok(count)
    }

    /// Returns the searched parts of the run, after the definition, that have no stored values.
    /// Their reads of memory and globals are unknown.
    pub fn unknown(&self) -> &[RangeInclusive<u64>] {
        self.readers.unknown()
    }

    fn mark(&self, before: u64) -> Mark<'a> {
        Mark {
            before,
            held: self.held.clone(),
            holders: self.holders.mark(),
            read: self.read,
            taken: self.taken,
            by_host: self.by_host,
        }
    }

    fn go(&mut self, mark: &Mark<'a>) -> Result<(), HostReadsError> {
        self.batch.clear();
        self.at = 0;
        self.held.clone_from(&mark.held);
        self.holders.go(&mark.holders)?;
        self.read = match mark.read {
            Some(read) => {
                self.readers.go(read.time);
                self.readers.next()?
            }
            None => {
                self.readers.go(u64::MAX);
                None
            }
        };
        self.takers
            .go(mark.taken.map_or(u64::MAX, |taken| taken.time))?;
        self.taken = self.takers.next()?;
        let begun = mark.by_host.map(|found| found.visit.start);
        self.host.go(begun.unwrap_or(u64::MAX))?;
        self.by_host = self.host.next()?;
        Ok(())
    }

    /// Fetches the next batch, which follows `before` uses. Returns whether there is a next batch.
    fn fill(&mut self, before: u64) -> Result<bool, HostReadsError> {
        let mark = self.mark(before);
        let mut batch = Vec::new();
        while batch.len() < BATCH {
            let held = self.held.as_ref().map(|held| held.time);
            let read = self.read.map(|read| read.time);
            let taken = self.taken.map(|taken| taken.time);
            let by_host = self.by_host.map(|found| found.visit.start);
            let all = [held, read, taken, by_host].into_iter().flatten();
            let Some(time) = all.min() else {
                break;
            };
            let mut found = Vec::new();
            if let Some(held) = self.held.take_if(|held| held.time == time) {
                found = self.of_held(&held)?;
                self.held = self.holders.next()?;
            }
            while let Some(read) = self.read.take_if(|read| read.time == time) {
                found.extend(self.of_read(&read)?);
                self.read = self.readers.next()?;
            }
            while let Some(taken) = self.taken.take_if(|taken| taken.time == time) {
                found.extend(self.of_taken(&taken)?);
                self.taken = self.takers.next()?;
            }
            while let Some(read) = self.by_host.take_if(|read| read.visit.start == time) {
                found.push(self.of_host(&read)?);
                self.by_host = self.host.next()?;
            }
            // The sort is stable, so the parts of a read stay in order.
            found.sort_by_key(|&(order, _)| order);
            batch.extend(found.into_iter().map(|(_, found)| found));
        }
        if batch.is_empty() {
            return Ok(false);
        }
        self.marks.push(mark);
        self.batch = batch;
        self.at = 0;
        Ok(true)
    }

    /// Returns the operands of an execution's statements that are in these registers.
    fn of_held(&mut self, held: &Held) -> Result<Vec<(Order, Use)>, ValuesError> {
        let node = self.node(held.node)?;
        let last = self.executed(&node, held.node, held.time)?;
        let mut found = Vec::new();
        for &register in &held.registers {
            let operands = &node.operands;
            let from = operands.partition_point(|operand| operand.register < register);
            let operands = operands[from..].iter();
            for operand in operands.take_while(|operand| operand.register == register) {
                let at = operand.statement;
                if at < last {
                    let found_one = node.of(at, held.node, held.time, operand.role, 0);
                    found.push(((at, operand.position), found_one));
                }
            }
        }
        Ok(found)
    }

    /// Returns the use by a statement that reads memory or a global.
    fn of_read(&mut self, read: &ReadBy) -> Result<Option<(Order, Use)>, ValuesError> {
        let node = self.node(read.node)?;
        let Some(&at) = node.of_inst.get(&read.inst) else {
            return Ok(None);
        };
        let role = role_of_read(node.compiled.code.insts[read.inst].code);
        let nothing = ValuesError::Damaged("a read by an instruction that reads no data");
        let role = role.ok_or(nothing)?;
        let found = node.of(at, read.node, read.time, role, read.length);
        Ok(Some(((at, u32::MAX), found)))
    }

    /// Returns the use by a statement that uses table elements or a size, or `None` if the
    /// statement was not attempted.
    fn of_taken(&mut self, taken: &TakenBy) -> Result<Option<(Order, Use)>, ValuesError> {
        let node = self.node(taken.node)?;
        let last = self.executed(&node, taken.node, taken.time)?;
        let at = match taken.inst {
            Some(inst) => node.of_inst.get(&inst).copied(),
            None => node.call(),
        };
        let Some(at) = at.filter(|&at| at < last) else {
            return Ok(None);
        };
        let role = role_of_place(taken.place);
        let found = Use {
            elements: taken.elements,
            ..node.of(at, taken.node, taken.time, role, 0)
        };
        Ok(Some(((at, u32::MAX), found)))
    }

    /// Returns the use by a call in which the host reads.
    fn of_host(&mut self, read: &HostUse) -> Result<(Order, Use), HostReadsError> {
        let visit = read.visit;
        let node = self.node(visit.node)?;
        let at = node.call();
        let at = at.ok_or(HostReadsError::Damaged("a host call"))?;
        let found = node.of(at, visit.node, visit.start, "memory", read.range.length);
        let read = Some(read.range);
        Ok(((at, u32::MAX), Use { read, ..found }))
    }

    /// Returns the number of a node's statements that an execution reached.
    fn executed(&self, node: &NodeUses, id: NodeId, time: u64) -> Result<u32, ValuesError> {
        let all = node.statements.len() as u32;
        let path = self.values.path();
        let length = path.nodes().get(id).map_or(0, |node| node.length());
        if time.saturating_add(length) <= path.length() {
            return Ok(all);
        }
        let instance = self.values.at(time)?;
        let instance = instance.ok_or(ValuesError::Damaged("an execution that does not exist"))?;
        let Some(executed) = self.values.stopped(instance)? else {
            return Ok(all);
        };
        let tried = |op: OpId| {
            self.stop.is_some_and(|stop| {
                let function = self.program.function(stop.function);
                let block = function.and_then(|function| function.block_of(op));
                op < stop.next && block == Some(stop.block)
            })
        };
        let come = node
            .statements
            .iter()
            .filter(|(op, statement)| match statement.kind {
                Kind::Inst(inst) => (inst as u64) < executed || tried(*op),
                Kind::Call(_) => tried(*op),
                Kind::Return | Kind::Throw => false,
            });
        Ok(come.count() as u32)
    }

    fn node(&mut self, id: NodeId) -> Result<Rc<NodeUses>, ValuesError> {
        if let Some(known) = self.nodes.get(&id) {
            return Ok(Rc::clone(known));
        }
        let compiled = self.values.compiled(id)?;
        let node = Rc::new(NodeUses::new(self.program, self.values, id, compiled));
        self.nodes.insert(id, Rc::clone(&node));
        Ok(node)
    }
}

impl NodeUses {
    fn new(
        program: &Program,
        values: &RecordedValues<'_>,
        id: NodeId,
        compiled: Rc<Compiled>,
    ) -> Self {
        let blocks = values.path().nodes().get(id);
        let blocks = blocks.map_or(&[][..], |node| &node.blocks);
        let statements = Statement::all(program, &compiled.code, blocks);
        let mut operands = Vec::new();
        let mut of_inst = HashMap::new();
        for (at, (_, one)) in (0..).zip(&statements) {
            if let Kind::Inst(inst) = one.kind {
                of_inst.insert(inst, at);
            }
            for (position, operand) in (0..).zip(one.operands(&compiled.code)) {
                operands.push(OfRegister {
                    register: operand.register,
                    statement: at,
                    position,
                    role: operand.role,
                });
            }
        }
        operands.sort_by_key(|operand| operand.register);
        Self {
            compiled,
            statements,
            operands,
            of_inst,
        }
    }

    /// Returns the statement of the call that ends the node.
    fn call(&self) -> Option<u32> {
        let mut statements = self.statements.iter();
        let at = statements.rposition(|(_, one)| matches!(one.kind, Kind::Call(_)));
        at.map(|at| at as u32)
    }

    fn of(&self, at: u32, node: NodeId, begun: u64, role: &'static str, bytes: u64) -> Use {
        let (op, statement) = self.statements[at as usize];
        Use {
            time: begun + statement.block,
            begun,
            node,
            op,
            statement,
            role,
            bytes,
            elements: 0,
            read: None,
        }
    }
}
