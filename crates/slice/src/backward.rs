//! Going back over a run.

use std::rc::Rc;

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap};
use afterimage_machine::{Caller, NodeCode, Range, Register};
use afterimage_program::Program;
use afterimage_wpp::Node;

use crate::bytes::ByteSet;
use crate::criterion::{Asked, Criteria, Criterion, Follows, Stored};
use crate::frame::Frame;
use crate::instances::Instances;
use crate::marks::{Marks, Slice};
use crate::plan::{End, Kind, Plan};
use crate::plans::Plans;
use crate::stretch::{Event, Execution, Stretch, unpacked};

/// What is wanted of the node that is next.
#[derive(Debug, Default)]
struct OfEnd {
    /// Arguments of its call.
    arguments: Vec<u32>,
    /// The call happened: something in the callee depends on it.
    called: bool,
    /// It called the host, which gave something that is wanted.
    host: bool,
    /// Values of what it throws.
    thrown: Vec<u32>,
    /// All of them.
    all_thrown: bool,
    /// The throw happened.
    threw: bool,
}

/// Goes back over a run, stretch by stretch, and finds what a criterion depends on: a full dynamic slice, of executions (Zhang and Gupta 2005, section 6.1; Agrawal and Horgan 1990,
/// the third approach).
///
/// What is wanted is known at each moment: bytes of memory, globals, variables of open activations, and blocks whose predicate is looked for. What gives
/// something that is wanted is in the slice, and then its operands are wanted. Time is linear in the nodes of the run, memory in the guest's.
pub struct Backward<'a> {
    follows: Follows,
    plans: Plans<'a>,
    bytes: ByteSet,
    globals: Vec<bool>,
    tables: Vec<bool>,
    /// Sizes of memories.
    sizes: Vec<bool>,
    frames: Vec<Frame>,
    of_end: OfEnd,
    criteria: Criteria,
    /// What is asked about the execution at hand.
    asked: Option<Box<Asked>>,
    /// Registers of the node at hand that are wanted, one bit each.
    registers: Vec<u64>,
    /// The instruction that is in the slice although nothing of it is wanted.
    forced: Option<usize>,
    /// What the node at hand ends with is in the slice.
    ended: bool,
    parts: Vec<Range>,
    marks: Marks,
    /// Only these executions are marked.
    within: Option<Instances>,
    /// Where their bits of the execution at hand begin.
    base: Option<u64>,
    /// The time down to which the run was gone over.
    gone: u64,
}

impl<'a> Backward<'a> {
    /// From criteria. The first stretch must have the execution of the last of them.
    pub fn new(
        program: &'a Program,
        nodes: &'a PrimaryMap<NodeId, Node>,
        follows: Follows,
        criteria: Vec<Criterion>,
    ) -> Self {
        Self {
            follows,
            plans: Plans::new(program, nodes),
            bytes: ByteSet::default(),
            globals: Vec::new(),
            tables: Vec::new(),
            sizes: Vec::new(),
            frames: Vec::new(),
            of_end: OfEnd::default(),
            criteria: Criteria::new(criteria),
            asked: None,
            registers: Vec::new(),
            forced: None,
            ended: false,
            parts: Vec::new(),
            marks: Marks::new(nodes.len()),
            within: None,
            base: None,
            gone: u64::MAX,
        }
    }

    /// Only these executions are in the slice: those of a forward slice, and it is a chop (Jackson and Rollins 1994). Stretches must begin where those began that they were
    /// found in, or be made of several of those.
    pub fn within(mut self, instances: Instances) -> Self {
        self.within = Some(instances);
        self
    }

    /// Whether nothing is wanted any more: what comes before cannot be in the slice.
    pub fn is_done(&self) -> bool {
        let none = |flags: &[bool]| flags.iter().all(|&wanted| !wanted);
        let before = |within: &Instances| within.first().is_none_or(|first| first > self.gone);
        if self.criteria.is_empty() && self.within.as_ref().is_some_and(before) {
            return true;
        }
        self.criteria.is_empty()
            && self.bytes.len() == 0
            && none(&self.globals)
            && none(&self.tables)
            && none(&self.sizes)
            && self.frames.iter().all(Frame::is_done)
            && self.of_end.is_none()
    }

