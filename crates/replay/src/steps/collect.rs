//! Converts the machine's actions to steps.

use std::collections::VecDeque;
use std::rc::Rc;

use afterimage_ids::{FuncId, NodeId, OpId};
use afterimage_machine::{
    Code, GlobalBits, Inst, NodeCode, NodeEnd, Observer, Range, StoppedBefore, Trap,
};
use afterimage_program::Program;
use wasmparser::ValType;

use super::plan::{Item, Kind, Plan};
use super::step::overlap;
use super::{Level, Step, Tried, Value, Wanted, What};

/// A memory access of the current node.
#[derive(Clone, Copy, Debug)]
enum Reference {
    /// A load, with the value that it read.
    Read(Range, GlobalBits),
    /// A store, with the value that it wrote.
    Write(Range, GlobalBits),
    Copy(Range, Range),
}

/// The bytes of an access, if there are few.
type Short = Option<Box<[u8]>>;

/// The owner of the next reported bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BytesOf {
    /// No owner, because the step is not wanted.
    Unwanted,
    /// The last memory access of the node.
    Reference,
    /// The last collected step.
    Step,
}

/// The call that ends a node.
#[derive(Clone, Copy, Debug)]
struct Site {
    function: FuncId,
    op: Option<OpId>,
    time: u64,
}

/// Collects the steps of nodes, node by node.
pub(super) struct Collector<'a> {
    program: &'a Program,
    pub wanted: Wanted,
    pub steps: VecDeque<Step>,
    /// The plan of the current node.
    plan: Rc<Plan>,
    function: FuncId,
    start: u64,
    stopped: Option<StoppedBefore>,
    /// The accesses of the node so far, by instruction.
    references: Vec<(usize, Reference, Short)>,
    told: BytesOf,
    /// The node's last operator, if it may still trap or make a call.
    last: Option<Site>,
    /// The memory access that the instruction at which the node stopped would have made.
    tried: Option<Tried>,
    /// The imported function that was called, and the place of the call.
    host: Option<(FuncId, Site)>,
    /// The function that returns next without executing another node.
    passing: Option<FuncId>,
}

impl<'a> Collector<'a> {
    pub fn new(program: &'a Program, wanted: Wanted) -> Self {
        Self {
            program,
            wanted,
            steps: VecDeque::new(),
            plan: Rc::default(),
            function: FuncId::from_u32(0),
            start: 0,
            stopped: None,
            references: Vec::new(),
            told: BytesOf::Unwanted,
            last: None,
            tried: None,
            host: None,
            passing: None,
        }
    }

    /// Begins a node.
    pub fn begin(
        &mut self,
        plan: Rc<Plan>,
        function: FuncId,
        start: u64,
        stopped: Option<StoppedBefore>,
    ) {
        self.plan = plan;
        self.function = function;
        self.start = start;
        self.stopped = stopped;
        self.references.clear();
        self.last = None;
        self.tried = None;
    }

    /// Adds the step for the trap that ended the run in the node.
    pub fn trapped(&mut self, trap: Trap) {
        let is_one = self.wanted.level == Level::Statement || self.tried.is_some();
        if let Some(Site { function, op, time }) = self.last.filter(|_| is_one) {
            self.push(time, function, op, What::Trap(trap, self.tried));
        }
    }

    /// Adds a step if it is wanted. Returns whether it was added.
    fn push(&mut self, time: u64, function: FuncId, op: Option<OpId>, what: What) -> bool {
        // The host's own actions, which have no operator, come before the block.
        self.push_at((time, op), function, op, what)
    }

    /// Like [`push`](Self::push), but for a step at a given place in a block.
    fn push_at(
        &mut self,
        (time, place): (u64, Option<OpId>),
        function: FuncId,
        op: Option<OpId>,
        what: What,
    ) -> bool {
        let wanted = &self.wanted;
        let fits = wanted.window.first <= time
            && time <= wanted.window.last
            && wanted.within.has(time, place)
            && wanted.function.is_none_or(|wanted| wanted == function)
            && wanted.range.is_none_or(|range| what.touches(range));
        if fits {
            self.steps.push_back(Step {
                time,
                function,
                op,
                what,
                bytes: None,
            });
        }
        fits
    }

    /// Whether an access touches the wanted bytes.
    fn is_wanted(&self, range: Range) -> bool {
        self.wanted
            .range
            .is_none_or(|wanted| overlap(wanted, range))
    }

    fn item(&mut self, item: &Item, what: What, bytes: Short) {
        let time = self.start + u64::from(item.block);
        if self.push(time, self.function, Some(item.op), what) {
            self.set_bytes(bytes);
        }
    }

    /// Sets the bytes of the last step.
    fn set_bytes(&mut self, bytes: Short) {
        if let Some(step) = self.steps.back_mut() {
            step.bytes = bytes;
        }
    }

