//! Records everything: all registers of all executions, and the last writer of each byte, global
//! and variable.

use std::collections::HashMap;

use afterimage_ids::{EntityRef, FuncId, NodeId};
use afterimage_machine::{
    Caller, Code, GlobalBits, NodeCode, NodeEnd, Observer, Operand, Range, Register, State,
    stopped_before,
};
use afterimage_program::{Callee, Program};
use afterimage_wet::Instance;

use crate::harness::Recording;
use crate::stored::Stored;

/// The origin of a variable's value. Executions are identified by their position in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    Constant(u64),
    Result {
        by: usize,
        inst: usize,
    },
    Zero,
    Argument {
        first: usize,
        index: u32,
    },
    Returned {
        call: usize,
        index: u32,
    },
    /// A reference to the exception that the execution threw, or a rethrown value.
    Thrown {
        by: usize,
    },
}

/// The writer of a byte or global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrote {
    Initial,
    Host { call: u64 },
    Guest { by: usize, inst: usize, offset: u8 },
}

/// An execution of a node.
pub struct Executed {
    pub instance: Instance,
    /// The last of its blocks.
    pub last: u64,
    /// The host call with which the execution ends.
    pub host_call: Option<u64>,
    /// The results of the call with which the execution ends.
    pub results: Option<Vec<GlobalBits>>,
    /// The details, which long runs keep only for some executions.
    pub details: Option<Details>,
}

/// The part that is recorded only for some executions.
#[derive(Default)]
pub struct Details {
    /// The variables when the execution began.
    pub variables: Vec<Made>,
    /// For each read of memory or a global, the writer of each byte or of the global.
    pub reads: Vec<(usize, Vec<Wrote>)>,
    /// For each instruction that takes a table element or a size, the writers of that element or
    /// size. An entry without an instruction is for the call at the end.
    pub taken: Vec<(Option<usize>, Vec<Wrote>)>,
    /// All registers of the machine, which has one register for equal constants.
    pub low: Vec<u64>,
    /// The first register that holds a result.
    pub first: usize,
    /// The upper halves of the registers, or nothing if there are none.
    pub high: Vec<u64>,
    /// The number of executed instructions, if the node was stopped.
    pub stopped: Option<usize>,
}

/// The size of a memory or table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Size {
    Table(u32),
    Memory(u32),
}

struct Frame {
    variables: Vec<Made>,
    /// The activation's last execution.
    last: usize,
    /// Whether the last execution ends with a call whose results are returned.
    returns: bool,
    /// The number of values that the activation returns.
    results: usize,
}

/// The recorder.
pub struct Naive<'a> {
    program: &'a Program,
    lengths: Vec<u64>,
    time: u64,
    counts: Vec<u64>,
    /// Selects the executions to keep in detail.
    keep: Box<dyn Fn(usize) -> bool>,
    pub executed: Vec<Executed>,
    frames: Vec<Frame>,
    /// Arguments or results in transit.
    given: Vec<Made>,
    returned: Vec<GlobalBits>,
    memory: HashMap<(u32, u64), Wrote>,
    globals: HashMap<u32, Wrote>,
    /// Table elements, and the sizes of tables and memories.
    elements: HashMap<(u32, u64), Wrote>,
    sizes: HashMap<Size, Wrote>,
    /// The initial lengths of tables.
    lengths_of_tables: Vec<u64>,
    /// For each instruction of the current node, whether it writes the bytes of a value.
    stores: Vec<bool>,
    /// Whether the current node ended with a call that has not begun.
    calls: bool,
    /// Whether the current node throws the exception of a reference.
    rethrows: bool,
    host_calls: u64,
}

impl<'a> Naive<'a> {
    /// Follows a recording.
    pub fn record(
        recording: &'a Recording,
        stored: &Stored,
        keep: impl Fn(usize) -> bool + 'static,
    ) -> Self {
        let mut machine = stored.machine(recording);
        let nodes = stored.path.nodes();
        let mut naive = Self {
            program: &recording.program,
            lengths: nodes.values().map(|node| node.length()).collect(),
            time: 0,
            counts: vec![0; nodes.len()],
            keep: Box::new(keep),
            executed: Vec::new(),
            frames: Vec::new(),
            given: Vec::new(),
            returned: Vec::new(),
            memory: HashMap::new(),
            globals: HashMap::new(),
            elements: HashMap::new(),
            sizes: HashMap::new(),
            lengths_of_tables: {
                let state = State::of_module(&recording.program, &recording.bytes);
                let (state, _) = state.expect("a module");
                let tables = state.tables.iter();
                tables.map(|table| table.elements.len() as u64).collect()
            },
            stores: Vec::new(),
            calls: false,
            rethrows: false,
            host_calls: 0,
        };
        let mut cursor = stored.path.cursor();
        let stopped = stopped_before(
            &recording.program,
            &recording.bytes,
            &recording.recorded.end,
        );
        while let Some(visit) = cursor.next().expect("a step") {
            let done = match stopped {
                Some(stopped) if visit.last() == stored.path.length() => {
                    machine.step_before(visit.node, visit.length, stopped, &mut naive)
                }
                _ => machine.step(visit.node, visit.length, &mut naive),
            };
            done.unwrap_or_else(|error| panic!("{error}"));
        }
        naive
    }