    /// A node's code; to be told before a stretch with the node.
    pub fn prepare(&mut self, node: NodeId, code: &NodeCode) {
        self.plans.prepare(node, code);
    }

    /// Goes back over a stretch: the one before the last one that was given.
    pub fn pass(&mut self, stretch: &Stretch) {
        let Some(executions) = self.criteria.begin(stretch) else {
            return;
        };
        let mut bases = self.bases(stretch, executions);
        for at in (0..executions).rev() {
            let execution = stretch.executions[at];
            self.base = bases
                .pop_if(|(position, _)| *position == at)
                .map(|(_, base)| base);
            let before = at.checked_sub(1).map(|i| stretch.executions[i]);
            let first = before.map_or(stretch.before, |before| before.events);
            let addresses = before.map_or(0, |before| before.addresses);
            self.asked = self.criteria.of(execution.start);
            let events = self.events(&stretch.events[first..execution.events]);
            let accesses = &stretch.addresses[addresses..execution.addresses];
            self.execution(execution, &stretch.events[first..first + events], accesses);
        }
        self.gone = stretch
            .first()
            .map_or(self.gone, |first| first.saturating_sub(1));
        self.asked = None;
        self.events(&stretch.events[..stretch.before]);
    }

    /// Where the bits of a stretch's first executions begin, by their positions, ascending.
    fn bases(&self, stretch: &Stretch, executions: usize) -> Vec<(usize, u64)> {
        let Some(within) = &self.within else {
            return Vec::new();
        };
        let mut bases = Vec::with_capacity(executions);
        let mut base = None;
        for (position, execution) in stretch.executions[..executions].iter().enumerate() {
            base = within.of_stretch(execution.start).or(base);
            let plan = self.plans.get(execution.node);
            if let (Some(at), Some(plan)) = (base, plan) {
                bases.push((position, at));
                base = Some(at + plan.insts.len() as u64 + 1);
            }
        }
        bases
    }

    /// Whether an instruction of the execution at hand, or the end, is one that may be in the slice.
    #[inline]
    fn is_within(&self, inst: usize) -> bool {
        let Some(within) = &self.within else {
            return true;
        };
        self.base.is_some_and(|base| within.has(base + inst as u64))
    }

    /// What the slice is. What is still wanted was there before the run, or before what was gone over.
    pub fn finish(self) -> Slice {
        let plans = |node: NodeId| self.plans.get(node).map(Rc::as_ref);
        // Between two places there is nothing from before.
        let initial = match self.within {
            Some(_) => Vec::new(),
            None => self.bytes.all(),
        };
        self.marks.finish(plans, initial)
    }

    /// What happened after a node's instructions, the last first. How many events are left, which are of instructions.
    fn events(&mut self, events: &[Event]) -> usize {
        let mut left = events.len();
        while let Some(&event) = left.checked_sub(1).and_then(|last| events.get(last)) {
            match event {
                Event::Write { .. } | Event::Copy { .. } => break,
                Event::Enter { function, by } => self.enter(function, by),
                Event::Leave(results) => self.leave(results),
                Event::Caught(first, count) => self.caught(first, count),
                Event::HostCall
                | Event::HostRead(_)
                | Event::HostWrite(_)
                | Event::HostReturned(..) => {
                    let call = events[..left].iter();
                    let begins = call
                        .rev()
                        .position(|event| matches!(event, Event::HostCall));
                    let count = begins.map_or(left, |i| i + 1);
                    self.host(&events[left - count..left]);
                    left -= count - 1;
                }
            }
            left -= 1;
        }
        left
    }

    /// The innermost activation began.
    fn enter(&mut self, function: FuncId, by: Caller) {
        let mut frame = self.frames.pop().unwrap_or_default();
        if by == Caller::Host {
            return;
        }
        let ty = self.plans.program().function(function).map(|f| f.ty);
        let ty = ty.and_then(|ty| self.plans.program().types.get(ty));
        let parameters = ty.map_or(0, |ty| ty.params.len() as u32);
        let arguments = (0..parameters).filter(|&i| frame.take(i));
        self.of_end.arguments = arguments.collect();
        self.of_end.called = self.follows.control && frame.needs_call();
    }

