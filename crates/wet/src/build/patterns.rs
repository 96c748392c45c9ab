//! Numbers the patterns of origins that the bytes of loads have.

use rustc_hash::FxHashMap;

/// A part of a load: the number of its bytes, and the origin of the first byte, as a place.
pub(crate) type Part = (u8, u32);

/// The patterns found so far. A single write is a pattern by itself, without a list.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    lists: Vec<Box<[Part]>>,
    known: FxHashMap<Box<[Part]>, u32>,
}

/// Marks the patterns that are lists. Places need fewer bits.
const LIST: u32 = 1 << 31;

/// The origins of a load's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pattern<'a> {
    /// All bytes come from one write, beginning at this place.
    One(u32),
    /// The bytes come from several writes.
    Parts(&'a [Part]),
}

impl Patterns {
    /// Returns the number of the pattern for a list of parts.
    pub(crate) fn number(&mut self, parts: &[Part]) -> u32 {
        if let Some(&number) = self.known.get(parts) {
            return number;
        }
        let number = LIST | self.lists.len() as u32;
        self.lists.push(parts.into());
        self.known.insert(parts.into(), number);
        number
    }

    /// Returns the pattern with a number.
    pub(crate) fn get(&self, number: u32) -> Pattern<'_> {
        if number & LIST == 0 {
            Pattern::One(number)
        } else {
            Pattern::Parts(&self.lists[(number & !LIST) as usize])
        }
    }
}
