//! Machines that execute nodes in different forms, and must report the same.

use afterimage_ids::{FuncId, NodeId};
use afterimage_machine::{
    Caller, GlobalBits, Machine, MachineError, NodeCode, Observer, Range, StoppedBefore,
};

/// The events that an observer received, with or without the contents of registers.
#[derive(Debug, Default)]
struct Events<const REGISTERS: bool> {
    events: Vec<Event>,
    /// The registers after each execution.
    registers: Vec<u64>,
}

#[derive(Debug, PartialEq)]
enum Event {
    Node(NodeId),
    Read(usize, Range),
    Loaded(usize, GlobalBits),
    Write(usize, Range),
    Copy(usize, Range, Range),
    ReadGlobal(usize, u32),
    WriteGlobal(usize, u32),
    Done,
    Stopped(usize),
    Called(FuncId, Vec<GlobalBits>),
    Returned(Vec<GlobalBits>),
    Enter(FuncId, Caller),
    Leave(Option<(u32, u32)>),
    HostReturned(u32, u32),
    HostCall,
    HostRead(Range),
    HostWrite(Range),
    Caught(u32, u32),
}

impl<const REGISTERS: bool> Observer for Events<REGISTERS> {
    const REGISTERS: bool = REGISTERS;

    fn node(&mut self, node: NodeId, _: &NodeCode) {
        self.events.push(Event::Node(node));
    }

    fn read(&mut self, inst: usize, range: Range) {
        self.events.push(Event::Read(inst, range));
    }

    fn loaded(&mut self, inst: usize, value: GlobalBits) {
        self.events.push(Event::Loaded(inst, value));
    }

    fn write(&mut self, inst: usize, range: Range) {
        self.events.push(Event::Write(inst, range));
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        self.events.push(Event::Copy(inst, from, to));
    }

    fn read_global(&mut self, inst: usize, global: u32) {
        self.events.push(Event::ReadGlobal(inst, global));
    }

    fn write_global(&mut self, inst: usize, global: u32) {
        self.events.push(Event::WriteGlobal(inst, global));
    }

    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        if REGISTERS {
            self.registers = [low, high].concat();
            assert_eq!(low.len(), code.registers());
        }
        self.events.push(Event::Done);
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], _: &[u64]) {
        if REGISTERS {
            self.registers = low[..code.first_result() as usize + executed].to_vec();
        }
        self.events.push(Event::Stopped(executed));
    }

    fn called(&mut self, function: FuncId, arguments: &[GlobalBits]) {
        self.events
            .push(Event::Called(function, arguments.to_vec()));
    }

    fn returned(&mut self, values: &[GlobalBits]) {
        self.events.push(Event::Returned(values.to_vec()));
    }

    fn enter(&mut self, function: FuncId, by: Caller) {
        self.events.push(Event::Enter(function, by));
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.events.push(Event::Leave(results));
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        self.events.push(Event::HostReturned(first, count));
    }

    fn host_call(&mut self) {
        self.events.push(Event::HostCall);
    }

    fn host_read(&mut self, range: Range) {
        self.events.push(Event::HostRead(range));
    }

    fn host_write(&mut self, range: Range) {
        self.events.push(Event::HostWrite(range));
    }

    fn caught(&mut self, first: u32, count: u32) {
        self.events.push(Event::Caught(first, count));
    }
}

/// Three machines: one executes nodes instruction by instruction, one operation by operation, and
/// one several nodes at once.
pub struct Forms<'a> {
    slow: Machine<'a>,
    full: Machine<'a>,
    /// The last machine, with which the others are compared.
    pub lean: Machine<'a>,
}

impl<'a> Forms<'a> {
    /// Three equal machines; `None` if they cannot be made.
    pub fn new(mut machine: impl FnMut() -> Option<Machine<'a>>) -> Option<Self> {
        Some(Self {
            slow: machine()?,
            full: machine()?,
            lean: machine()?,
        })
    }

    /// Applies an action to all three machines.
    pub fn all<T>(&mut self, mut action: impl FnMut(&mut Machine<'a>) -> T) -> T {
        action(&mut self.slow);
        action(&mut self.full);
        action(&mut self.lean)
    }

    /// Executes a node, and checks that the machines agree on the events, on their states
    /// afterwards, and on the error, if any.
    pub fn step(
        &mut self,
        node: NodeId,
        stopped: Option<StoppedBefore>,
    ) -> Result<(), MachineError> {
        let (mut slow, mut full) = (Events::<true>::default(), Events::<true>::default());
        let mut lean = Events::<false>::default();
        let expected = self
            .slow
            .step_pausing(node, 1, stopped, &mut slow, (&[], |_, _| ()));
        let (one, other) = match stopped {
            None => (
                self.full.step(node, 1, &mut full),
                self.lean.step(node, 1, &mut lean),
            ),
            Some(stopped) => (
                self.full.step_before(node, 1, stopped, &mut full),
                self.lean.step_before(node, 1, stopped, &mut lean),
            ),
        };
        let shown =
            |result: &Result<(), MachineError>| result.as_ref().err().map(|e| e.to_string());
        assert_eq!(shown(&one), shown(&expected));
        assert_eq!(shown(&other), shown(&expected));
        assert_eq!(full.events, slow.events);
        assert_eq!(full.registers, slow.registers);
        assert_eq!(lean.events, slow.events);
        for machine in [&self.full, &self.lean] {
            assert_eq!(machine.trap(), self.slow.trap());
            assert_eq!(machine.time(), self.slow.time());
            assert_eq!(machine.checkpoint(), self.slow.checkpoint());
            let memories = machine.state.memories.iter().zip(&self.slow.state.memories);
            for (memory, expected) in memories {
                assert!(memory.bytes == expected.bytes, "memories differ");
            }
            assert_eq!(machine.state.globals, self.slow.state.globals);
        }
        expected
    }
}