    fn top(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// What a call gave went to these variables of the innermost activation: which of them are wanted. If nothing follows the call, it returned them.
    fn given(&mut self, first: u32, count: u32) -> Vec<u32> {
        let frame = self.top();
        if let Some((results, wanted)) = frame.returned.take() {
            let top = first + count;
            wanted
                .iter()
                .for_each(|i| frame.want(top.saturating_sub(results) + i));
        }
        (0..count).filter(|i| frame.take(first + i)).collect()
    }

    /// An activation ended.
    fn leave(&mut self, results: Option<(u32, u32)>) {
        let returned = results.map(|(first, count)| (count, self.given(first, count)));
        self.frames.push(Frame {
            returned,
            ..Frame::default()
        });
    }

    /// An exception was caught by the innermost activation.
    fn caught(&mut self, first: u32, count: u32) {
        let frame = self.top();
        if let Some((results, wanted)) = frame.returned.take() {
            // The handler is the function's own label.
            wanted
                .iter()
                .filter(|&&i| i < results)
                .for_each(|i| frame.want(first + i));
        }
        let thrown = (0..count).filter(|i| frame.take(first + i)).collect();
        let all_thrown = frame.take(first + count);
        let handler = frame.next;
        let waits = frame.waits();
        self.of_end.thrown = thrown;
        self.of_end.all_thrown = all_thrown;
        self.of_end.threw = match handler {
            Some(handler) if waits => self.handles(handler),
            _ => false,
        };
    }

    /// Whether something waits for the decision to come to a handler, whoever raised what it handles.
    fn handles(&mut self, handler: BlockId) -> bool {
        let Some(function) = self.top().function else {
            return false;
        };
        let Some(decided) = self.plans.handled(function, handler) else {
            return false;
        };
        self.top().waits_for(&decided)
    }

    /// A call of the host.
    fn host(&mut self, events: &[Event]) {
        let mut wanted = self.asked.as_ref().is_some_and(|asked| asked.end);
        for event in events.iter().rev() {
            match *event {
                Event::HostReturned(first, count) => wanted |= !self.given(first, count).is_empty(),
                Event::HostWrite(range) => wanted |= self.bytes.take(range),
                _ => {}
            }
        }
        if wanted {
            for event in events {
                if let Event::HostRead(range) = *event
                    && self.follows.data
                {
                    self.bytes.add(range);
                }
            }
        }
        self.of_end.host = wanted;
    }

    fn clear(&mut self, plan: &Plan) {
        let words = plan.registers.div_ceil(64);
        if self.registers.len() < words {
            self.registers.resize(words, 0);
        }
        self.registers[..words].fill(0);
        self.forced = None;
        self.ended = false;
    }

    /// What a node ends with is in the slice.
    fn mark_end(&mut self, execution: Execution) {
        if !std::mem::replace(&mut self.ended, true) {
            let plan = self.plans.get(execution.node);
            if plan.is_some_and(|plan| self.is_within(plan.insts.len())) {
                self.marks.end(execution);
            }
        }
    }

    #[inline]
    fn want_register(&mut self, register: Register, plan: &Plan) {
        if (register as usize) < plan.registers {
            self.registers[register as usize / 64] |= 1 << (register % 64);
        }
    }

    #[inline]
    fn is_wanted(&self, register: usize) -> bool {
        self.registers[register / 64] & 1 << (register % 64) != 0
    }

    /// A node was executed, all of it.
    fn execution(&mut self, execution: Execution, events: &[Event], accesses: &[u64]) {
        let Some(plan) = self.plans.get(execution.node).map(Rc::clone) else {
            return;
        };
        let function = plan.function;
        let frame = self.top();
        frame.function = Some(function);
        let last = plan.blocks.len().saturating_sub(1);
        if self.asked.is_none() && !self.may_matter(&plan, execution, events, accesses) {
            self.top().next = plan.blocks.first().copied();
            return;
        }
        self.clear(&plan);
        let mut live = false;
        self.ask(&plan, execution);
        if execution.ended {
            live = self.end(&plan, execution) | self.ended;
            let frame = self.top();
            let mut moved = [0u32; 8];
            let mut count = 0;
            let mut more = Vec::new();
            for &(variable, register) in &plan.outputs {
                if frame.take(variable) {
                    match moved.get_mut(count) {
                        Some(place) => *place = register,
                        None => more.push(register),
                    }
                    count += 1;
                }
            }
            let moved = moved.iter().take(count).chain(&more);
            moved.for_each(|&register| self.want_register(register, &plan));
        }
        self.of_end = OfEnd::default();
        self.go_over(&plan, execution, events, accesses, (last, live));
    }

    /// What the criteria want of an execution besides what is in memory.
    fn ask(&mut self, plan: &Plan, execution: Execution) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        for &inst in &asked.insts {
            self.want_register(plan.result(inst) as Register, plan);
        }
        for &variable in &asked.variables {
            self.want_register(variable, plan);
        }
        if asked.end && execution.ended {
            match &plan.end {
                End::Call { .. } => self.of_end.host = true,
                End::Return(values) => {
                    if self.follows.data {
                        let values = values.iter();
                        values.for_each(|&value| self.want_register(value, plan));
                    }
                    self.mark_end(execution);
                }
                End::Throw(_) | End::Rethrow(_) => {
                    self.of_end.all_thrown = true;
                    self.of_end.threw = true;
                }
                End::Next => {}
            }
        }
        self.asked = Some(asked);
    }