    fn refer(&mut self, inst: usize, reference: Reference, is_wanted: bool) {
        self.told = BytesOf::Unwanted;
        if is_wanted {
            self.references.push((inst, reference, None));
            self.told = BytesOf::Reference;
        }
    }

    /// Sets the value of the last access.
    fn set_value(&mut self, value: GlobalBits) {
        if self.told == BytesOf::Reference
            && let Some((_, Reference::Read(_, of) | Reference::Write(_, of), _)) =
                self.references.last_mut()
        {
            *of = value;
        }
    }

    fn by_host(&mut self, site: Site, what: What) {
        self.told = if self.push(site.time, site.function, site.op, what) {
            BytesOf::Step
        } else {
            BytesOf::Unwanted
        };
    }

    fn types_of(&self, function: FuncId) -> Option<(&'a [ValType], &'a [ValType])> {
        let ty = match self.program.function(function) {
            Some(function) => function.ty,
            None => self.program.imports.get(function.as_u32() as usize)?.ty,
        };
        let ty = self.program.types.get(ty)?;
        Some((&ty.params, &ty.results))
    }

    /// Collects the steps of the first `executed` instructions of a node.
    fn instructions_done(&mut self, code: &NodeCode, executed: usize, bank: Bank<'_>) {
        let plan = Rc::clone(&self.plan);
        match self.wanted.level {
            Level::Memory => self.memory_done(&plan, code, executed, bank),
            Level::Statement => self.statements_done(&plan, code, executed, bank),
        }
    }

    fn memory_done(&mut self, plan: &Plan, code: &NodeCode, executed: usize, bank: Bank<'_>) {
        for at in 0..self.references.len() {
            let (inst, reference, ref mut bytes) = self.references[at];
            let bytes = bytes.take();
            let item = &plan.items[plan.of_inst[inst] as usize];
            self.item(item, accessed(code, inst, reference, item, bank), bytes);
        }
        if let Some(&item) = plan.of_inst.get(executed) {
            self.tries(code, executed, &plan.items[item as usize], bank);
            return;
        }
        let last = plan.items.last();
        if let Some(item) = last.filter(|item| item.kind == Kind::Call) {
            self.last = Some(self.site(item));
        }
    }

    fn statements_done(&mut self, plan: &Plan, code: &NodeCode, executed: usize, bank: Bank<'_>) {
        let mut reference = 0;
        let returns = matches!(code.end, NodeEnd::Return(_));
        for (at, item) in plan.items.iter().enumerate() {
            if self
                .stopped
                .is_some_and(|stopped| self.is_behind(stopped, item))
            {
                break;
            }
            let mut bytes = None;
            let what = match item.kind {
                Kind::Inst(inst) if inst >= executed => {
                    self.tries(code, inst, item, bank);
                    break;
                }
                Kind::Inst(inst) => {
                    // An atomic operator has several instructions, and more than one may access
                    // memory.
                    let before = self.references[reference..].iter();
                    reference += before.take_while(|(of, ..)| *of < inst).count();
                    match self.references.get_mut(reference) {
                        Some((of, found, short)) if *of == inst => {
                            reference += 1;
                            let found = *found;
                            bytes = short.take();
                            accessed(code, inst, found, item, bank)
                        }
                        _ => computed(code, inst, item, bank),
                    }
                }
                // The step of the return represents this jump.
                Kind::Jump if returns && at + 1 == plan.items.len() => continue,
                Kind::Jump => What::Jump,
                Kind::Call | Kind::Unreachable => {
                    self.last = Some(self.site(item));
                    continue;
                }
                Kind::Throw => {
                    self.last = Some(self.site(item));
                    let registers = match &code.end {
                        NodeEnd::Throw { values, .. } => &values[..],
                        NodeEnd::Rethrow { exception, .. } => std::slice::from_ref(exception),
                        _ => &[],
                    };
                    let bits = registers.iter().map(|&register| bank.get(register));
                    What::Throw(typed(item.operands(), bits))
                }
            };
            self.item(item, what, bytes);
        }
    }

    /// Records an instruction that may trap and end the run.
    fn tries(&mut self, code: &NodeCode, position: usize, item: &Item, bank: Bank<'_>) {
        self.last = Some(self.site(item));
        self.tried = tried(&code.insts[position], item, bank);
    }

    fn site(&self, item: &Item) -> Site {
        Site {
            function: self.function,
            op: Some(item.op),
            time: self.start + u64::from(item.block),
        }
    }

    /// Whether a statement is after the place where the run was stopped.
    fn is_behind(&self, stopped: StoppedBefore, item: &Item) -> bool {
        let function = self.program.function(self.function);
        let block = function.and_then(|function| function.cfg.blocks.get(stopped.block));
        item.op >= stopped.op && block.is_some_and(|block| block.ops.contains(&item.op))
    }

