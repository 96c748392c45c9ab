//! Re-runs a program with everything outside a slice replaced.
//!
//! Values in the slice are computed again from earlier recomputed values. All other values are
//! replaced by arbitrary values. Control follows the recorded path, and writes go to the recorded
//! addresses. If a write's recomputed address differs from the recorded address, the write stores
//! arbitrary bytes at the recorded address. If the slice is complete, the value at its criterion is
//! unchanged.
//!
//! The test makes two assumptions: given the same inputs, host calls return the same results, and
//! tables have the same elements.

use std::collections::{BTreeMap, HashMap, HashSet};

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId, OpId};
use afterimage_machine::{
    Caller, Code, Inst, NodeCode, NodeEnd, Observer, Operand, Range, Register, stopped_before,
};
use afterimage_numeric::Kind;
use afterimage_program::Program;
use afterimage_slice::Operator;
use afterimage_testkit::modules::SplitMix64;

use super::naive::{Distances, Naive};
use crate::harness::Recording;
use crate::stored::Stored;

/// A value, which is either recomputed or as recorded.
#[derive(Clone, Copy, Debug)]
enum Value {
    Bits(u128),
    Recorded,
}

/// The contents of a slice.
pub enum Kept<'a> {
    /// The reachable executions.
    Executions(&'a Naive<'a>, &'a Distances),
    /// All executions of these operators.
    Operators(&'a BTreeMap<Operator, u64>),
}

/// A written byte of memory, with its current value and whether that differs from the recorded
/// value.
#[derive(Clone, Copy, Debug)]
struct Byte {
    again: u8,
    differs: bool,
}

/// An activation.
struct Frame {
    variables: Vec<Value>,
    /// Whether the activation returns the result of its last call.
    returns: bool,
    results: usize,
}

/// The part of a node's execution that is the criterion.
#[derive(Clone, Copy, Debug)]
pub enum SliceStart {
    /// The result, write or decision of this instruction.
    Inst(usize),
    /// The operands of the call, return or throw at the end.
    End,
}

/// Re-runs a recording.
pub struct Altered<'a> {
    program: &'a Program,
    /// The last block of each node.
    last: Vec<BlockId>,
    kept: Kept<'a>,
    random: SplitMix64,
    /// The execution of the criterion, and the part of it.
    asked: (usize, SliceStart),
    /// Whether the criterion's value was unchanged.
    pub same: Option<bool>,
    /// The number of replaced values.
    pub replaced: u64,
    /// The number of executions of nodes so far.
    count: usize,
    node: NodeId,
    frames: Vec<Frame>,
    /// The written bytes. All other bytes are as recorded.
    memory: HashMap<(u32, u64), Byte>,
    globals: HashMap<u32, Value>,
    /// The memories whose sizes may differ from the recorded sizes. `tables` holds the tables that
    /// may differ.
    sizes: HashSet<u32>,
    tables: HashSet<u32>,
    /// Arguments, results, or the values of an exception.
    given: Vec<Value>,
    /// Whether the thrown values differ.
    thrown_differs: bool,
    /// Whether the next host call is outside the slice or received other operands.
    host_differs: bool,
    reads: HashMap<usize, Range>,
    writes: HashMap<usize, Range>,
    copies: HashMap<usize, (Range, Range)>,
}

