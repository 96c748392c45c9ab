//! Where the bytes of a load come from, as patterns with a number.

use rustc_hash::FxHashMap;

/// A part of a load: how many bytes, and the place that the first comes from.
pub(crate) type Part = (u8, u32);

/// Patterns that were met. One write is a pattern of its own, without a list.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    lists: Vec<Box<[Part]>>,
    known: FxHashMap<Box<[Part]>, u32>,
}

/// Marks the patterns that are lists. Places need fewer bits.
const LIST: u32 = 1 << 31;

/// What a pattern is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pattern<'a> {
    /// All bytes come from this place on.
    One(u32),
    /// Several parts.
    Parts(&'a [Part]),
}

impl Patterns {
    /// The number of a list of parts.
    pub(crate) fn number(&mut self, parts: &[Part]) -> u32 {
        if let Some(&number) = self.known.get(parts) {
            return number;
        }
        let number = LIST | self.lists.len() as u32;
        self.lists.push(parts.into());
        self.known.insert(parts.into(), number);
        number
    }

    /// What a number stands for.
    pub(crate) fn get(&self, number: u32) -> Pattern<'_> {
        if number & LIST == 0 {
            Pattern::One(number)
        } else {
            Pattern::Parts(&self.lists[(number & !LIST) as usize])
        }
    }
}
