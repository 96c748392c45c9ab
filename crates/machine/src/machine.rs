//! The guest, run again along its path.

use afterimage_ids::{BlockId, EntityRef, FuncId, ImportId, NodeId, PrimaryMap};
use afterimage_program::{BlockKind, Callee, EdgeKind, Program};
use afterimage_trace::{Event, LogReader, RawValue, TraceError};
use wasmparser::{Catch, Operator};

use crate::code::{NodeCode, NodeEnd};
use crate::compile::{Body, compile, type_of};
use crate::execute::{Registers, Stop, execute};
use crate::image::{Initial, State};
use crate::observe::{Caller, Observer, Range};
use crate::{MachineError, Trap};

/// A value: its bits, and the upper half of a vector's.
type Bits = (u64, u64);

/// Where what the host did comes from.
pub(crate) struct Source {
    log: LogReader,
}

impl Source {
    pub(crate) fn next(&mut self) -> Result<Option<Event>, TraceError> {
        self.log.next().transpose()
    }
}

/// An activation.
#[derive(Clone, Copy, Debug)]
struct Frame {
    function: FuncId,
    /// The register of its first variable.
    base: usize,
    /// The node with the call that it waits for.
    call: NodeId,
}

/// What the next node must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// The first of a call by the host.
    Host,
    /// The first of a call of this function.
    Enter {
        function: FuncId,
        /// By a tail call.
        tail: bool,
    },
    /// One that begins with this block of the innermost activation, or behind it if it is a dispatch vertex.
    Block(BlockId),
    /// None: the run ended.
    Nothing,
}

/// An exception.
#[derive(Clone, Debug)]
struct Exception {
    tag: u32,
    values: Vec<Bits>,
}

/// Runs a guest again, node by node, as its path says, with what the log says of the host. Every branch must go where the
/// path goes and every call to the host must be the one in the log, with the same arguments and, where the host read memory, the same
/// bytes: otherwise the path, the log or this machine is wrong, and it says so.
pub struct Machine<'a> {
    program: &'a Program,
    bytes: &'a [u8],
    bodies: Vec<Option<Box<Body<'a>>>>,
    codes: PrimaryMap<NodeId, NodeCode>,
    /// Memories, tables, globals.
    pub state: State,
    initial: Vec<Initial>,
    source: Source,
    registers: Vec<u64>,
    /// Upper halves of the registers.
    high: Vec<u64>,
    frames: Vec<Frame>,
    waiting: Waiting,
    /// Blocks executed before the next node.
    time: u64,
    /// The arguments of the call that is about to begin, or the results of the one that has ended.
    values: Vec<Bits>,
    exceptions: Vec<Exception>,
    /// What variables become, while they are moved.
    moved: Vec<u64>,
    /// Why the last node stopped.
    trap: Option<Trap>,
}

impl<'a> Machine<'a> {
    /// A machine before the run. `bytes` is the module that the program was parsed from.
    ///
    /// # Errors
    /// If the module has what cannot be followed.
    pub fn new(
        program: &'a Program,
        bytes: &'a [u8],
        log: LogReader,
    ) -> Result<Self, MachineError> {
        let (state, initial) = State::of_module(program, bytes)?;
        Ok(Self {
            program,
            bytes,
            bodies: program.functions.iter().map(|_| None).collect(),
            codes: PrimaryMap::new(),
            state,
            initial,
            source: Source { log },
            registers: Vec::new(),
            high: Vec::new(),
            frames: Vec::new(),
            waiting: Waiting::Host,
            time: 0,
            values: Vec::new(),
            exceptions: Vec::new(),
            moved: Vec::new(),
            trap: None,
        })
    }

    /// Where the memories' bytes come from at first.
    pub fn initial(&self) -> &[Initial] {
        &self.initial
    }

    /// How many blocks were executed.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// The nodes' code.
    pub fn codes(&self) -> &PrimaryMap<NodeId, NodeCode> {
        &self.codes
    }

    /// Why the last node did not come to its end, if it trapped.
    pub fn trap(&self) -> Option<Trap> {
        self.trap
    }