impl<'a> Altered<'a> {
    pub fn run(
        recording: &'a Recording,
        stored: &Stored,
        kept: Kept<'a>,
        asked: (usize, SliceStart),
    ) -> Self {
        let mut machine = stored.machine(recording);
        let nodes = stored.path.nodes().values();
        let mut altered = Self {
            program: &recording.program,
            last: nodes
                .map(|node| *node.blocks.last().expect("a block"))
                .collect(),
            kept,
            random: SplitMix64(asked.0 as u64),
            asked,
            same: None,
            replaced: 0,
            count: 0,
            node: NodeId::new(0),
            frames: Vec::new(),
            memory: HashMap::new(),
            globals: HashMap::new(),
            sizes: HashSet::new(),
            tables: HashSet::new(),
            given: Vec::new(),
            thrown_differs: false,
            host_differs: false,
            reads: HashMap::new(),
            writes: HashMap::new(),
            copies: HashMap::new(),
        };
        let end = &recording.recorded.end;
        let stopped = stopped_before(&recording.program, &recording.bytes, end);
        let mut cursor = stored.path.cursor();
        while altered.same.is_none()
            && let Some(visit) = cursor.next().expect("a step")
        {
            let done = match stopped {
                Some(stopped) if visit.last() == stored.path.length() => {
                    machine.step_before(visit.node, visit.length, stopped, &mut altered)
                }
                _ => machine.step(visit.node, visit.length, &mut altered),
            };
            done.unwrap_or_else(|error| panic!("{error}"));
        }
        altered
    }

    /// Returns the value that represents an exception.
    fn as_thrown(&mut self) -> Value {
        if self.thrown_differs {
            self.arbitrary(0)
        } else {
            Value::Recorded
        }
    }

    /// Returns a value that differs from the recorded value, of the same width if that is small.
    fn arbitrary(&mut self, recorded: u128) -> Value {
        self.replaced += 1;
        let mut word = || u128::from(self.random.next());
        let bits = word() | word() << 64;
        Value::Bits(match recorded {
            0..=0xffff_ffff => bits & 0xffff_ffff,
            _ => bits,
        })
    }

    /// Returns the call, return or throw that ends the current node.
    fn end(&self, code: &NodeCode) -> Option<Operator> {
        let function = self.program.function(code.function).expect("a function");
        let ops = &function.cfg.blocks[self.last[self.node.index()]].ops;
        let last = ops.end.as_u32().checked_sub(1).map(OpId::from_u32)?;
        Some((code.function, last))
    }

    fn keeps(&self, code: &NodeCode, asked: SliceStart) -> bool {
        match (&self.kept, asked) {
            (Kept::Executions(naive, reached), _) => {
                let executed = &naive.executed[self.count - 1];
                let vertex = match asked {
                    SliceStart::Inst(inst) => Some(executed.insts[inst]),
                    SliceStart::End => executed.end,
                };
                vertex.is_some_and(|vertex| reached[vertex].is_some())
            }
            (Kept::Operators(operators), SliceStart::Inst(inst)) => {
                operators.contains_key(&(code.function, code.insts[inst].op))
            }
            (Kept::Operators(operators), SliceStart::End) => self
                .end(code)
                .is_some_and(|end| operators.contains_key(&end)),
        }
    }

    fn byte(&self, memory: u32, address: u64) -> Option<Byte> {
        self.memory.get(&(memory, address)).copied()
    }

    /// Writes recomputed and recorded bytes, or arbitrary bytes if `bytes` is `None`.
    fn write_bytes(&mut self, range: Range, bytes: Option<(u128, u128)>) {
        for i in 0..range.length {
            let byte = match bytes {
                Some((again, recorded)) => {
                    let (again, recorded) = ((again >> (8 * i)) as u8, (recorded >> (8 * i)) as u8);
                    let differs = again != recorded;
                    Byte { again, differs }
                }
                None => {
                    self.replaced += 1;
                    let again = self.random.next() as u8;
                    let differs = true;
                    Byte { again, differs }
                }
            };
            let at = (range.memory, range.address + i);
            self.memory.insert(at, byte);
        }
    }
}

/// The registers of a node's execution, recorded and recomputed.
struct Registers<'r> {
    code: &'r NodeCode,
    low: &'r [u64],
    high: &'r [u64],
    again: Vec<u128>,
}