    fn function_returns(&mut self, registers: &[u32], bank: Bank<'_>) {
        let Some((_, types)) = self.types_of(self.function) else {
            return;
        };
        let bits = registers.iter().map(|&register| bank.get(register));
        let what = What::Return(typed(types, bits));
        let jump = self.plan.items.last();
        let op = jump.filter(|item| item.kind == Kind::Jump);
        let op = op.map_or_else(|| self.end_of(self.function), |item| Some(item.op));
        self.push(self.now(), self.function, op, what);
    }

    /// Returns the time of the node's last block.
    fn now(&self) -> u64 {
        self.start + u64::from(self.plan.blocks.saturating_sub(1))
    }

    /// Returns a function's last operator, which is its `end`.
    fn end_of(&self, function: FuncId) -> Option<OpId> {
        let operators = self.program.function(function)?.operators;
        operators.checked_sub(1).map(OpId::from_u32)
    }

    /// Handles the return of an activation, which may have executed nothing since its last call.
    /// The last block was executed at `time`.
    fn passed(&mut self, time: u64, values: &[GlobalBits]) {
        let Some(function) = self.passing.take() else {
            return;
        };
        if let Some((_, types)) = self.types_of(function) {
            let what = What::Return(typed(types, values.iter().copied()));
            let op = self.end_of(function);
            // The return is the last step in the block.
            let last = OpId::from_u32(u32::MAX - 1);
            self.push_at((time, Some(last)), function, op, what);
        }
    }
}

/// Observes a node of an unwanted function, and only checks whether activations of a wanted
/// function return after it.
pub(super) struct Passing<'c, 'a> {
    collector: &'c mut Collector<'a>,
    time: u64,
}

impl<'c, 'a> Passing<'c, 'a> {
    /// Creates an observer for a node whose last block is executed at `time`.
    pub fn new(collector: &'c mut Collector<'a>, time: u64) -> Self {
        Self { collector, time }
    }
}

impl Observer for Passing<'_, '_> {
    const REGISTERS: bool = false;

    fn passes_on(&mut self, function: FuncId) {
        self.collector.passing = Some(function);
    }

    fn returned(&mut self, values: &[GlobalBits]) {
        self.collector.passed(self.time, values);
    }
}

/// Returns values with these types and bits.
fn typed(types: &[ValType], bits: impl Iterator<Item = GlobalBits>) -> Box<[Value]> {
    let values = types.iter().zip(bits);
    values.map(|(&ty, bits)| Value::new(ty, bits)).collect()
}

/// The registers of a node.
#[derive(Clone, Copy)]
struct Bank<'a> {
    low: &'a [u64],
    high: &'a [u64],
}

impl Bank<'_> {
    fn get(self, register: u32) -> GlobalBits {
        let of = |half: &[u64]| half.get(register as usize).copied().unwrap_or(0);
        (of(self.low), of(self.high))
    }
}

/// Returns the step of an instruction that accesses memory.
fn accessed(
    code: &NodeCode,
    position: usize,
    reference: Reference,
    item: &Item,
    bank: Bank<'_>,
) -> What {
    let inst = &code.insts[position];
    match reference {
        Reference::Read(range, value) => {
            let ty = item.result().unwrap_or(ValType::I32);
            What::Load(range, Value::new(ty, value))
        }
        Reference::Copy(from, to) => What::Copy { from, to },
        Reference::Write(range, value) => match inst.code {
            Code::MemoryFill => What::Fill(range, bank.get(inst.b).0 as u8),
            Code::MemoryInit => What::Init {
                to: range,
                segment: inst.immediate as u32,
                from: bank.get(inst.b).0,
            },
            _ => What::Store(range, item.stored(value)),
        },
    }
}

/// Returns the memory access that a trapping instruction would have made.
fn tried(inst: &Inst, item: &Item, bank: Bank<'_>) -> Option<Tried> {
    let accesses = inst.accesses([inst.a, inst.b, inst.c].map(|register| bank.get(register).0));
    let second = || bank.get(inst.b);
    Some(match (accesses.read, accesses.written, inst.code) {
        (Some(from), Some(to), _) => Tried::Copy { from, to },
        (Some(read), None, _) => Tried::Load(read),
        (None, Some(to), Code::MemoryFill) => Tried::Fill(to, second().0 as u8),
        (None, Some(to), Code::MemoryInit) => Tried::Init {
            to,
            segment: inst.immediate as u32,
            from: second().0,
        },
        (None, Some(to), _) => Tried::Store(to, item.stored(inst.stored(second()))),
        (None, None, _) => return None,
    })
}