    /// Whether the criteria want that a block of the node at hand was executed.
    #[inline]
    fn asks_block(&self, position: usize) -> bool {
        let asked = self.asked.as_ref();
        asked.is_some_and(|asked| asked.blocks.contains(&position))
    }

    /// What the criteria want of what is in memory behind the first `behind` instructions of an execution.
    #[inline]
    fn ask_memory(&mut self, behind: usize) {
        let Some(asked) = &mut self.asked else {
            return;
        };
        while let Some((_, of)) = asked.memory.pop_if(|(before, _)| *before >= behind) {
            match of {
                Stored::Bytes(range) => self.bytes.add(range),
                Stored::Global(global) => set(&mut self.globals, global, true),
            }
        }
    }

    /// Whether an execution of a node can have to do with what is wanted.
    #[inline]
    fn may_matter(
        &self,
        plan: &Plan,
        execution: Execution,
        events: &[Event],
        accesses: &[u64],
    ) -> bool {
        let Some(frame) = self.frames.last() else {
            return true;
        };
        if !execution.ended || !events.is_empty() || plan.more || !self.of_end.is_none() {
            return true;
        }
        if frame
            .returned
            .as_ref()
            .is_some_and(|(_, wanted)| !wanted.is_empty())
        {
            return true;
        }
        if frame.wants_any() && plan.outputs.iter().any(|&(v, _)| frame.wants(v)) {
            return true;
        }
        if frame.waits() && (plan.forks || frame.waits_for(&plan.decided)) {
            return true;
        }
        let globals = &self.globals;
        if plan
            .globals
            .iter()
            .any(|&g| globals.get(g as usize) == Some(&true))
        {
            return true;
        }
        if self.bytes.len() == 0 {
            return false;
        }
        plan.stores.iter().any(|&(from_end, memory)| {
            let access = accesses[accesses.len() - 1 - from_end as usize];
            unpacked(memory, access).is_none_or(|range| self.bytes.any(range))
        })
    }

    /// What is wanted of how a node ended. Whether its last block is in the slice.
    fn end(&mut self, plan: &Plan, execution: Execution) -> bool {
        let of_end = std::mem::take(&mut self.of_end);
        let returned = self.top().returned.take();
        let mut live = false;
        match &plan.end {
            End::Next => {}
            End::Call {
                arguments,
                index,
                table,
            } => {
                let happened = of_end.called || of_end.host;
                for (i, &argument) in (0..).zip(arguments) {
                    let wanted = of_end.host || of_end.arguments.contains(&i);
                    if wanted && self.follows.data {
                        self.want_register(argument, plan);
                    }
                }
                if happened {
                    self.call_happened(plan, execution, *index, *table);
                    live = true;
                }
            }
            End::Return(values) => {
                for i in returned.iter().flat_map(|(_, wanted)| wanted) {
                    if let Some(&value) = values.get(*i as usize) {
                        self.want_register(value, plan);
                    }
                }
            }
            End::Throw(values) => {
                for (i, &value) in (0..).zip(values) {
                    let wanted = of_end.all_thrown || of_end.thrown.contains(&i);
                    if wanted && self.follows.data {
                        self.want_register(value, plan);
                    }
                }
                if of_end.threw {
                    self.mark_end(execution);
                    live = true;
                }
            }
            End::Rethrow(exception) => {
                let wanted = of_end.all_thrown || of_end.threw || !of_end.thrown.is_empty();
                if wanted && self.follows.data {
                    self.want_register(*exception, plan);
                }
                if of_end.threw {
                    self.mark_end(execution);
                    live = true;
                }
            }
        }
        live
    }

