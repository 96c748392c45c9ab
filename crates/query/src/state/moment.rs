//! A moment of a run, as the debug information asks about it.

use std::cell::{OnceCell, RefCell};

use afterimage_ids::FuncId;
use afterimage_machine::{Inside, State};
use afterimage_program::Program;
use afterimage_variables::{Machine, Word};
use wasmparser::ValType;

use super::{Activation, StateError};
use crate::values::{Bits, Instance, RecordedValues};

/// What is known at a moment.
pub trait Contents {
    /// What a variable of an activation holds.
    fn variable(&self, activation: &Activation<'_>, variable: u32) -> Option<Bits>;

    /// Memories, tables and globals.
    fn state(&self) -> Option<&State>;
}

/// By the whole execution trace; memories, tables and globals by a function that is called at most once, if something of them is asked for.
pub struct Recorded<'m, 'a> {
    values: &'m RecordedValues<'a>,
    state: &'m dyn Fn() -> Option<State>,
    found: OnceCell<Option<State>>,
    failed: RefCell<Option<StateError>>,
}

impl<'m, 'a> Recorded<'m, 'a> {
    /// By this trace.
    pub fn new(values: &'m RecordedValues<'a>, state: &'m dyn Fn() -> Option<State>) -> Self {
        Self {
            values,
            state,
            found: OnceCell::new(),
            failed: RefCell::default(),
        }
    }

    /// Whether something of memories, tables or globals was asked for.
    pub fn asked_for_state(&self) -> bool {
        self.found.get().is_some()
    }

    /// Why the trace did not tell something, if that happened since this was asked last.
    pub fn failure(&self) -> Option<StateError> {
        self.failed.take()
    }
}

impl Contents for Recorded<'_, '_> {
    fn variable(&self, activation: &Activation<'_>, variable: u32) -> Option<Bits> {
        match activation.recorded(self.values, variable) {
            Ok(bits) => Some(bits),
            Err(error) => {
                self.failed.replace(Some(error));
                None
            }
        }
    }

    fn state(&self) -> Option<&State> {
        self.found.get_or_init(self.state).as_ref()
    }
}

/// By the machine that has followed the run up to the moment, for the activation that executes then; others by the trace.
pub struct Followed<'m, 'a> {
    /// What there is.
    pub inside: &'m Inside<'m>,
    /// The first register of a result in the node.
    pub first_result: u32,
    /// Which execution of a node it is in.
    pub instance: Instance,
    /// The trace.
    pub recorded: &'m Recorded<'m, 'a>,
}

impl Contents for Followed<'_, '_> {
    fn variable(&self, activation: &Activation<'_>, variable: u32) -> Option<Bits> {
        if activation.instance != self.instance {
            return self.recorded.variable(activation, variable);
        }
        let Inside { low, high, .. } = *self.inside;
        activation.followed(low, high, self.first_result, variable)
    }

    fn state(&self) -> Option<&State> {
        Some(self.inside.state)
    }
}

/// An activation at a moment.
pub struct Moment<'m, 'a> {
    /// The activation.
    pub activation: &'m Activation<'a>,
    /// What is known.
    pub contents: &'m dyn Contents,
    /// The same activation where it began, if it is known.
    pub entry: Option<&'m Activation<'a>>,
    /// The program.
    pub program: &'a Program,
    /// What a function is called.
    pub name: &'m dyn Fn(FuncId) -> String,
}

impl Moment<'_, '_> {
    fn local_of(&self, activation: &Activation<'_>, index: u32) -> Option<Word> {
        let ty = *activation.locals().get(index as usize)?;
        word(ty, self.contents.variable(activation, index)?)
    }
}

/// What a value of WebAssembly is for the debug information. References are nothing.
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
        let state = self.contents.state()?;
        word(ty, *state.globals.get(index as usize)?)
    }

    fn stack(&self, slot: u32) -> Option<Word> {
        let (variable, ty) = self.activation.slot(slot)?;
        word(ty, self.contents.variable(self.activation, variable)?)
    }

    fn memory(&self, address: u64, into: &mut [u8]) -> bool {
        let memory = self.contents.state().and_then(|s| s.memories.first());
        let Some(memory) = memory else {
            return false;
        };
        let Ok(range) = memory.range(address, into.len() as u64) else {
            return false;
        };
        into.copy_from_slice(&memory.bytes[range]);
        true
    }

    fn at_entry(&self, local: u32) -> Option<Word> {
        self.local_of(self.entry?, local)
    }

    fn function(&self, index: u64) -> Option<String> {
        let table = self.contents.state()?.tables.first()?;
        let reference = *table.elements.get(usize::try_from(index).ok()?)?;
        let function = u32::try_from(reference.checked_sub(1)?).ok()?;
        Some((self.name)(FuncId::from_u32(function)))
    }
}