/// Returns the step of an instruction that does not access memory.
fn computed(code: &NodeCode, position: usize, item: &Item, bank: Bank<'_>) -> What {
    let inst = &code.insts[position];
    let result = || {
        Value::new(
            item.result().unwrap_or(ValType::I32),
            bank.get(code.first_result() + position as u32),
        )
    };
    let operand = |index: usize, register| {
        Value::new(
            item.operand(index).unwrap_or(ValType::I32),
            bank.get(register),
        )
    };
    match inst.code {
        Code::MemoryGrow => What::Grow {
            memory: u32::from(inst.memory),
            by: bank.get(inst.a).0,
            result: result(),
        },
        Code::GlobalSet => What::SetGlobal(inst.immediate as u32, operand(0, inst.a)),
        Code::Branch(_) => What::Branch(operand(item.operands().len().saturating_sub(1), inst.a)),
        _ if inst.code.gives() => What::Computed(result()),
        _ => {
            let registers = [inst.a, inst.b, inst.c];
            let count = inst.code.operands();
            let operands = (0..).zip(registers).take(count);
            What::Changed(operands.map(|(i, register)| operand(i, register)).collect())
        }
    }
}

/// Passes the actions of a node to a collector. Registers are needed for all steps except the steps
/// of loads and stores that do not trap.
pub(super) struct Collecting<'c, 'a, const REGISTERS: bool>(pub &'c mut Collector<'a>);

impl<const REGISTERS: bool> Observer for Collecting<'_, '_, REGISTERS> {
    const REGISTERS: bool = REGISTERS;

    fn node(&mut self, _: NodeId, _: &NodeCode) {
        self.0.host = None;
    }

    fn read(&mut self, inst: usize, range: Range) {
        let is_wanted = self.0.is_wanted(range);
        self.0
            .refer(inst, Reference::Read(range, (0, 0)), is_wanted);
    }

    fn write(&mut self, inst: usize, range: Range) {
        let is_wanted = self.0.is_wanted(range);
        self.0
            .refer(inst, Reference::Write(range, (0, 0)), is_wanted);
    }

    fn loaded(&mut self, _: usize, value: GlobalBits) {
        self.0.set_value(value);
    }

    fn stored(&mut self, _: usize, value: GlobalBits) {
        self.0.set_value(value);
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        let is_wanted = self.0.is_wanted(from) || self.0.is_wanted(to);
        self.0.refer(inst, Reference::Copy(from, to), is_wanted);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if bytes.len() > Step::SHORT {
            return;
        }
        let bytes = Some(bytes.into());
        match self.0.told {
            BytesOf::Unwanted => {}
            BytesOf::Step => self.0.set_bytes(bytes),
            BytesOf::Reference => {
                if let Some(last) = self.0.references.last_mut() {
                    last.2 = bytes;
                }
            }
        }
    }

    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        let bank = Bank { low, high };
        self.0.instructions_done(code, code.insts.len(), bank);
        if let (NodeEnd::Return(registers), Level::Statement) = (&code.end, self.0.wanted.level) {
            self.0.function_returns(registers, bank);
        }
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        self.0.instructions_done(code, executed, Bank { low, high });
    }

    fn passes_on(&mut self, function: FuncId) {
        self.0.passing = Some(function);
    }

    fn called(&mut self, function: FuncId, arguments: &[GlobalBits]) {
        // A call by the host comes before the node.
        let by_host = Site {
            function,
            op: None,
            time: self.0.start,
        };
        let site = self.0.last.take().unwrap_or(by_host);
        if self.0.wanted.level == Level::Statement {
            let types = self
                .0
                .types_of(function)
                .map_or(&[][..], |(params, _)| params);
            let arguments = typed(types, arguments.iter().copied());
            let callee = function;
            let what = What::Call { callee, arguments };
            self.0.push(site.time, site.function, site.op, what);
        }
        let is_import = self.0.program.function(function).is_none();
        self.0.host = is_import.then_some((function, site));
    }

    fn returned(&mut self, values: &[GlobalBits]) {
        let Some((import, site)) = self.0.host.take() else {
            if self.0.wanted.level == Level::Statement {
                self.0.passed(self.0.now(), values);
            }
            return;
        };
        if self.0.wanted.level == Level::Statement {
            let types = self
                .0
                .types_of(import)
                .map_or(&[][..], |(_, results)| results);
            let values = typed(types, values.iter().copied());
            let what = What::HostReturn(import, values);
            self.0.push(site.time, site.function, site.op, what);
        }
    }

    fn host_read(&mut self, range: Range) {
        if let Some((import, site)) = self.0.host {
            self.0.by_host(site, What::HostRead(import, range));
        }
    }

    fn host_write(&mut self, range: Range) {
        if let Some((import, site)) = self.0.host {
            self.0.by_host(site, What::HostWrite(import, range));
        }
    }
}
