//! Executes nodes by their operations.

use afterimage_ids::NodeId;
use afterimage_program::Callee;

use crate::MachineError;
use crate::code::NodeCode;
use crate::execute::{Registers, Stop, one};
use crate::host::Source;
use crate::image::State;
use crate::lazy::lengthened;
use crate::lean::{End, Exit, Lean, Op, WINDOW, Window, run};
use crate::machine::{Machine, Waiting};
use crate::observe::Observer;

/// The reason why execution left a node before its end, and the number of instructions executed
/// until then. The pair is boxed, because small results are returned in a register.
type Left = Box<(usize, Stop)>;

impl Machine<'_> {
    /// Executes a whole node.
    #[inline(always)]
    pub(crate) fn execute_whole<O: Observer>(
        &mut self,
        node: NodeId,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        if !O::REGISTERS {
            if !self.operations.has_lean(node) {
                self.make_lean(node);
            }
            if let Some(lean) = self.operations.lean(node) {
                return self.execute_lean(node, lean, observer);
            }
        }
        self.execute_full(node, observer)
    }

    #[cold]
    fn make_lean(&mut self, node: NodeId) {
        if let Some(code) = self.codes.get(node) {
            self.operations.make_lean(node, code, narrow(&self.state));
        }
    }

    /// Executes a node if nothing observes its registers.
    #[inline(always)]
    fn execute_lean<O: Observer>(
        &mut self,
        node: NodeId,
        lean: Lean,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let base = match self.frames.last() {
            Some(frame)
                if self.waiting == Waiting::Block(lean.first)
                    && frame.function == lean.function =>
            {
                frame.base
            }
            _ => {
                self.arrive(node, observer)?;
                self.frames.last().map_or(0, |frame| frame.base)
            }
        };
        let code = &self.codes[node];
        observer.node(node, code);
        let registers = window(&mut self.registers, base)?;
        observer.variables(code, &registers[..], &[]);
        let running = Running {
            ops: self.operations.ops(lean.ops),
            code,
            window: registers,
            high: &mut [],
            state: &mut self.state,
            source: &mut self.source,
        };
        if let Err(left) = running.all(observer) {
            return self.stops(node, *left, base, observer);
        }
        observer.done(code, &[], &[]);
        let callee = match lean.end {
            End::Next(next) => {
                self.waiting = Waiting::Block(next);
                return Ok(());
            }
            End::Call { callee, .. } => Some(callee),
            End::Return => None,
        };
        let registers = window(&mut self.registers, base)?;
        self.values.clear();
        for &register in self.operations.operands(lean.operands) {
            let register = usize::from(register as u16);
            self.values.push((registers[register], 0));
        }
        match callee {
            Some(callee @ Callee::Direct(_)) => self.call(node, callee, None, false, observer),
            Some(callee) => {
                let index = self.values.pop().map(|(index, _)| index);
                self.call(node, callee, index, false, observer)
            }
            None => {
                self.frames.pop();
                self.deliver(false, observer)
            }
        }
    }

    /// Executes a node, and leaves every result in its register.
    fn execute_full<O: Observer>(
        &mut self,
        node: NodeId,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let Some(code) = self.codes.get(node) else {
            return Err(self.diverged("a node follows that was not defined"));
        };
        let made = self.operations.full(node);
        let made = made.or_else(|| self.operations.make_full(node, code, narrow(&self.state)));
        let Some(ops) = made else {
            return self.execute(node, None, observer, &[], |_, _| ());
        };
        self.arrive(node, observer)?;
        let code = &self.codes[node];
        let base = self.frames.last().map_or(0, |frame| frame.base);
        let count = code.registers();
        if code.wide && self.high.len() < base + count {
            self.high.resize(base + 2 * count, 0);
        }
        observer.node(node, code);
        let window = window(&mut self.registers, base)?;
        let high = if code.wide {
            &mut self.high[base..base + count]
        } else {
            &mut [][..]
        };
        observer.variables(code, &window[..], high);
        code.set_constants(&mut window[..count], high);
        let running = Running {
            ops: self.operations.ops(ops),
            code,
            window,
            high,
            state: &mut self.state,
            source: &mut self.source,
        };
        if let Err(left) = running.all(observer) {
            return self.stops(node, *left, base, observer);
        }
        let high = if code.wide {
            &self.high[base..base + count]
        } else {
            &[]
        };
        observer.done(code, &self.registers[base..base + count], high);
        self.leave_node(node, base, observer)
    }
}

/// Whether memory number 0 exists and has 32-bit addresses.
fn narrow(state: &State) -> bool {
    let memory = state.memories.first();
    memory.is_some_and(|memory| !memory.wide)
}

/// A node being executed, with the machine's state.
struct Running<'m> {
    ops: &'m [Op],
    code: &'m NodeCode,
    window: &'m mut Window,
    high: &'m mut [u64],
    state: &'m mut State,
    source: &'m mut Source,
}

impl Running<'_> {
    /// Executes all operations.
    #[inline(always)]
    fn all<O: Observer>(self, observer: &mut O) -> Result<(), Left> {
        let mut ops = self.ops;
        loop {
            let exit = run(ops, self.window, self.code, self.state, observer);
            if exit == Exit::DONE {
                return Ok(());
            }
            let (_, rest) = ops.split_at(ops.len() - exit.left());
            let Some((at, rest)) = rest.split_first() else {
                return Ok(());
            };
            let position = at.position();
            let stop = if let Some(trap) = exit.trap() {
                Err(Stop::Trap(trap))
            } else if at.is_rare() {
                let registers = &mut Registers {
                    low: &mut self.window[..],
                    high: self.high,
                };
                let (state, source) = (&mut *self.state, &mut *self.source);
                one(self.code, position, registers, state, source, observer)
            } else {
                Err(Stop::Diverged("a branch goes a different way"))
            };
            stop.map_err(|stop| Box::new((position, stop)))?;
            ops = rest;
        }
    }
}

/// Returns the window of registers from `base` on that operations can name.
#[inline]
fn window(registers: &mut Vec<u64>, base: usize) -> Result<&mut Window, MachineError> {
    if registers.len() < base + WINDOW {
        make_room(registers, base);
    }
    let window = registers[base..].first_chunk_mut();
    window.ok_or(MachineError::Unsupported("registers without room"))
}

/// Makes room for a window from `base` on, and for many more registers. Untouched pages take no
/// memory. Time: amortised O(registers).
#[cold]
pub(crate) fn make_room(registers: &mut Vec<u64>, base: usize) {
    *registers = lengthened(registers, base + base / 2 + 2 * WINDOW);
}
