//! Caches locations until one of the machine's words that determine them changes.

use std::cell::{Cell, RefCell};

use afterimage_ids::OrigOffset;

use crate::object::Object;
use crate::place::{Machine, VariableLocation, Word};
use crate::{Unavailable, Variable, Variables};

/// A variable's location, and the words that were read to find it. For a local, there are no such
/// words. For a variable in the stack frame, the word is the frame's base. As long as these words
/// are the same, the location is the same.
pub struct Located {
    /// The object, or the reason why there is none.
    pub object: Result<Object, Unavailable>,
    words: Vec<(VariableLocation, Option<Word>)>,
    /// Whether anything other than these words was read.
    is_momentary: bool,
}

impl Located {
    /// Whether this is also the location at another moment, at the same offset of the code.
    pub fn holds_at(&self, machine: &dyn Machine) -> bool {
        let mut words = self.words.iter();
        !self.is_momentary && words.all(|(place, word)| place.word(machine).ok() == *word)
    }
}

impl Variables<'_> {
    /// [Locates](Self::locate) a variable, and records the words that determine its location.
    pub fn locate_lasting(
        &self,
        variable: &Variable,
        at: Option<OrigOffset>,
        machine: &dyn Machine,
    ) -> Located {
        let noted = Noted {
            machine,
            words: RefCell::default(),
            is_momentary: Cell::new(false),
        };
        Located {
            object: self.locate(variable, at, &noted),
            words: noted.words.into_inner(),
            is_momentary: noted.is_momentary.get(),
        }
    }
}

/// A moment that notes which words are read.
struct Noted<'m> {
    machine: &'m dyn Machine,
    words: RefCell<Vec<(VariableLocation, Option<Word>)>>,
    is_momentary: Cell<bool>,
}

impl Noted<'_> {
    fn word(&self, place: VariableLocation) -> Option<Word> {
        let word = place.word(self.machine).ok();
        self.words.borrow_mut().push((place, word));
        word
    }
}

impl Machine for Noted<'_> {
    fn local(&self, index: u32) -> Option<Word> {
        self.word(VariableLocation::Local(index))
    }

    fn global(&self, index: u32) -> Option<Word> {
        self.word(VariableLocation::Global(index))
    }

    fn stack(&self, index: u32) -> Option<Word> {
        self.word(VariableLocation::OperandStack(index))
    }

    fn memory(&self, address: u64, into: &mut [u8]) -> bool {
        self.is_momentary.set(true);
        self.machine.memory(address, into)
    }

    fn at_entry(&self, local: u32) -> Option<Word> {
        self.is_momentary.set(true);
        self.machine.at_entry(local)
    }

    fn function(&self, index: u64) -> Option<String> {
        self.is_momentary.set(true);
        self.machine.function(index)
    }
}