    /// Compiles the next node. O(operators on its path), and for a function's first one its operators.
    ///
    /// # Errors
    /// If it is no path of the program.
    pub fn define(
        &mut self,
        function: FuncId,
        blocks: &[BlockId],
        next: Option<BlockId>,
    ) -> Result<NodeId, MachineError> {
        let program = self.program;
        let code = compile(program, self.body(function)?, blocks, next)?;
        Ok(self.codes.push(code))
    }

    fn body(&mut self, function: FuncId) -> Result<&Body<'a>, MachineError> {
        let (program, bytes) = (self.program, self.bytes);
        let missing = MachineError::Unsupported("a function that the program does not have");
        let position = function.index().wrapping_sub(program.imports.len());
        let (Some(known), Some(function)) =
            (self.bodies.get_mut(position), program.function(function))
        else {
            return Err(missing);
        };
        if known.is_none() {
            *known = Some(Box::new(Body::read(program, bytes, function)?));
        }
        known.as_deref().ok_or(missing)
    }

    /// Executes a node, which takes so many blocks.
    ///
    /// # Errors
    /// If it is not what comes next, or not what the program does.
    pub fn step<O: Observer>(
        &mut self,
        node: NodeId,
        length: u64,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        self.arrive(node, observer)?;
        let code = &self.codes[node];
        let base = self.frames.last().map_or(0, |frame| frame.base);
        let count = code.registers();
        if self.registers.len() < base + count {
            self.registers.resize(base + 2 * count, 0);
        }
        if code.wide && self.high.len() < base + count {
            self.high.resize(base + 2 * count, 0);
        }
        observer.node(node, code);
        let registers = Registers {
            low: &mut self.registers[base..base + count],
            high: if code.wide {
                &mut self.high[base..base + count]
            } else {
                &mut []
            },
        };
        match execute(
            code,
            registers,
            &mut self.state,
            &mut self.source,
            observer,
        ) {
            Ok(()) => {}
            Err(Stop::Trap(trap)) => {
                self.trap = Some(trap);
                self.waiting = Waiting::Nothing;
                self.time += length;
                return Ok(());
            }
            Err(Stop::End) => {
                self.waiting = Waiting::Nothing;
                self.time += length;
                return Ok(());
            }
            Err(Stop::Diverged(what)) => return Err(self.diverged(what)),
            Err(Stop::Error(error)) => return Err(error),
        }
        let high = match code.wide {
            true => &self.high[base..base + count],
            false => &[],
        };
        observer.done(code, &self.registers[base..base + count], high);
        self.leave_node(node, base, observer)?;
        self.time += length;
        Ok(())
    }

    fn diverged(&self, what: &'static str) -> MachineError {
        let time = self.time + 1;
        MachineError::Diverged { time, what }
    }

    fn boundary(&self, what: &'static str) -> MachineError {
        let time = self.time + 1;
        MachineError::Boundary { time, what }
    }

    /// The node is the one that is to come.
    fn arrive<O: Observer>(
        &mut self,
        node: NodeId,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let Some(code) = self.codes.get(node) else {
            return Err(MachineError::Unsupported("a node that was not defined"));
        };
        let (function, first) = (code.function, code.first);
        match self.waiting {
            Waiting::Block(block) => {
                let fits = self.frames.last().map(|frame| frame.function) == Some(function)
                    && block == first;
                if !fits {
                    return Err(self.diverged("another block follows"));
                }
            }
            Waiting::Enter {
                function: callee,
                tail,
            } => {
                if callee != function {
                    return Err(self.diverged("another function is called"));
                }
                let by = if tail { Caller::TailCall } else { Caller::Call };
                self.enter(function, first, by, observer)?;
            }
            Waiting::Host => {
                let (called, arguments) =
                    match self.source.next()? {
                        Some(Event::Enter { function, args }) => (function, args),
                        _ => return Err(self.boundary("the host calls nothing")),
                    };
                if called != function {
                    return Err(self.boundary("the host calls another function"));
                }
                self.values.clear();
                for value in arguments {
                    self.values.push(bits(value)?);
                }
                self.enter(function, first, Caller::Host, observer)?;
            }
            Waiting::Nothing => {
                return Err(match self.trap {
                    Some(trap) => {
                        let time = self.time;
                        MachineError::Trapped { time, trap }
                    }
                    None => self.diverged("the run has ended"),
                });
            }
        }
        Ok(())
    }

    /// Begins an activation, with the arguments in `values`.
    fn enter<O: Observer>(
        &mut self,
        function: FuncId,
        first: BlockId,
        by: Caller,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let base = match self.frames.last() {
            Some(frame) => frame.base + self.variables(frame.function),
            None => 0,
        };
        let body = self.body(function)?;
        let (locals, wide) = (body.slots.locals.len(), body.wide);
        if first != body.function.cfg.graph.root() {
            return Err(self.diverged("a call begins inside a function"));
        }
        if self.registers.len() < base + locals {
            self.registers.resize(base + 2 * locals, 0);
        }
        let given = self.values.len();
        if given > locals {
            return Err(self.diverged("a call has too many arguments"));
        }
        let registers = &mut self.registers[base..base + locals];
        registers[given..].fill(0);
        for (register, (low, _)) in registers.iter_mut().zip(&self.values) {
            *register = *low;
        }
        if wide {
            if self.high.len() < base + locals {
                self.high.resize(base + 2 * locals, 0);
            }
            let registers = &mut self.high[base..base + locals];
            registers[given..].fill(0);
            for (register, (_, high)) in registers.iter_mut().zip(&self.values) {
                *register = *high;
            }
        }
        self.frames.push(Frame {
            function,
            base,
            call: NodeId::new(0),
        });
        observer.enter(function, by);
        Ok(())
    }

    fn variables(&self, function: FuncId) -> usize {
        let position = function.index().wrapping_sub(self.program.imports.len());
        match self.bodies.get(position) {
            Some(Some(body)) => body.slots.count(),
            _ => 0,
        }
    }

    /// Writes the node's outputs and does what its end says.
    fn leave_node<O: Observer>(
        &mut self,
        node: NodeId,
        base: usize,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let code = &self.codes[node];
        let bank = Bank {
            low: &self.registers[base..],
            high: if code.wide { &self.high[base..] } else { &[] },
        };
        let values = &mut self.values;
        let then = match &code.end {
            NodeEnd::Next => match code.next {
                Some(next) => Then::Block(next),
                None => return Err(self.diverged("a path leads nowhere")),
            },
            NodeEnd::Trap => Then::Stop,
            NodeEnd::Call {
                callee,
                index,
                arguments,
                ..
            } => {
                bank.gather(arguments, values);
                Then::Call(*callee, index.map(|r| bank.low[r as usize]), false)
            }
            NodeEnd::TailCall {
                callee,
                index,
                arguments,
            } => {
                bank.gather(arguments, values);
                Then::Call(*callee, index.map(|r| bank.low[r as usize]), true)
            }
            NodeEnd::Return(results) => {
                bank.gather(results, values);
                Then::Return
            }
            NodeEnd::Throw {
                tag,
                values: carried,
                block,
            } => {
                bank.gather(carried, values);
                Then::Throw(*tag, *block)
            }
            NodeEnd::Rethrow { exception, block } => {
                let reference = bank.low[*exception as usize];
                let position = usize::try_from(reference).ok();
                let position = position.and_then(|n| n.checked_sub(1));
                match position.and_then(|n| self.exceptions.get(n)) {
                    Some(thrown) => {
                        values.clone_from(&thrown.values);
                        Then::Throw(thrown.tag, *block)
                    }
                    // Throwing null traps.
                    None => Then::Stop,
                }
            }
        };
        self.outputs(node, base);
        match then {
            Then::Block(next) => self.waiting = Waiting::Block(next),
            Then::Stop => self.waiting = Waiting::Nothing,
            Then::Call(callee, index, tail) => self.call(node, callee, index, tail, observer)?,
            Then::Return => {
                self.frames.pop();
                self.deliver(false, observer)?;
            }
            Then::Throw(tag, block) => self.unwind(tag, block, observer)?,
        }
        Ok(())
    }

    /// Begins a call, with the arguments in `values`.
    fn call<O: Observer>(
        &mut self,
        node: NodeId,
        callee: Callee,
        index: Option<u64>,
        tail: bool,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let Some(callee) = self.called(callee, index) else {
            self.trap = Some(Trap::Table);
            self.waiting = Waiting::Nothing;
            return Ok(());
        };
        if tail {
            self.frames.pop();
            observer.leave(None);
        } else if let Some(frame) = self.frames.last_mut() {
            frame.call = node;
        }
        if callee.index() < self.program.imports.len() {
            self.call_host(callee, observer)
        } else {
            self.waiting = Waiting::Enter {
                function: callee,
                tail,
            };
            Ok(())
        }
    }

    /// Writes the variables that a node leaves changed.
    fn outputs(&mut self, node: NodeId, base: usize) {
        let code = &self.codes[node];
        let variables = code.variables;
        // A variable may become what another one was: those are read before any is written.
        let moves = code.outputs.iter().any(|&(_, from)| from < variables);
        for registers in [&mut self.registers, &mut self.high]
            .into_iter()
            .take(1 + usize::from(code.wide))
        {
            let registers = &mut registers[base..];
            if moves {
                self.moved.clear();
                let values = code.outputs.iter();
                self.moved
                    .extend(values.map(|&(_, from)| registers[from as usize]));
                for (&(to, _), &value) in code.outputs.iter().zip(&self.moved) {
                    registers[to as usize] = value;
                }
            } else {
                for &(to, from) in &code.outputs {
                    registers[to as usize] = registers[from as usize];
                }
            }
        }
    }

    /// The function that a call reaches. `None` if it traps.
    fn called(&self, callee: Callee, index: Option<u64>) -> Option<FuncId> {
        match callee {
            Callee::Direct(function) => Some(function),
            Callee::Indirect { table, ty } => {
                let elements = &self.state.tables.get(table as usize)?.elements;
                let reference = *elements.get(usize::try_from(index?).ok()?)?;
                let function = FuncId::from_u32(u32::try_from(reference.checked_sub(1)?).ok()?);
                let found = type_of(self.program, Callee::Direct(function))?;
                (found == &self.program.types[ty]).then_some(function)
            }
        }
    }

    /// The host does what the log says.
    fn call_host<O: Observer>(
        &mut self,
        function: FuncId,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let event = self.source.next()?;
        let (import, args, reads, digest) = match &event {
            Some(Event::HostCall {
                import,
                args,
                reads,
                read_digest,
                ..
            })
            | Some(Event::HostStop {
                import,
                args,
                reads,
                read_digest,
                ..
            }) => (import, args, reads, read_digest),
            None => {
                self.waiting = Waiting::Nothing;
                return Ok(());
            }
            Some(_) => return Err(self.boundary("the guest calls the host")),
        };
        if *import != ImportId::from_u32(function.as_u32()) {
            return Err(self.boundary("the guest calls another import"));
        }
        if args.len() != self.values.len() {
            return Err(self.boundary("an import is called with other arguments"));
        }
        for (arg, value) in args.iter().zip(&self.values) {
            if !matches!(arg, RawValue::OpaqueRef) && bits(*arg)? != *value {
                return Err(self.boundary("an import is called with other arguments"));
            }
        }
        observer.host_call();
        let mut hasher = crc32fast::Hasher::new();
        for read in reads {
            let memory = self.state.memories.get(read.memory as usize);
            let place = memory.and_then(|memory| {
                let range = memory.range(read.address, read.length).ok()?;
                memory.bytes.get(range)
            });
            let place = place.ok_or_else(|| self.boundary("the host reads outside of memory"))?;
            hasher.update(place);
            observer.host_read(Range {
                memory: read.memory,
                address: read.address,
                length: read.length,
            });
        }
        if hasher.finalize() != *digest {
            return Err(self.boundary("the host read other bytes"));
        }
        let Some(Event::HostCall {
            results, writes, ..
        }) = event
        else {
            self.waiting = Waiting::Nothing;
            return Ok(());
        };
        for write in writes {
            let outside = self.boundary("the host writes outside of memory");
            let Some(memory) = self.state.memories.get_mut(write.memory as usize) else {
                return Err(outside);
            };
            let length = write.bytes.len() as u64;
            let range = memory.range(write.address, length).map_err(|_| outside)?;
            memory.bytes[range].copy_from_slice(&write.bytes);
            observer.host_write(Range {
                memory: write.memory,
                address: write.address,
                length,
            });
        }
        self.values.clear();
        for result in results {
            self.values.push(bits(result)?);
        }
        self.deliver(true, observer)
    }

    /// Gives the values in `values` to the innermost activation, which called.
    fn deliver<O: Observer>(
        &mut self,
        host: bool,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let mut host = host;
        loop {
            let Some(&frame) = self.frames.last() else {
                if !host {
                    observer.leave(None);
                }
                return self.returned_to_host();
            };
            let code = &self.codes[frame.call];
            let NodeEnd::Call { results, .. } = code.end else {
                return Err(self.diverged("a return to where nothing was called"));
            };
            let first = frame.base + results as usize;
            let count = self.values.len();
            if self.registers.len() < first + count {
                self.registers.resize(first + count, 0);
            }
            for (register, (low, _)) in self.registers[first..].iter_mut().zip(&self.values) {
                *register = *low;
            }
            if code.wide {
                if self.high.len() < first + count {
                    self.high.resize(first + count, 0);
                }
                for (register, (_, high)) in self.high[first..].iter_mut().zip(&self.values) {
                    *register = *high;
                }
            }
            let given = (results, count as u32);
            if host {
                observer.host_returned(given.0, given.1);
            } else {
                observer.leave(Some(given));
            }
            if let Some(next) = code.next {
                self.waiting = Waiting::Block(next);
                return Ok(());
            }
            // Nothing follows the call: what the function returns is on top of its operand stack.
            let function = self.program.function(frame.function);
            let returned = function.map_or(0, |f| self.program.types[f.ty].results.len());
            let top = results as usize + count;
            let base = top.saturating_sub(returned);
            let bank = Bank {
                low: &self.registers[frame.base..],
                high: if code.wide {
                    &self.high[frame.base..]
                } else {
                    &[]
                },
            };
            let registers = Vec::from_iter((base..top).map(|register| register as u32));
            bank.gather(&registers, &mut self.values);
            self.frames.pop();
            host = false;
        }
    }

    fn returned_to_host(&mut self) -> Result<(), MachineError> {
        match self.source.next()? {
            Some(Event::Leave { results }) => {
                let same = results.len() == self.values.len();
                let mut pairs = results.iter().zip(&self.values);
                let same = same
                    && pairs.all(|(result, value)| match bits(*result) {
                        Ok(bits) => bits == *value,
                        Err(_) => true,
                    });
                if !same {
                    return Err(self.boundary("other values are returned to the host"));
                }
                self.waiting = Waiting::Host;
            }
            None => self.waiting = Waiting::Nothing,
            Some(_) => return Err(self.boundary("the guest returns to the host")),
        }
        Ok(())
    }

    /// An exception with the values in `values` was thrown in this block of the innermost activation: finds its handler.
    fn unwind<O: Observer>(
        &mut self,
        tag: u32,
        block: BlockId,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let mut block = block;
        while let Some(&frame) = self.frames.last() {
            if let Some(handler) = self.handler(frame.function, block, tag)? {
                if !handler.values {
                    self.values.clear();
                }
                let carried = self.values.len();
                if handler.reference {
                    let values = self.values.clone();
                    self.exceptions.push(Exception { tag, values });
                    self.values.push((self.exceptions.len() as u64, 0));
                }
                let first = frame.base + handler.first as usize;
                let end = first + self.values.len();
                if self.registers.len() < end {
                    self.registers.resize(end, 0);
                }
                let wide = self.body(frame.function)?.wide;
                if wide && self.high.len() < end {
                    self.high.resize(end, 0);
                }
                for (i, &(low, high)) in self.values.iter().enumerate() {
                    self.registers[first + i] = low;
                    if wide {
                        self.high[first + i] = high;
                    }
                }
                observer.caught(handler.first, carried as u32);
                self.waiting = Waiting::Block(handler.block);
                return Ok(());
            }
            self.frames.pop();
            observer.leave(None);
            if let Some(caller) = self.frames.last() {
                let NodeEnd::Call { block: call, .. } = self.codes[caller.call].end else {
                    return Err(self.diverged("an exception reaches no call"));
                };
                block = call;
            }
        }
        self.waiting = Waiting::Nothing;
        Ok(())
    }

    /// Where a function goes on when an exception is thrown or arrives in a block.
    fn handler(
        &mut self,
        function: FuncId,
        block: BlockId,
        tag: u32,
    ) -> Result<Option<Handler>, MachineError> {
        let body = self.body(function)?;
        let cfg = &body.function.cfg;
        let thrown = |kind| matches!(kind, EdgeKind::Throw | EdgeKind::CallThrow);
        let mut ways = cfg.graph.out_edges(block).iter();
        let mut way = ways.find(|&&edge| thrown(cfg.edges[edge].kind));
        while let Some(&edge) = way {
            let dispatch = cfg.graph.to(edge);
            let BlockKind::Dispatch(Some(op)) = cfg.blocks[dispatch].kind else {
                return Ok(None);
            };
            let Some(Operator::TryTable { try_table }) = body.operators.get(op.index()) else {
                return Err(MachineError::Unsupported("a handler without its try_table"));
            };
            way = None;
            for edge in cfg.graph.out_edges(dispatch) {
                let EdgeKind::Catch(clause) = cfg.edges[*edge].kind else {
                    way = Some(edge);
                    continue;
                };
                let (fits, values, reference) = match try_table.catches.get(clause as usize) {
                    Some(Catch::One { tag: t, .. }) => (*t == tag, true, false),
                    Some(Catch::OneRef { tag: t, .. }) => (*t == tag, true, true),
                    Some(Catch::All { .. }) => (true, false, false),
                    Some(Catch::AllRef { .. }) => (true, false, true),
                    None => (false, false, false),
                };
                if fits {
                    let carried = body.slots.carried.get(edge);
                    return Ok(Some(Handler {
                        block: cfg.graph.to(*edge),
                        first: body.slots.of_slot(carried.map_or(0, |carried| carried.base)),
                        values,
                        reference,
                    }));
                }
            }
        }
        Ok(None)
    }
}

