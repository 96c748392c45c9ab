//! Begins and ends activations at calls and returns.

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId};
use afterimage_program::Callee;
use afterimage_trace::MAX_VARIABLES;

use crate::code::NodeEnd;
use crate::compile::type_of;
use crate::lazy::is_zero;
use crate::lean::End;
use crate::leave::Bank;
use crate::machine::{Machine, Shape, Waiting};
use crate::observe::{Caller, Observer};
use crate::step::make_room;
use crate::{MachineError, Trap};

/// The maximum total number of registers of all activations.
pub(crate) const MOST_REGISTERS: usize = MAX_VARIABLES as usize;

/// In functions with at least this many locals, zeros are not written to memory that is already
/// zero.
const MANY: usize = 512;

/// The state of an activation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub function: FuncId,
    /// The register of the activation's first variable.
    pub base: usize,
    /// The node that ends with the activation's pending call, if it has one.
    pub call: NodeId,
}

impl Machine<'_> {
    /// Returns an error at once if the activations open at the run's end have more variables than
    /// can be followed. Time: O(activations).
    pub(crate) fn check_depth(&mut self, end: &afterimage_trace::End) -> Result<(), MachineError> {
        let mut all = 0;
        for frame in &end.frames {
            all += match self.program.function(frame.function) {
                Some(_) => self.body(frame.function)?.variables(),
                None => 0,
            };
        }
        if all > MOST_REGISTERS {
            Err(MachineError::TooDeep)
        } else {
            Ok(())
        }
    }

    /// Begins an activation with the arguments in `values`.
    pub(crate) fn enter<O: Observer>(
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
        let Shape {
            locals, wide, root, ..
        } = self.shape(function)?;
        if first != root {
            return Err(self.diverged("a call begins inside a function"));
        }
        let given = self.values.len();
        if given > locals {
            return Err(self.diverged("a call has too many arguments"));
        }
        if base + locals > MOST_REGISTERS {
            return Err(MachineError::TooDeep);
        }
        let low = self.values.iter().map(|&(low, _)| low);
        begin(&mut self.registers, base, locals, low);
        if wide {
            let high = self.values.iter().map(|&(_, high)| high);
            begin(&mut self.high, base, locals, high);
        }
        self.frames.push(Frame {
            function,
            base,
            call: NodeId::new(0),
        });
        observer.enter(function, by);
        Ok(())
    }

    /// Begins a call with the arguments in `values`.
    pub(crate) fn call<O: Observer>(
        &mut self,
        node: NodeId,
        callee: Callee,
        index: Option<u64>,
        tail: bool,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let callee = match self.called(callee, index) {
            Ok(callee) => callee,
            Err(trap) => {
                self.trapped(trap);
                return Ok(());
            }
        };
        observer.called(callee, &self.values);
        if tail {
            self.frames.pop();
            observer.leave(None);
        } else if let Some(frame) = self.frames.last_mut() {
            frame.call = node;
        }
        if callee.index() < self.program.imports.len() {
            return self.call_host(callee, observer);
        }
        self.waiting = Waiting::Enter {
            function: callee,
            tail,
        };
        Ok(())
    }

    /// Returns the function that a call reaches.
    fn called(&self, callee: Callee, index: Option<u64>) -> Result<FuncId, Trap> {
        let (table, ty) = match callee {
            Callee::Direct(function) => return Ok(function),
            Callee::Indirect { table, ty } => (table, ty),
        };
        let table = self.state.tables.get(table as usize).ok_or(Trap::Table)?;
        let index = index.and_then(|index| usize::try_from(index).ok());
        let element = index.and_then(|index| table.elements.get(index));
        let reference = *element.ok_or(Trap::Table)?;
        let function = reference.checked_sub(1).ok_or(Trap::CallOfNull)?;
        let function = u32::try_from(function).map_err(|_| Trap::Signature)?;
        let function = FuncId::from_u32(function);
        let found = type_of(self.program, Callee::Direct(function));
        if found == self.program.types.get(ty) {
            Ok(function)
        } else {
            Err(Trap::Signature)
        }
    }

    /// Delivers `values` to the innermost activation, which made the call, or to the host if there
    /// is none. If the activation ends with the call, continues with the enclosing activation.
    /// `from_host` is true if the host returned the values. In that case, no activation has ended
    /// yet.
    pub(crate) fn deliver<O: Observer>(
        &mut self,
        from_host: bool,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let mut from_host = from_host;
        loop {
            observer.returned(&self.values);
            let Some(&frame) = self.frames.last() else {
                if !from_host {
                    observer.leave(None);
                }
                return self.return_to_host();
            };
            let Some((results, next, wide)) = self.after_call(frame.call) else {
                return Err(self.diverged("a return without a call"));
            };
            self.write_values(frame.base + results as usize, wide);
            let given = (results, self.values.len() as u32);
            if from_host {
                observer.host_returned(given.0, given.1);
            } else {
                observer.leave(Some(given));
            }
            if let Some(next) = next {
                self.waiting = Waiting::Block(next);
                return Ok(());
            }
            observer.passes_on(frame.function);
            self.return_top(frame, given.0 + given.1, wide);
            from_host = false;
        }
    }

    /// Describes the return from the call at a node's end. The result has the first variable for
    /// the results, the block with which the activation continues, and whether the function has
    /// vectors.
    #[inline]
    fn after_call(&self, call: NodeId) -> Option<(u32, Option<BlockId>, bool)> {
        if let Some(lean) = self.operations.lean(call)
            && let End::Call { results, next, .. } = lean.end
        {
            return Some((results, next, false));
        }
        let code = &self.codes[call];
        match code.end {
            NodeEnd::Call { results, .. } => Some((results, code.next, code.wide)),
            _ => None,
        }
    }

    /// Writes `values` to the registers from `first` on.
    #[inline]
    pub(crate) fn write_values(&mut self, first: usize, wide: bool) {
        let end = first + self.values.len();
        if self.registers.len() < end {
            self.registers.resize(end, 0);
        }
        for (register, &(low, _)) in self.registers[first..].iter_mut().zip(&self.values) {
            *register = low;
        }
        if wide {
            if self.high.len() < end {
                self.high.resize(end, 0);
            }
            for (register, &(_, high)) in self.high[first..].iter_mut().zip(&self.values) {
                *register = high;
            }
        }
    }

    /// Ends the innermost activation. The activation returns the top of its operand stack, which
    /// consists of the variables before `top`.
    pub(crate) fn return_top(&mut self, frame: Frame, top: u32, wide: bool) {
        let function = self.program.function(frame.function);
        let results = function.and_then(|f| self.program.types.get(f.ty));
        let count = results.map_or(0, |ty| ty.results.len() as u32);
        let bank = Bank {
            low: &self.registers[frame.base..],
            high: if wide { &self.high[frame.base..] } else { &[] },
        };
        let registers = Vec::from_iter(top.saturating_sub(count)..top);
        bank.gather(&registers, &mut self.values);
        self.frames.pop();
    }
}

/// Initialises an activation's locals with its arguments, and then with zeros.
fn begin(
    registers: &mut Vec<u64>,
    base: usize,
    locals: usize,
    arguments: impl ExactSizeIterator<Item = u64>,
) {
    if registers.len() < base + locals {
        make_room(registers, base + locals);
    }
    let registers = &mut registers[base..base + locals];
    let zeros = &mut registers[arguments.len()..];
    // Untouched pages take no memory, so zeros are not written to them.
    if locals < MANY || !is_zero(zeros) {
        zeros.fill(0);
    }
    for (register, argument) in registers.iter_mut().zip(arguments) {
        *register = argument;
    }
}