    /// The call that a node ends with is in the slice.
    fn call_happened(
        &mut self,
        plan: &Plan,
        execution: Execution,
        index: Option<Register>,
        table: Option<u32>,
    ) {
        self.mark_end(execution);
        if self.follows.data {
            if let Some(index) = index {
                self.want_register(index, plan);
            }
            if let Some(table) = table {
                set(&mut self.tables, table, true);
            }
        }
    }

    /// Goes back over a node's blocks, from one on, which is in the slice if it is `live`.
    fn go_over(
        &mut self,
        plan: &Plan,
        execution: Execution,
        mut events: &[Event],
        accesses: &[u64],
        (last, mut live): (usize, bool),
    ) {
        let executed = execution.executed as usize;
        let mut accesses = accesses.iter().rev();
        for position in (0..=last).rev() {
            let block = plan.blocks[position];
            if self.decides(plan, position) {
                live = true;
                self.decided(plan, position, execution);
            }
            live |= self.asks_block(position);
            let first = plan.firsts[position] as usize;
            let behind = (plan.firsts[position + 1] as usize).min(executed);
            for i in (first..behind).rev() {
                self.ask_memory(i + 1);
                live |= self.inst(plan, i, execution, &mut events, &mut accesses);
            }
            if std::mem::take(&mut live) && self.follows.control {
                let frame = self.top();
                match plan.conditional[position] {
                    true => frame.depends(block),
                    false => frame.of_call = true,
                }
            }
        }
        self.ask_memory(0);
        // Variables that are wanted as they were at the beginning.
        let variables = plan.variables as usize;
        for word in 0..variables.div_ceil(64) {
            let mut bits = self.registers[word];
            while bits != 0 {
                let variable = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if variable < variables {
                    self.top().want(variable as u32);
                }
            }
        }
        self.top().next = plan.blocks.first().copied();
    }

    /// Whether where a block went decided something in the slice.
    #[inline]
    fn decides(&mut self, plan: &Plan, position: usize) -> bool {
        let frame = self.top();
        if !frame.waits() {
            return false;
        }
        match plan.decisions.get(position) {
            Some(decisions) => frame.decide(decisions),
            None if plan.forks => match frame.next {
                Some(next) => {
                    let decisions =
                        self.plans
                            .decisions(plan.function, plan.blocks[position], next);
                    decisions.is_some_and(|decisions| self.top().decide(&decisions))
                }
                None => false,
            },
            None => false,
        }
    }

    /// What ends a block is in the slice, because of where it went.
    fn decided(&mut self, plan: &Plan, position: usize, execution: Execution) {
        let last = position + 1 == plan.blocks.len();
        match &plan.end {
            End::Call { index, table, .. } if last => {
                self.call_happened(plan, execution, *index, *table);
            }
            End::Throw(_) | End::Rethrow(_) if last => self.mark_end(execution),
            _ => {
                let insts = plan.firsts[position]..plan.firsts[position + 1];
                let branch = insts.last().map(|inst| inst as usize);
                self.forced = branch.filter(|&inst| plan.insts[inst].kind == Kind::Branch);
            }
        }
    }

