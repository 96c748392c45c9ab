//! A moment of a run, as the input for evaluating debug information.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::Inside;
use afterimage_program::Program;
use afterimage_variables::{Machine, Word};
use wasmparser::ValType;

use super::{Activation, StateError};
use crate::steps::Paused;
use crate::values::{Bits, Instance, RecordedValues, ValuesError};

/// The contents of variables and memory that are known at a moment.
pub trait Contents {
    /// Returns the value of a variable of an activation.
    fn variable(&self, activation: &Activation<'_>, variable: u32) -> Option<Bits>;

    /// Returns the value of a global.
    fn global(&self, index: u32) -> Option<Bits>;

    /// Returns the reference at an index of table 0, which is 0 for none, and otherwise the
    /// function's index plus 1.
    fn element(&self, index: u64) -> Option<u64>;

    /// Reads memory 0. Returns `false` if some of the bytes do not exist or are unknown.
    fn memory(&self, address: u64, into: &mut [u8]) -> bool;

    /// Whether everything requested so far is known, as far as the run determines it. If not, an
    /// expression that has no value here may have one with other contents.
    fn is_enough(&self) -> bool {
        true
    }
}

/// Contents from the whole execution trace alone. Memories, tables and globals are unknown, but
/// requests for them are recorded.
pub struct Recorded<'m, 'a> {
    values: &'m RecordedValues<'a>,
    asked: Cell<bool>,
    failed: RefCell<Option<StateError>>,
    /// The number of requests for values that are not stored.
    outside: Cell<u64>,
    /// The reason why the last of these values is not stored, in words.
    why_outside: RefCell<String>,
    /// Values found before, by node execution, operator and variable. They are kept because finding
    /// each value takes a search.
    known: RefCell<HashMap<(Instance, OpId, u32), Bits>>,
}

impl<'m, 'a> Recorded<'m, 'a> {
    /// Creates contents from this trace.
    pub fn new(values: &'m RecordedValues<'a>) -> Self {
        Self {
            values,
            asked: Cell::new(false),
            failed: RefCell::default(),
            outside: Cell::new(0),
            why_outside: RefCell::default(),
            known: RefCell::default(),
        }
    }

    /// Returns the number of requests for values that are not stored because of their time or
    /// function. Also returns the last reason, in words.
    pub fn outside(&self) -> (u64, String) {
        (self.outside.get(), self.why_outside.borrow().clone())
    }

    /// Returns the failure since the last call to this method, or `None` if there was no failure.
    pub fn failure(&self) -> Option<StateError> {
        self.failed.take()
    }
}

impl Contents for Recorded<'_, '_> {
    fn variable(&self, activation: &Activation<'_>, variable: u32) -> Option<Bits> {
        let key = (activation.instance, activation.op, variable);
        if let Some(&bits) = self.known.borrow().get(&key) {
            return Some(bits);
        }
        match activation.recorded(self.values, variable) {
            Ok(bits) => {
                self.known.borrow_mut().insert(key, bits);
                Some(bits)
            }
            Err(StateError::Values(error @ ValuesError::Outside { .. })) => {
                self.outside.set(self.outside.get() + 1);
                self.why_outside.replace(error.to_string());
                None
            }
            Err(error) => {
                self.failed.replace(Some(error));
                None
            }
        }
    }

    fn global(&self, _: u32) -> Option<Bits> {
        self.asked.set(true);
        None
    }

    fn element(&self, _: u64) -> Option<u64> {
        self.asked.set(true);
        None
    }

    fn memory(&self, _: u64, _: &mut [u8]) -> bool {
        self.asked.set(true);
        false
    }

    fn is_enough(&self) -> bool {
        !self.asked.get() && self.failed.borrow().is_none() && self.outside.get() == 0
    }
}

/// Contents that record whether a memory, table or global is requested. Every other value is 0, so
/// the result is only a guess, but takes almost no time.
#[derive(Default)]
pub struct Guess {
    asked: Cell<bool>,
}

impl Guess {
    /// Whether the trace alone is probably not enough.
    pub fn needs_memory(&self) -> bool {
        self.asked.get()
    }
}

impl Contents for Guess {
    fn variable(&self, _: &Activation<'_>, _: u32) -> Option<Bits> {
        Some((0, 0))
    }

    fn global(&self, _: u32) -> Option<Bits> {
        self.asked.set(true);
        None
    }

    fn element(&self, _: u64) -> Option<u64> {
        self.asked.set(true);
        None
    }