impl Registers<'_> {
    fn recorded(&self, register: Register) -> u128 {
        let at = register as usize;
        let high = self.high.get(at).copied().unwrap_or(0);
        u128::from(self.low[at]) | u128::from(high) << 64
    }

    fn again(&self, register: Register) -> u128 {
        self.again[register as usize]
    }

    /// Whether the lower halves agree. Scalars have no other bits.
    fn same(&self, register: Register) -> bool {
        self.again(register) as u64 == self.recorded(register) as u64
    }

    fn same_vector(&self, register: Register) -> bool {
        self.again(register) == self.recorded(register)
    }
}

fn low(value: u128) -> u64 {
    value as u64
}

impl Altered<'_> {
    /// Handles the first `count` instructions of a node.
    fn instructions(
        &mut self,
        code: &NodeCode,
        count: usize,
        lows: &[u64],
        highs: &[u64],
    ) -> Vec<u128> {
        let mut registers = Registers {
            code,
            low: lows,
            high: highs,
            again: Vec::with_capacity(lows.len()),
        };
        let frame = &self.frames.last().expect("an activation").variables;
        for register in 0..code.first_result() {
            let recorded = registers.recorded(register);
            let value = match code.source(register) {
                Operand::Variable(variable) => frame.get(variable as usize).copied(),
                _ => None,
            };
            registers.again.push(match value {
                Some(Value::Bits(bits)) => bits,
                _ => recorded,
            });
        }
        for (i, inst) in code.insts[..count].iter().enumerate() {
            let recorded = registers.recorded(code.first_result() + i as u32);
            let value = if self.keeps(code, SliceStart::Inst(i)) {
                self.kept(&registers, i, inst, recorded)
            } else {
                self.replaced(i, inst);
                self.arbitrary(recorded)
            };
            registers.again.push(match value {
                Value::Bits(bits) => bits,
                Value::Recorded => recorded,
            });
            let is_asked = matches!(self.asked, (at, SliceStart::Inst(inst)) if (at, inst) == (self.count - 1, i));
            // The executions that the criterion depends on must also be unchanged.
            let is_needed =
                matches!(self.kept, Kept::Executions(..)) && self.keeps(code, SliceStart::Inst(i));
            if is_asked || is_needed {
                let same = self.came_out(&registers, i, inst);
                if is_asked || !same {
                    self.same.get_or_insert(same);
                }
            }
        }
        registers.again
    }

    /// Whether an instruction's result, write or decision equals the recorded one.
    fn came_out(&self, registers: &Registers<'_>, i: usize, inst: &Inst) -> bool {
        let result = registers.code.first_result() + i as u32;
        match inst.code {
            Code::Vector(vector) => match vector.signature().1 {
                Kind::Vector => registers.same_vector(result),
                Kind::Scalar => registers.same(result),
            },
            Code::LoadVector(_) | Code::SelectVector => registers.same_vector(result),
            Code::StoreVector(store) => {
                let lane = inst.c as u8;
                let value = |vector| store.value(vector, lane);
                registers.same(inst.a)
                    && value(registers.again(inst.b)) == value(registers.recorded(inst.b))
            }
            code if code.gives() => registers.same(result),
            Code::Store(bytes) => {
                let unused = 64 - 8 * u32::from(bytes);
                let written = |value: u128| low(value) << unused;
                registers.same(inst.a)
                    && written(registers.again(inst.b)) == written(registers.recorded(inst.b))
            }
            code => {
                let operands = [inst.a, inst.b, inst.c];
                operands[..code.operands()]
                    .iter()
                    .all(|&it| registers.same(it))
            }
        }
    }

    /// Replaces the effect of an instruction outside the slice by an arbitrary effect.
    fn replaced(&mut self, i: usize, inst: &Inst) {
        let number = inst.immediate as u32;
        self.reads.remove(&i);
        if let Some(range) = self.writes.remove(&i) {
            self.write_bytes(range, None);
        }
        if let Some((_, to)) = self.copies.remove(&i) {
            self.write_bytes(to, None);
        }
        match inst.code {
            Code::GlobalSet => {
                let value = self.arbitrary(u128::MAX);
                self.globals.insert(number, value);
            }
            Code::MemoryGrow => drop(self.sizes.insert(u32::from(inst.memory))),
            Code::TableSet
            | Code::TableFill
            | Code::TableCopy
            | Code::TableInit
            | Code::TableGrow => drop(self.tables.insert(number)),
            _ => {}
        }
    }

    /// Executes an instruction of the slice on recomputed operands.
    fn kept(&mut self, registers: &Registers<'_>, i: usize, inst: &Inst, recorded: u128) -> Value {
        let code = registers.code;
        let again = |register| registers.again(register);
        let number = inst.immediate as u32;
        let memory = u32::from(inst.memory);
        let operands = [inst.a, inst.b, inst.c];
        let is_same = |count: usize| operands[..count].iter().all(|&it| registers.same(it));
        match inst.code {
            Code::Scalar(scalar) => match scalar.eval(
                low(again(inst.a)),
                match scalar.arity() {
                    2 => low(again(inst.b)),
                    _ => 0,
                },
            ) {
                Ok(value) => Value::Bits(value.into()),
                Err(_) => self.arbitrary(recorded),
            },
            Code::Vector(vector) => {
                let extra = code.vector(i).expect("a vector instruction");
                let mut taken = [0; 3];
                let from = [inst.a, inst.b, extra.c];
                let kinds = vector.signature().0.iter().zip(from);
                for (operand, (kind, register)) in taken.iter_mut().zip(kinds) {
                    *operand = match kind {
                        Kind::Scalar => u128::from(low(again(register))),
                        Kind::Vector => again(register),
                    };
                }
                Value::Bits(vector.eval(extra.immediate, taken))
            }
            Code::Select | Code::SelectVector => Value::Bits(match low(again(inst.c)) as u32 {
                0 => again(inst.b),
                _ => again(inst.a),
            }),
            Code::RefIsNull => Value::Bits(u128::from(low(again(inst.a)) == 0)),
            Code::Load(load) => {
                let range = self.reads.remove(&i).expect("a read");
                if !registers.same(inst.a) {
                    return self.arbitrary(recorded);
                }
                let bytes = self.loaded(range, recorded);
                Value::Bits(load.extend(low(bytes)).into())
            }
            Code::LoadVector(load) => {
                let range = self.reads.remove(&i).expect("a read");
                if !registers.same(inst.a) {
                    return self.arbitrary(recorded);
                }
                let cells = (0..range.length).map(|at| self.byte(range.memory, range.address + at));
                let cells = Vec::from_iter(cells);
                // The result does not always determine the bytes that are as recorded.
                if range.length < 16 && cells.iter().any(Option::is_none) {
                    let differs = cells.iter().flatten().any(|byte| byte.differs);
                    let into = load.keeps() && !registers.same_vector(inst.b);
                    return if differs || into {
                        self.arbitrary(recorded)
                    } else {
                        Value::Recorded
                    };
                }
                let bytes = self.loaded(range, recorded);
                let into = if load.keeps() { again(inst.b) } else { 0 };
                Value::Bits(load.make(bytes, into, inst.c as u8))
            }
            Code::Store(bytes) => {
                let range = self.writes.remove(&i).expect("a write");
                assert_eq!(range.length, u64::from(bytes));
                let values = (again(inst.b), registers.recorded(inst.b));
                self.write_bytes(range, is_same(1).then_some(values));
                Value::Recorded
            }
            Code::StoreVector(store) => {
                let range = self.writes.remove(&i).expect("a write");
                let written = |vector| store.value(vector, inst.c as u8);
                let values = (written(again(inst.b)), written(registers.recorded(inst.b)));
                self.write_bytes(range, is_same(1).then_some(values));
                Value::Recorded
            }
            Code::GlobalGet => self
                .globals
                .get(&number)
                .copied()
                .unwrap_or(Value::Recorded),
            Code::GlobalSet => {
                self.globals.insert(number, Value::Bits(again(inst.a)));
                Value::Recorded
            }
            Code::MemorySize if !self.sizes.contains(&memory) => Value::Recorded,
            Code::MemorySize => self.arbitrary(recorded),
            Code::MemoryGrow => {
                if !is_same(1) {
                    self.sizes.insert(memory);
                }
                if self.sizes.contains(&memory) {
                    self.arbitrary(recorded)
                } else {
                    Value::Recorded
                }
            }
            Code::MemoryFill => {
                let range = self.writes.remove(&i).expect("a write");
                let right = registers.same(inst.a) && registers.same(inst.c);
                let values = (again(inst.b), registers.recorded(inst.b));
                for address in range.address..range.address + range.length {
                    let length = 1;
                    let byte = Range {
                        address,
                        length,
                        ..range
                    };
                    self.write_bytes(byte, right.then_some(values));
                }
                Value::Recorded
            }
            Code::MemoryInit => {
                let range = self.writes.remove(&i).expect("a write");
                if is_same(3) {
                    self.as_recorded(range)
                } else {
                    self.write_bytes(range, None)
                }
                Value::Recorded
            }
            Code::MemoryCopy => {
                let (from, to) = self.copies.remove(&i).expect("a copy");
                if !is_same(3) {
                    self.write_bytes(to, None);
                    return Value::Recorded;
                }
                let bytes = (0..from.length).map(|at| self.byte(from.memory, from.address + at));
                let bytes = Vec::from_iter(bytes);
                self.as_recorded(to);
                for (address, byte) in (to.address..).zip(bytes) {
                    if let Some(byte) = byte {
                        self.memory.insert((to.memory, address), byte);
                    }
                }
                Value::Recorded
            }
            Code::TableGet | Code::TableSize => {
                if is_same(inst.code.operands()) && !self.tables.contains(&number) {
                    Value::Recorded
                } else {
                    self.arbitrary(recorded)
                }
            }
            Code::TableSet
            | Code::TableFill
            | Code::TableCopy
            | Code::TableInit
            | Code::TableGrow => {
                let from = (inst.immediate >> 32) as u32;
                let copied = inst.code == Code::TableCopy && self.tables.contains(&from);
                if copied || !is_same(inst.code.operands()) {
                    self.tables.insert(number);
                }
                if self.tables.contains(&number) {
                    self.arbitrary(recorded)
                } else {
                    Value::Recorded
                }
            }
            Code::DataDrop
            | Code::ElementDrop
            | Code::Branch(_)
            | Code::Aligned(_)
            | Code::Wait(_)
            | Code::Notify => Value::Recorded,
        }
    }

    /// Marks bytes as written with their recorded values.
    fn as_recorded(&mut self, range: Range) {
        for address in range.address..range.address + range.length {
            self.memory.remove(&(range.memory, address));
        }
    }

    /// Returns the bytes that a load reads. For bytes that are as recorded, the load's result
    /// determines them.
    fn loaded(&mut self, range: Range, recorded: u128) -> u128 {
        let mut bytes = 0;
        for at in 0..range.length {
            let recorded = (recorded >> (8 * at)) as u8;
            let byte = self.byte(range.memory, range.address + at);
            let byte = byte.map_or(recorded, |byte| byte.again);
            bytes |= u128::from(byte) << (8 * at);
        }
        bytes
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("an activation")
    }

    fn set(&mut self, first: u32, values: &[Value]) {
        let variables = &mut self.frame().variables;
        for (at, &value) in (first as usize..).zip(values) {
            if variables.len() <= at {
                variables.resize(at + 1, Value::Recorded);
            }
            variables[at] = value;
        }
    }

    /// Handles the result of a call, which may be returned at once.
    fn arrive(&mut self, first: u32, given: &[Value]) {
        self.set(first, given);
        let top = first as usize + given.len();
        let frame = self.frame();
        if frame.returns {
            // Variables that were never set are unchanged.
            let variables = &frame.variables;
            let returned = (top - frame.results..top).map(|at| variables.get(at).copied());
            let returned = returned.map(|value| value.unwrap_or(Value::Recorded));
            self.given = Vec::from_iter(returned);
        }
    }
}