    /// Goes back over an instruction. Whether it is in the slice.
    #[inline]
    fn inst<'s>(
        &mut self,
        plan: &Plan,
        i: usize,
        execution: Execution,
        events: &mut &[Event],
        accesses: &mut impl Iterator<Item = &'s u64>,
    ) -> bool {
        let inst = plan.insts[i];
        let mut wanted = self.is_wanted(plan.result(i));
        if let Some(asked) = &self.asked {
            wanted |= asked.insts.contains(&i);
        }
        if self.forced == Some(i) {
            wanted = true;
            self.forced = None;
        }
        // Operands that tell where, and all.
        let (mut where_to, mut all) = (0, usize::from(inst.count));
        match inst.kind {
            Kind::Pure | Kind::Branch | Kind::Drop => {}
            Kind::Load => {
                let access = accesses.next();
                where_to = 1;
                if wanted
                    && self.follows.data
                    && let Some(range) = access.and_then(|&access| unpacked(inst.memory, access))
                {
                    self.bytes.add(range);
                }
            }
            Kind::Store | Kind::Many => {
                let access = accesses.next();
                let range = access.and_then(|&access| unpacked(inst.memory, access));
                let range = range.or_else(|| match pop(events, i) {
                    Some(Event::Write { range, .. }) => Some(range),
                    _ => None,
                });
                where_to = 1;
                wanted |= range.is_some_and(|range| self.bytes.take(range));
            }
            Kind::Copy => {
                where_to = 3;
                if let Some(Event::Copy { from, to, .. }) = pop(events, i) {
                    wanted |= self.copied(from, to, wanted);
                }
            }
            Kind::GlobalGet => {
                if wanted && self.follows.data {
                    set(&mut self.globals, inst.number, true);
                }
            }
            Kind::GlobalSet => wanted |= take(&mut self.globals, inst.number),
            Kind::MemorySize => {
                if wanted && self.follows.data {
                    set(&mut self.sizes, inst.memory.into(), true);
                }
            }
            // What is in a table, and how large things are, is taken as a whole.
            Kind::MemoryGrow => {
                wanted |= self.sizes.get(usize::from(inst.memory)) == Some(&true);
                if wanted && self.follows.data {
                    set(&mut self.sizes, inst.memory.into(), true);
                }
            }
            Kind::TableGet => {
                if wanted && self.follows.data {
                    set(&mut self.tables, inst.number, true);
                }
            }
            Kind::TableSet | Kind::TableGrow => {
                wanted |= self.tables.get(inst.number as usize) == Some(&true);
                if wanted && self.follows.data {
                    set(&mut self.tables, inst.number, true);
                    set(&mut self.tables, inst.other, true);
                }
            }
        }
        if !wanted {
            return false;
        }
        if self.is_within(i) {
            self.marks.inst(execution, i);
        }
        if !self.follows.data {
            all = 0;
        }
        let skipped = if self.follows.addresses { 0 } else { where_to };
        for &operand in inst.operands().iter().take(all).skip(skipped) {
            self.want_register(operand, plan);
        }
        true
    }

    /// Bytes were copied. Whether some are wanted, or all are: then those that were copied to them are.
    fn copied(&mut self, from: Range, to: Range, all: bool) -> bool {
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        self.bytes.parts(to, &mut parts);
        if all {
            parts = vec![to];
        }
        self.bytes.take(to);
        if self.follows.data {
            for part in &parts {
                self.bytes.add(Range {
                    memory: from.memory,
                    address: from.address + (part.address - to.address),
                    length: part.length,
                });
            }
        }
        let any = !parts.is_empty();
        self.parts = parts;
        any
    }
}

impl OfEnd {
    #[inline]
    fn is_none(&self) -> bool {
        !(self.called || self.host || self.all_thrown || self.threw)
            && self.arguments.is_empty()
            && self.thrown.is_empty()
    }
}

/// The last event, if it is of this instruction.
fn pop(events: &mut &[Event], of: usize) -> Option<Event> {
    let (&last, rest) = events.split_last()?;
    match last {
        Event::Write { inst, .. } | Event::Copy { inst, .. } if inst as usize == of => {
            *events = rest;
            Some(last)
        }
        _ => None,
    }
}

fn set(flags: &mut Vec<bool>, number: u32, to: bool) {
    let number = number as usize;
    if flags.len() <= number {
        flags.resize(number + 1, false);
    }
    flags[number] = to;
}

/// Takes a flag away. Whether it was there.
fn take(flags: &mut [bool], number: u32) -> bool {
    let flag = flags.get_mut(number as usize);
    flag.is_some_and(std::mem::take)
}