    fn memory(&self, _: u64, _: &mut [u8]) -> bool {
        self.asked.set(true);
        false
    }
}

/// Contents from two sources. The contents of the executing activation come from the machine, which
/// has followed the run to the moment. The contents of other activations come from the trace.
pub struct Followed<'m, 'a> {
    /// The state of the machine.
    pub paused: &'m Paused<'m>,
    /// The first result register of the node.
    pub first_result: u32,
    /// The execution of the node.
    pub instance: Instance,
    /// The trace. It also keeps the reason why a memory could not be read.
    pub recorded: &'m Recorded<'m, 'a>,
}

impl Contents for Followed<'_, '_> {
    fn variable(&self, activation: &Activation<'_>, variable: u32) -> Option<Bits> {
        if activation.instance != self.instance {
            return self.recorded.variable(activation, variable);
        }
        let Inside { low, high, .. } = *self.paused.inside;
        activation.followed(low, high, self.first_result, variable)
    }

    fn global(&self, index: u32) -> Option<Bits> {
        let globals = &self.paused.inside.state.globals;
        globals.get(index as usize).copied()
    }

    fn element(&self, index: u64) -> Option<u64> {
        let table = self.paused.inside.state.tables.first()?;
        table.elements.get(usize::try_from(index).ok()?).copied()
    }

    fn memory(&self, address: u64, into: &mut [u8]) -> bool {
        match self.paused.memory(0, address, into) {
            Ok(known) => known,
            Err(error) => {
                self.recorded.failed.replace(Some(error.into()));
                false
            }
        }
    }
}

/// Contents at the end of a run, which are globals and memory 0. No activation is open.
pub struct Ended<'m> {
    /// The state of the machine.
    pub paused: &'m Paused<'m>,
    /// The program that was run.
    pub program: &'m Program,
    /// The reason why a memory could not be read, or `None` if all reads succeeded.
    pub failed: &'m RefCell<Option<StateError>>,
}

impl Machine for Ended<'_> {
    fn local(&self, _: u32) -> Option<Word> {
        None
    }

    fn global(&self, index: u32) -> Option<Word> {
        let ty = *self.program.globals.get(index as usize)?;
        let globals = &self.paused.inside.state.globals;
        word(ty, *globals.get(index as usize)?)
    }

    fn stack(&self, _: u32) -> Option<Word> {
        None
    }

    fn memory(&self, address: u64, into: &mut [u8]) -> bool {
        let read = self.paused.memory(0, address, into);
        read.unwrap_or_else(|error| {
            self.failed.replace(Some(error.into()));
            false
        })
    }
}

/// An activation at a moment.
pub struct Moment<'m, 'a> {
    /// The activation to examine.
    pub activation: &'m Activation<'a>,
    /// The contents that are known at this moment of the run.
    pub contents: &'m dyn Contents,
    /// The activation at its beginning, if known.
    pub entry: Option<&'m Activation<'a>>,
    /// The program that was run.
    pub program: &'a Program,
    /// The name of a function.
    pub name: &'m dyn Fn(FuncId) -> String,
}

impl Moment<'_, '_> {
    fn local_of(&self, activation: &Activation<'_>, index: u32) -> Option<Word> {
        let ty = *activation.locals().get(index as usize)?;
        word(ty, self.contents.variable(activation, index)?)
    }
}

/// Converts a WebAssembly value to a word for evaluating debug information. Returns `None` for a
/// reference.
fn word(ty: ValType, (low, high): Bits) -> Option<Word> {
    Some(match ty {
        ValType::I32 | ValType::F32 => Word::w32(low as u32),
        ValType::I64 | ValType::F64 => Word::w64(low),
        ValType::V128 => Word::w128(u128::from(low) | u128::from(high) << 64),
        ValType::Ref(_) => return None,
    })
}

impl Machine for Moment<'_, '_> {
    fn local(&self, index: u32) -> Option<Word> {
        self.local_of(self.activation, index)
    }

    fn global(&self, index: u32) -> Option<Word> {
        let ty = *self.program.globals.get(index as usize)?;
        word(ty, self.contents.global(index)?)
    }

    fn stack(&self, slot: u32) -> Option<Word> {
        let (variable, ty) = self.activation.slot(slot)?;
        word(ty, self.contents.variable(self.activation, variable)?)
    }

    fn memory(&self, address: u64, into: &mut [u8]) -> bool {
        self.contents.memory(address, into)
    }

    fn at_entry(&self, local: u32) -> Option<Word> {
        self.local_of(self.entry?, local)
    }

    fn function(&self, index: u64) -> Option<String> {
        let reference = self.contents.element(index)?;
        let function = u32::try_from(reference.checked_sub(1)?).ok()?;
        Some((self.name)(FuncId::from_u32(function)))
    }
}