    /// Handles the effects of a node's first `count` instructions on tables and sizes, and, if
    /// `ends` is set, the effects of its end.
    fn elsewhere(&mut self, code: &NodeCode, count: usize, low: &[u64], ends: bool) {
        let of = |register: Register| low[register as usize];
        for (i, inst) in code.insts[..count].iter().enumerate() {
            let (table, other) = (inst.immediate as u32, (inst.immediate >> 32) as u32);
            let (a, b, c) = (inst.a, inst.b, inst.c);
            let result = code.first_result() + i as u32;
            let memory = Size::Memory(inst.memory.into());
            let taken = match inst.code {
                Code::TableGet => Some(self.elements_of(table, of(a), 1)),
                Code::TableCopy => Some(self.elements_of(other, of(b), of(c))),
                Code::TableSize | Code::TableGrow => Some(vec![self.size(Size::Table(table))]),
                Code::MemorySize | Code::MemoryGrow => Some(vec![self.size(memory)]),
                _ => None,
            };
            if let Some(taken) = taken
                && let Some(details) = self.details()
            {
                details.taken.push((Some(i), taken));
            }
            let (by, offset) = (self.at(), 0);
            let wrote = Wrote::Guest {
                by,
                inst: i,
                offset,
            };
            let set = match inst.code {
                Code::TableSet => of(a)..of(a) + 1,
                Code::TableCopy | Code::TableInit | Code::TableFill => of(a)..of(a) + of(c),
                Code::TableGrow => {
                    self.sizes.insert(Size::Table(table), wrote);
                    let refused = of(result) as u32 == u32::MAX;
                    of(result)..of(result) + if refused { 0 } else { of(b) }
                }
                Code::MemoryGrow => {
                    self.sizes.insert(memory, wrote);
                    0..0
                }
                _ => 0..0,
            };
            self.elements
                .extend(set.map(|element| ((table, element), wrote)));
        }
        if let NodeEnd::Call {
            callee,
            index: Some(index),
            ..
        }
        | NodeEnd::TailCall {
            callee,
            index: Some(index),
            ..
        } = &code.end
            && ends
            && let Callee::Indirect { table, .. } = *callee
        {
            let taken = self.elements_of(table, of(*index), 1);
            if let Some(details) = self.details() {
                details.taken.push((None, taken));
            }
        }
    }

    /// Returns the writers of these elements. Missing elements are omitted, because a call through
    /// them traps.
    fn elements_of(&self, table: u32, first: u64, count: u64) -> Vec<Wrote> {
        let wrote = |element| {
            let initial = element < self.lengths_of_tables[table as usize];
            let set = self.elements.get(&(table, element)).copied();
            set.or(initial.then_some(Wrote::Initial))
        };
        (first..first + count).filter_map(wrote).collect()
    }

    fn size(&self, of: Size) -> Wrote {
        self.sizes.get(&of).copied().unwrap_or(Wrote::Initial)
    }

    fn details(&mut self) -> Option<&mut Details> {
        self.executed.last_mut()?.details.as_mut()
    }

    fn at(&self) -> usize {
        self.executed.len() - 1
    }

    fn made(&self, code: &NodeCode, register: Register) -> Made {
        match code.source(register) {
            Operand::Constant(bits) => Made::Constant(bits),
            Operand::Result(inst) => Made::Result {
                by: self.at(),
                inst,
            },
            Operand::Variable(variable) => {
                self.frames.last().expect("an activation").variables[variable as usize]
            }
        }
    }

    /// Changes variables of the innermost activation.
    fn set(&mut self, first: u32, made: impl Iterator<Item = Made>) {
        let variables = &mut self.frames.last_mut().expect("an activation").variables;
        for (i, made) in (first as usize..).zip(made) {
            if variables.len() <= i {
                variables.resize(i + 1, Made::Zero);
            }
            variables[i] = made;
        }
    }

    /// Handles the return of a call made by the innermost activation.
    fn arrive(&mut self, first: u32, count: u32, given: Vec<Made>) {
        assert_eq!(given.len(), count as usize);
        self.set(first, given.into_iter());
        let frame = self.frames.last().expect("an activation");
        self.executed[frame.last].results = Some(self.returned.clone());
        if frame.returns {
            let top = (first + count) as usize;
            self.given = frame.variables[top - frame.results..top].to_vec();
        }
    }
}

