//! Walks forward over a run and carries labels along its dependences.

use std::rc::Rc;

use afterimage_ids::{FuncId, NodeId, PrimaryMap};
use afterimage_machine::{Caller, NodeCode, Range, Register, Taker};
use afterimage_program::Program;
use afterimage_wpp::Node;

use crate::activation::Activation;
use crate::criterion::{ExecutionQuery, Follows, Stored};
use crate::domain::{Dependences, Domain, Why};
use crate::plan::{End, Inst, Kind, Plan};
use crate::plans::Plans;
use crate::shadow::Shadow;
use crate::stretch::{Event, Execution, Stretch, unpacked};

/// Walks forward over a run, stretch by stretch, and passes labels along its dependences.
/// [`Backward`](crate::Backward) follows the same dependences in reverse.
///
/// Time is linear in the nodes of the run and in the blocks that each decision decides. Memory is
/// linear in the guest's memory.
pub(crate) struct Walk<'a, D: Domain> {
    follows: Follows,
    plans: Plans<'a>,
    pub domain: D,
    bytes: Shadow<D::Label>,
    globals: Vec<D::Label>,
    tables: Vec<D::Label>,
    sizes: Vec<D::Label>,
    frames: Vec<Activation<D::Label>>,
    /// The labels of the current node's registers.
    registers: Vec<D::Label>,
    on: D::On,
    /// The labels of the decisions to execute the node's blocks.
    blocks: Vec<D::Label>,
    /// The labels of arguments, of results, or of the values of an exception.
    given: Vec<D::Label>,
    /// The label of the call that is about to begin, or of the throw.
    call: D::Label,
    /// The last node, if it ended with a call.
    calls: Option<Execution>,
}

/// A call to the host. The first part is the calling execution with the call's label, if the guest
/// made the call. The second part is the label of the data that the host read.
type HostCall<L> = (Option<(Execution, L)>, L);

/// The events and addresses of an execution that its node's code does not determine.
pub(crate) struct Ahead<'s> {
    pub events: &'s [Event],
    pub accesses: &'s [u64],
}

impl<'a, D: Domain> Walk<'a, D> {
    pub fn new(
        program: &'a Program,
        nodes: &'a PrimaryMap<NodeId, Node>,
        follows: Follows,
        domain: D,
    ) -> Self {
        Self {
            follows,
            plans: Plans::new(program, nodes),
            domain,
            bytes: Shadow::default(),
            globals: Vec::new(),
            tables: Vec::new(),
            sizes: Vec::new(),
            frames: Vec::new(),
            registers: Vec::new(),
            on: D::On::default(),
            blocks: Vec::new(),
            given: Vec::new(),
            call: D::Label::default(),
            calls: None,
        }
    }

    /// Returns a prepared node.
    pub fn prepared(&self, node: NodeId) -> Option<&Plan> {
        self.plans.get(node).map(Rc::as_ref)
    }

    /// Sets a node's code. This must be called before any stretch that contains the node.
    pub fn prepare(&mut self, node: NodeId, code: &NodeCode) {
        self.plans.prepare(node, code);
    }

    /// Adds an activation that was open before the walk, with the node that it executed last.
    /// Nothing in the activation has a label.
    pub fn open(&mut self, function: FuncId, last: NodeId) {
        let none = D::Label::default();
        let mut frame = Activation::new(function, Vec::new(), none);
        if let Some(plan) = self.prepared(last).filter(|plan| plan.function == function) {
            frame.returns = plan.returns;
            frame.last = plan.blocks.last().map(|&block| (block, none));
        }
        self.frames.push(frame);
    }