impl Observer for Altered<'_> {
    fn node(&mut self, node: NodeId, _: &NodeCode) {
        self.count += 1;
        self.node = node;
    }

    fn read(&mut self, inst: usize, range: Range) {
        self.reads.insert(inst, range);
    }

    fn write(&mut self, inst: usize, range: Range) {
        self.writes.insert(inst, range);
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        self.copies.insert(inst, (from, to));
    }

    fn done(&mut self, code: &NodeCode, lows: &[u64], highs: &[u64]) {
        let again = self.instructions(code, code.insts.len(), lows, highs);
        let registers = Registers {
            code,
            low: lows,
            high: highs,
            again,
        };
        let (taken, index): (&[Register], _) = match &code.end {
            NodeEnd::Call {
                arguments, index, ..
            }
            | NodeEnd::TailCall {
                arguments, index, ..
            } => (arguments, *index),
            NodeEnd::Return(results) => (results, None),
            NodeEnd::Throw { values, .. } => (values, None),
            NodeEnd::Rethrow { exception, .. } => (std::slice::from_ref(exception), None),
            NodeEnd::Next | NodeEnd::Trap => (&[], None),
        };
        let same = taken.iter().chain(&index).all(|&it| registers.same(it));
        if let (at, SliceStart::End) = self.asked
            && at == self.count - 1
        {
            self.same.get_or_insert(same);
        }
        self.host_differs = !same || !self.keeps(code, SliceStart::End);
        self.thrown_differs = !same;
        match code.end {
            // The reference represents all values of the exception.
            NodeEnd::Rethrow { .. } => self.given = vec![self.as_thrown(); 64],
            NodeEnd::Next | NodeEnd::Trap => {}
            _ => {
                let taken = taken.iter().map(|&it| Value::Bits(registers.again(it)));
                self.given = taken.collect();
            }
        }
        let outputs = code.outputs.iter();
        let outputs = outputs.map(|&(to, from)| (to, Value::Bits(registers.again(from))));
        for (to, value) in Vec::from_iter(outputs) {
            self.set(to, &[value]);
        }
        let function = self.program.function(code.function).expect("a function");
        let results = self.program.types[function.ty].results.len();
        let frame = self.frame();
        frame.returns = code.next.is_none();
        frame.results = results;
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, lows: &[u64], highs: &[u64]) {
        self.instructions(code, executed, lows, highs);
    }

    fn enter(&mut self, _: FuncId, by: Caller) {
        let variables = match by {
            Caller::Host => Vec::new(),
            _ => std::mem::take(&mut self.given),
        };
        self.frames.push(Frame {
            variables,
            returns: false,
            results: 0,
        });
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.frames.pop().expect("an activation");
        if let Some((first, count)) = results {
            let given = std::mem::take(&mut self.given);
            assert_eq!(given.len(), count as usize);
            self.arrive(first, &given);
        }
    }

    fn host_read(&mut self, range: Range) {
        for address in range.address..range.address + range.length {
            let byte = self.byte(range.memory, address);
            self.host_differs |= byte.is_some_and(|byte| byte.differs);
        }
    }

    fn host_write(&mut self, range: Range) {
        if self.host_differs {
            self.write_bytes(range, None)
        } else {
            self.as_recorded(range)
        }
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        let results = (0..count).map(|_| {
            if self.host_differs {
                self.arbitrary(0)
            } else {
                Value::Recorded
            }
        });
        let results = Vec::from_iter(results);
        if !self.frames.is_empty() {
            self.arrive(first, &results);
        }
    }

    fn caught(&mut self, first: u32, count: u32) {
        let mut given = std::mem::take(&mut self.given);
        given.truncate(count as usize);
        given.push(self.as_thrown());
        self.set(first, &given);
        let results = self.frame().results;
        self.given = given[..results.min(given.len())].to_vec();
    }
}