impl Observer for Naive<'_> {
    fn node(&mut self, node: NodeId, code: &NodeCode) {
        self.counts[node.index()] += 1;
        let instance = Instance {
            time: self.time + 1,
            node,
            number: self.counts[node.index()],
        };
        self.time += self.lengths[node.index()];
        let frame = self.frames.last_mut().expect("an activation");
        frame.last = self.executed.len();
        if frame.variables.len() < code.variables as usize {
            frame.variables.resize(code.variables as usize, Made::Zero);
        }
        let details = (self.keep)(self.executed.len()).then(|| Details {
            variables: frame.variables.clone(),
            ..Details::default()
        });
        self.executed.push(Executed {
            instance,
            last: self.time,
            host_call: None,
            results: None,
            details,
        });
        let insts = code.insts.iter();
        let stores = insts.map(|inst| matches!(inst.code, Code::Store(_) | Code::StoreVector(_)));
        self.stores.clear();
        self.stores.extend(stores);
        self.calls = false;
    }

    fn read(&mut self, inst: usize, range: Range) {
        let bytes = range.address..range.address + range.length;
        let wrote = bytes.map(|address| {
            let found = self.memory.get(&(range.memory, address));
            found.copied().unwrap_or(Wrote::Initial)
        });
        let wrote = wrote.collect();
        if let Some(details) = self.details() {
            details.reads.push((inst, wrote));
        }
    }

    fn write(&mut self, inst: usize, range: Range) {
        let by = self.at();
        for i in 0..range.length {
            let offset = if self.stores[inst] { i as u8 } else { 0 };
            let wrote = Wrote::Guest { by, inst, offset };
            self.memory.insert((range.memory, range.address + i), wrote);
        }
    }

    fn copy(&mut self, inst: usize, _: Range, to: Range) {
        self.write(inst, to);
    }

    fn read_global(&mut self, inst: usize, global: u32) {
        let wrote = self.globals.get(&global).copied();
        if let Some(details) = self.details() {
            let wrote = vec![wrote.unwrap_or(Wrote::Initial)];
            details.reads.push((inst, wrote));
        }
    }

    fn write_global(&mut self, inst: usize, global: u32) {
        let by = self.at();
        let offset = 0;
        self.globals
            .insert(global, Wrote::Guest { by, inst, offset });
    }

    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.elsewhere(code, code.insts.len(), low, true);
        if let Some(details) = self.details() {
            details.low = low.to_vec();
            details.first = code.first_result() as usize;
            details.high = high.to_vec();
        }
        let end: &[Register] = match &code.end {
            NodeEnd::Call { arguments, .. } | NodeEnd::TailCall { arguments, .. } => arguments,
            NodeEnd::Return(values) | NodeEnd::Throw { values, .. } => values,
            _ => &[],
        };
        self.given = end.iter().map(|&r| self.made(code, r)).collect();
        self.rethrows = matches!(code.end, NodeEnd::Rethrow { .. });
        self.calls = matches!(code.end, NodeEnd::Call { .. } | NodeEnd::TailCall { .. });
        let outputs = code.outputs.iter();
        let outputs = Vec::from_iter(outputs.map(|&(to, from)| (to, self.made(code, from))));
        for (to, made) in outputs {
            self.set(to, std::iter::once(made));
        }
        let function = self.program.function(code.function).expect("a function");
        let results = self.program.types[function.ty].results.len();
        let frame = self.frames.last_mut().expect("an activation");
        frame.returns = code.next.is_none();
        frame.results = results;
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        self.elsewhere(code, executed, low, false);
        if let Some(details) = self.details() {
            details.low = low.to_vec();
            details.first = code.first_result() as usize;
            details.high = high.to_vec();
            details.stopped = Some(executed);
        }
    }

    fn enter(&mut self, function: FuncId, by: Caller) {
        self.calls = false;
        let first = self.executed.len();
        let variables = match by {
            Caller::Host => {
                let function = self.program.function(function).expect("a function");
                let count = self.program.types[function.ty].params.len() as u32;
                let arguments = (0..count).map(|index| Made::Argument { first, index });
                arguments.collect()
            }
            _ => std::mem::take(&mut self.given),
        };
        self.frames.push(Frame {
            variables,
            last: first,
            returns: false,
            results: 0,
        });
    }

    fn returned(&mut self, values: &[GlobalBits]) {
        self.returned = values.to_vec();
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.frames.pop().expect("an activation");
        if let Some((first, count)) = results {
            let given = std::mem::take(&mut self.given);
            self.arrive(first, count, given);
        }
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        let call = self.at();
        let given = (0..count).map(|index| Made::Returned { call, index });
        self.arrive(first, count, given.collect());
    }

    fn host_call(&mut self) {
        self.host_calls += 1;
        if self.calls {
            let call = Some(self.host_calls);
            self.executed.last_mut().expect("a node").host_call = call;
        }
        self.calls = false;
    }

    fn host_write(&mut self, range: Range) {
        let call = self.host_calls;
        for address in range.address..range.address + range.length {
            self.memory
                .insert((range.memory, address), Wrote::Host { call });
        }
    }

    fn caught(&mut self, first: u32, count: u32) {
        let by = self.at();
        let mut got = std::mem::take(&mut self.given);
        match self.rethrows {
            // A reference represents all values of the exception.
            true => got = vec![Made::Thrown { by }; count as usize + 1],
            false => {
                got.truncate(count as usize);
                got.push(Made::Thrown { by });
            }
        }
        self.set(first, got.iter().copied());
        // If the handler is the function's own label, the function returns what is caught.
        self.given = got;
        let results = self.frames.last().expect("an activation").results;
        self.given.truncate(results);
    }
}