    /// Processes a stretch, which must directly follow the stretch passed last. `asked` returns the
    /// parts of an execution that get the label `source`.
    pub fn pass(
        &mut self,
        stretch: &Stretch,
        mut asked: impl FnMut(u64) -> ExecutionQuery,
        source: D::Label,
    ) {
        self.events(&stretch.events[..stretch.before]);
        let (mut events, mut addresses) = (stretch.before, 0);
        for &execution in &stretch.executions {
            let ahead = Ahead {
                events: &stretch.events[events..execution.events],
                accesses: &stretch.addresses[addresses..execution.addresses],
            };
            (events, addresses) = (execution.events, execution.addresses);
            let own = ahead.events.iter();
            let own = own.take_while(|e| matches!(e, Event::Write { .. } | Event::Copy { .. }));
            let own = own.count();
            let asked = asked(execution.start);
            self.execution(execution, &ahead, asked, source);
            self.events(&ahead.events[own..]);
        }
    }

    fn top(&mut self, function: FuncId) -> &mut Activation<D::Label> {
        if self.frames.is_empty() {
            let none = D::Label::default();
            self.frames
                .push(Activation::new(function, Vec::new(), none));
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn execution(
        &mut self,
        execution: Execution,
        ahead: &Ahead<'_>,
        mut asked: ExecutionQuery,
        source: D::Label,
    ) {
        let Some(plan) = self.plans.get(execution.node).map(Rc::clone) else {
            return;
        };
        self.domain.begin(&plan);
        let whole = execution.ended;
        self.calls = None;
        if D::SKIPS && asked.is_none() && whole && self.is_plain(&plan, ahead) {
            let frame = self.top(plan.function);
            frame.last = plan.blocks.last().map(|&last| (last, D::Label::default()));
            frame.returns = plan.returns;
            self.calls = matches!(plan.end, End::Call { .. }).then_some(execution);
            self.call = D::Label::default();
            self.given.clear();
            return;
        }
        self.registers.clear();
        self.registers.resize(plan.registers, D::Label::default());
        self.top(plan.function);
        if let Some(frame) = self.frames.last() {
            frame.read(&mut self.registers[..plan.variables as usize]);
        }
        for &(variable, _) in &asked.variables {
            if let Some(register) = self.registers.get_mut(variable as usize) {
                *register = source;
            }
        }
        asked.memory.reverse();
        let executed = execution.executed as usize;
        self.blocks.clear();
        let (mut events, mut accesses) = (ahead.events.iter(), ahead.accesses.iter());
        let mut of_block = D::Label::default();
        for (position, &block) in plan.blocks.iter().enumerate() {
            let first = plan.firsts[position] as usize;
            if !whole && first > executed {
                break;
            }
            self.come(&plan, position);
            of_block = self.top(plan.function).of_block(block);
            if asked.block(position).is_some() {
                of_block = source;
            }
            self.blocks.push(of_block);
            let begun = executed + usize::from(execution.trapped);
            let behind = (plan.firsts[position + 1] as usize).min(begun);
            let mut went = of_block;
            for i in first..behind {
                self.ask_memory(&mut asked, i, source);
                let ahead = (&mut events, &mut accesses);
                let (mut label, written) = if i < executed {
                    self.inst(&plan, i, execution, of_block, ahead)
                } else {
                    (self.trap(&plan, i, execution, of_block), None)
                };
                if asked.inst(i).is_some() {
                    self.source(execution, &plan, (i, written), source);
                    label = source;
                }
                if plan.insts[i].kind == Kind::Branch {
                    went = label;
                }
            }
            self.top(plan.function).last = Some((block, went));
        }
        if whole {
            self.ask_memory(&mut asked, usize::MAX, source);
            let asked = asked.end.is_some().then_some(source);
            self.end(&plan, execution, of_block, asked);
        }
    }

    /// Whether an execution neither reads nor overwrites anything with a label.
    fn is_plain(&self, plan: &Plan, ahead: &Ahead<'_>) -> bool {
        let none = D::Label::default();
        if let Some(frame) = self.frames.last() {
            let outputs = plan.outputs.iter().map(|output| output.variable);
            let plain = frame.runs_plainly()
                && frame.are_plain(plan.inputs.iter().copied())
                && frame.are_plain(outputs);
            if !plain {
                return false;
            }
        }
        let touched = |global: &u32| {
            self.globals
                .get(*global as usize)
                .is_some_and(|g| *g != none)
        };
        if plan.more || plan.reads_more || ahead.events.iter().any(is_own) {
            return false;
        }
        if plan.reads_globals.iter().chain(&plan.globals).any(touched) {
            return false;
        }
        let labelled = |access: Option<&u64>, memory| {
            let range = access.and_then(|&access| unpacked(memory, access));
            range.is_none_or(|range| self.bytes.any(range))
        };
        let all = ahead.accesses.len();
        let loads = plan.loads.iter();
        let mut loads = loads.map(|&(at, memory)| (ahead.accesses.get(at as usize), memory));
        let stores = plan.stores.iter();
        let mut stores = stores.map(|&(back, memory)| {
            let at = all.checked_sub(1 + back as usize);
            (at.and_then(|at| ahead.accesses.get(at)), memory)
        });
        !self.bytes.is_used()
            || !loads.any(|(access, memory)| labelled(access, memory))
                && !stores.any(|(access, memory)| labelled(access, memory))
    }

    /// Moves the innermost activation to a block of the current node.
    fn come(&mut self, plan: &Plan, position: usize) {
        if !self.follows.control {
            return;
        }
        let block = plan.blocks[position];
        let function = plan.function;
        let frame = self.top(function);
        let handles = frame.handles.take();
        let Some((last, label)) = frame.last else {
            return;
        };
        let decisions = match position {
            0 => {
                let Some(decisions) = self.plans.decisions(function, last, block) else {
                    return;
                };
                decisions
            }
            _ => Rc::clone(&plan.decisions[position - 1]),
        };
        self.top(function).pass(&decisions, label);
        let Some(thrown) = handles else {
            return;
        };
        if let Some(handled) = self.plans.handled(function, block) {
            let (domain, frames) = (&mut self.domain, &mut self.frames);
            if let Some(frame) = frames.last_mut() {
                frame.handle(&handled, |label| domain.join(label, thrown));
            }
        }
    }

    /// Sets the label of the memory and globals that a criterion specifies after this many of the
    /// node's instructions.
    fn ask_memory(&mut self, asked: &mut ExecutionQuery, executed: usize, source: D::Label) {
        while let Some(&(behind, of, _)) = asked.memory.last()
            && behind <= executed
        {
            asked.memory.pop();
            match of {
                Stored::Bytes(range) => self.bytes.set(range, source),
                Stored::Global(global) => put(&mut self.globals, global, source),
            }
        }
    }

    /// Handles an instruction that is a criterion. The instruction and its writes get this label,
    /// whatever they depend on.
    fn source(
        &mut self,
        execution: Execution,
        plan: &Plan,
        (inst, written): (usize, Option<Range>),
        source: D::Label,
    ) {
        self.domain.criterion(execution, plan, Some(inst));
        self.registers[plan.result(inst)] = source;
        self.write(&plan.insts[inst], written, source);
    }

    fn is_followed(&self, why: Why) -> bool {
        match why {
            Why::Data => self.follows.data,
            Why::Address => self.follows.data && self.follows.addresses,
            Why::Control => self.follows.control,
            Why::Moved => self.follows.data && self.follows.control,
        }
    }

    /// Adds the labels of the blocks in which a value was moved to its taker.
    fn take_moved(&mut self, plan: &Plan, why: Why, taker: Taker) {
        if self.is_followed(why) {
            for block in plan.moved(taker) {
                let label = self.blocks.get(block).copied();
                self.take(Why::Moved, label.unwrap_or_default());
            }
        }
    }

    /// Returns the label of a value, combined with the labels of the blocks in which it was moved.
    fn moved(&mut self, through: impl Iterator<Item = usize>, register: Register) -> D::Label {
        let label = self.registers.get(register as usize).copied();
        let mut label = label.unwrap_or_default();
        if self.is_followed(Why::Moved) {
            for block in through {
                let of_block = self.blocks.get(block).copied().unwrap_or_default();
                label = self.domain.moved(label, of_block);
            }
        }
        label
    }

    fn take(&mut self, why: Why, label: D::Label) {
        if label != D::Label::default() && self.is_followed(why) {
            self.on.add(why, label);
        }
    }

    fn take_bytes(&mut self, range: Range) {
        if !self.follows.data {
            return;
        }
        let (bytes, on) = (&self.bytes, &mut self.on);
        bytes.each(range, |_, label| {
            if label != D::Label::default() {
                on.add(Why::Data, label);
            }
        });
    }

    /// Sets the label of everything that an instruction writes, except its result.
    fn write(&mut self, inst: &Inst, written: Option<Range>, label: D::Label) {
        match inst.kind {
            Kind::Store | Kind::Many | Kind::Copy => {
                if let Some(range) = written {
                    self.bytes.set(range, label);
                }
            }
            Kind::GlobalSet => put(&mut self.globals, inst.number, label),
            Kind::MemoryGrow => put(&mut self.sizes, inst.memory.into(), label),
            Kind::TableSet | Kind::TableGrow => put(&mut self.tables, inst.number, label),
            _ => {}
        }
    }

    /// Processes an instruction. Returns its label, and the range that it wrote.
    fn inst<'s>(
        &mut self,
        plan: &Plan,
        i: usize,
        execution: Execution,
        of_block: D::Label,
        (events, accesses): (
            &mut impl Iterator<Item = &'s Event>,
            &mut impl Iterator<Item = &'s u64>,
        ),
    ) -> (D::Label, Option<Range>) {
        let inst = plan.insts[i];
        self.on.clear();
        self.take(Why::Control, of_block);
        let range = match inst.kind {
            Kind::Load | Kind::Store | Kind::Many => {
                let access = accesses.next();
                let range = access.and_then(|&access| unpacked(inst.memory, access));
                range.or_else(|| match events.next() {
                    Some(&Event::Write { range, .. }) => Some(range),
                    _ => None,
                })
            }
            _ => None,
        };
        self.take_operands(plan, i);
        if let Some(range) = range.filter(|_| inst.kind == Kind::Load) {
            self.take_bytes(range);
        }
        let label = self.domain.inst(execution, plan, i, &self.on);
        self.registers[plan.result(i)] = label;
        if inst.kind == Kind::Copy {
            let Some(&Event::Copy { from, to, .. }) = events.next() else {
                return (label, None);
            };
            self.copy(execution, plan, i, (from, to), label);
            return (label, Some(to));
        }
        self.write(&inst, range, label);
        (label, range)
    }

    /// Processes the instruction at which the run trapped, which took its operands but had no
    /// effect.
    fn trap(
        &mut self,
        plan: &Plan,
        i: usize,
        execution: Execution,
        of_block: D::Label,
    ) -> D::Label {
        self.on.clear();
        self.take(Why::Control, of_block);
        self.take_operands(plan, i);
        self.domain.inst(execution, plan, i, &self.on)
    }

    /// Collects the labels of an instruction's operands, except bytes of memory.
    fn take_operands(&mut self, plan: &Plan, i: usize) {
        let inst = plan.insts[i];
        let where_to = inst.kind.where_to();
        for (position, &operand) in inst.operands().iter().enumerate() {
            let why = if position < where_to {
                Why::Address
            } else {
                Why::Data
            };
            let label = self.registers.get(operand as usize).copied();
            self.take(why, label.unwrap_or_default());
            if !inst.moved.is_none() {
                self.take_moved(plan, why, Taker::Operand(i as u32, position as u8));
            }
        }
        match inst.kind {
            Kind::GlobalGet => self.take(Why::Data, get(&self.globals, inst.number)),
            Kind::MemorySize | Kind::MemoryGrow => {
                self.take(Why::Data, get(&self.sizes, inst.memory.into()));
            }
            Kind::TableGet | Kind::TableSet | Kind::TableGrow => {
                self.take(Why::Data, get(&self.tables, inst.number));
                if inst.other != inst.number {
                    self.take(Why::Data, get(&self.tables, inst.other));
                }
            }
            _ => {}
        }
    }

    /// Processes a copy. Each copied byte takes a label from its source and from the copy itself.
    fn copy(
        &mut self,
        execution: Execution,
        plan: &Plan,
        inst: usize,
        (from, to): (Range, Range),
        label: D::Label,
    ) {
        self.on.clear();
        self.take_bytes(from);
        self.domain.takes(execution, plan, Some(inst), &self.on);
        let mut copied = Vec::new();
        self.bytes
            .each(from, |count, byte| copied.push((count, byte)));
        let mut address = to.address;
        for (length, byte) in copied {
            let byte = if self.follows.data {
                self.domain.copied(label, byte)
            } else {
                label
            };
            let part = Range {
                memory: to.memory,
                address,
                length,
            };
            self.bytes.set(part, byte);
            address += length;
        }
    }

    fn labels(&mut self, plan: &Plan, registers: &[Register]) -> Vec<D::Label> {
        let registers = (0..).zip(registers);
        registers
            .map(|(i, &register)| self.moved(plan.moved(Taker::Given(i)), register))
            .collect()
    }

    /// Processes a node's end. If `asked` is given, the end has that label.
    fn end(
        &mut self,
        plan: &Plan,
        execution: Execution,
        of_block: D::Label,
        asked: Option<D::Label>,
    ) {
        self.on.clear();
        self.take(Why::Control, of_block);
        self.call = D::Label::default();
        let (values, ends) = match &plan.end {
            End::Next => (Vec::new(), false),
            End::Call {
                arguments,
                index,
                table,
            } => {
                let index = index.and_then(|index| self.registers.get(index as usize).copied());
                self.take(Why::Data, index.unwrap_or_default());
                self.take_moved(plan, Why::Data, Taker::Index);
                if let Some(table) = *table {
                    self.take(Why::Data, get(&self.tables, table));
                }
                self.calls = Some(execution);
                (self.labels(plan, arguments), true)
            }
            End::Return(values) | End::Throw(values) => (self.labels(plan, values), true),
            End::Rethrow(exception) => {
                let label = self.moved(plan.moved(Taker::Given(0)), *exception);
                self.take(Why::Data, label);
                // The reference to an exception represents all values in the exception.
                (vec![label], true)
            }
        };
        let rethrows = matches!(plan.end, End::Rethrow(_));
        let mut label = D::Label::default();
        if ends {
            label = self.domain.end(execution, plan, &self.on);
            self.on.clear();
            for &value in &values {
                self.take(Why::Data, value);
            }
            self.domain.takes(execution, plan, None, &self.on);
        }
        if let Some(source) = asked {
            self.domain.criterion(execution, plan, None);
            label = source;
        }
        // Setting a variable changes no register.
        for &output in &plan.outputs {
            let moved = plan.moved_output(output);
            let label = self.moved(moved, output.register);
            self.top(plan.function).set(output.variable, label);
        }
        let frame = self.top(plan.function);
        frame.returns = plan.returns;
        if ends
            && !matches!(plan.end, End::Return(_))
            && let Some((_, went)) = &mut frame.last
        {
            *went = label;
        }
        self.call = label;
        self.given = if rethrows {
            vec![values.first().copied().unwrap_or_default(); MOST_CARRIED]
        } else {
            values
        };
    }

    /// Processes the events after a node's instructions.
    fn events(&mut self, events: &[Event]) {
        let mut host = None;
        for &event in events {
            match event {
                Event::Write { .. } | Event::Copy { .. } => {}
                Event::Enter { function, by } => {
                    let (given, call) = match by {
                        Caller::Host => (Vec::new(), D::Label::default()),
                        _ => (std::mem::take(&mut self.given), self.call),
                    };
                    let call = if self.follows.control {
                        call
                    } else {
                        D::Label::default()
                    };
                    self.frames.push(Activation::new(function, given, call));
                }
                Event::Leave(results) => {
                    self.frames.pop();
                    if let Some((first, count)) = results {
                        let given = std::mem::take(&mut self.given);
                        self.arrive(first, count, &given);
                    }
                }
                Event::HostCall => {
                    let mut taken = D::Label::default();
                    if self.follows.data {
                        for label in std::mem::take(&mut self.given) {
                            taken = self.domain.taken(taken, label);
                        }
                    }
                    let call = self.calls.take().map(|execution| (execution, self.call));
                    host = Some((call, taken));
                }
                Event::HostRead(range) => {
                    self.on.clear();
                    self.take_bytes(range);
                    let mut labels = self.on.labels().peekable();
                    if let Some((Some((execution, _)), taken)) = &mut host {
                        if let Some(plan) = self.plans.get(execution.node) {
                            self.domain.takes(*execution, plan, None, &self.on);
                        }
                        if labels.peek().is_some() {
                            let mut address = range.address;
                            self.bytes.each(range, |length, label| {
                                if label != D::Label::default() {
                                    let part = Range {
                                        address,
                                        length,
                                        ..range
                                    };
                                    self.domain.host_read(*execution, part);
                                }
                                address += length;
                            });
                        }
                        for label in labels {
                            *taken = self.domain.taken(*taken, label);
                        }
                    }
                }
                Event::HostWrite(range) => {
                    let label = self.of_host(host);
                    self.bytes.set(range, label);
                }
                Event::HostReturned(first, count) => {
                    let label = self.of_host(host.take());
                    self.arrive(first, count, &vec![label; count as usize]);
                }
                Event::Caught(first, count) => self.caught(first, count),
            }
        }
    }

    fn of_host(&mut self, host: Option<HostCall<D::Label>>) -> D::Label {
        match host {
            Some((Some((_, call)), taken)) => self.domain.host(call, taken),
            _ => D::Label::default(),
        }
    }

    /// Sets the labels of values that arrive in variables of the innermost activation.
    fn arrive(&mut self, first: u32, count: u32, given: &[D::Label]) {
        let results = self
            .frames
            .last()
            .map_or(0, |frame| self.results(frame.function));
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let labels = given
            .iter()
            .copied()
            .chain(std::iter::repeat(D::Label::default()));
        for (variable, label) in (first..first + count).zip(labels) {
            frame.set(variable, label);
        }
        if frame.returns {
            let top = first + count;
            let returned = top.saturating_sub(results)..top;
            self.given = returned.map(|variable| frame.variable(variable)).collect();
        }
    }

    fn results(&self, function: FuncId) -> u32 {
        let ty = self.plans.program().function(function).map(|f| f.ty);
        let ty = ty.and_then(|ty| self.plans.program().types.get(ty));
        ty.map_or(0, |ty| ty.results.len() as u32)
    }

    /// Processes an exception that the innermost activation caught.
    fn caught(&mut self, first: u32, count: u32) {
        let thrown = std::mem::take(&mut self.call);
        let carried = std::mem::take(&mut self.given);
        let mut all = D::Label::default();
        for &label in &carried {
            all = self.domain.join(all, label);
        }
        let results = self
            .frames
            .last()
            .map_or(0, |frame| self.results(frame.function));
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        for (position, variable) in (first..first + count).enumerate() {
            frame.set(variable, carried.get(position).copied().unwrap_or_default());
        }
        frame.set(first + count, all);
        frame.handles = Some(thrown);
        // If the activation ends now, the handler is the label of the function itself.
        let returned = first..first + results.min(count + 1);
        self.given = returned.map(|variable| frame.variable(variable)).collect();
    }
}

/// The maximum number of values to label in a rethrown exception. Each value has the reference's
/// label.
const MOST_CARRIED: usize = 1024;

fn is_own(event: &Event) -> bool {
    matches!(event, Event::Write { .. } | Event::Copy { .. })
}

fn get<L: Copy + Default>(labels: &[L], number: u32) -> L {
    labels.get(number as usize).copied().unwrap_or_default()
}

fn put<L: Copy + Default>(labels: &mut Vec<L>, number: u32, label: L) {
    let at = number as usize;
    if labels.len() <= at {
        labels.resize(at + 1, L::default());
    }
    labels[at] = label;
}