/// What follows a node.
enum Then {
    Block(BlockId),
    Call(Callee, Option<u64>, bool),
    Return,
    Throw(u32, BlockId),
    Stop,
}

/// Where an exception is handled.
struct Handler {
    block: BlockId,
    /// The first variable that gets what is caught.
    first: u32,
    /// It gets what the exception carries.
    values: bool,
    /// It gets a reference to the exception.
    reference: bool,
}

/// The registers of a node, to be read.
struct Bank<'a> {
    low: &'a [u64],
    high: &'a [u64],
}

impl Bank<'_> {
    fn gather(&self, registers: &[u32], values: &mut Vec<Bits>) {
        values.clear();
        for &register in registers {
            let high = self.high.get(register as usize).copied().unwrap_or(0);
            values.push((self.low[register as usize], high));
        }
    }
}

/// The bits of a value.
fn bits(value: RawValue) -> Result<Bits, MachineError> {
    Ok(match value {
        RawValue::I32(value) => (u64::from(value as u32), 0),
        RawValue::I64(value) => (value as u64, 0),
        RawValue::F32(bits) => (u64::from(bits), 0),
        RawValue::F64(bits) => (bits, 0),
        RawValue::V128(bits) => (bits as u64, (bits >> 64) as u64),
        RawValue::NullRef => (0, 0),
        RawValue::OpaqueRef => {
            return Err(MachineError::Unsupported("a reference made by the host"));
        }
    })
}
