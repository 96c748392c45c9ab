//! One level.

use super::LevelSpec;
use super::linked::Linked;
use super::ordered::Ordered;

/// One level of cache: sets of lines, of which the one that was not used for longest is replaced. Lines are numbers: an address over the
/// line's length.
#[derive(Clone, Debug)]
pub struct Level {
    sets: Sets,
}

/// What is in a set is looked through where it is little, and otherwise found by its number.
#[derive(Clone, Debug)]
enum Sets {
    Ordered(Ordered),
    Linked(Linked),
}

/// What using a line did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It was there.
    Hit,
    /// It was not, and what it replaced, if anything, was not written to.
    Filled,
    /// It was not, and replaced this line, which was written to.
    WroteBack(u64),
}

/// Sets of more lines are not looked through.
const LOOK: u64 = 32;

impl Level {
    /// Empty. O(its size), if its sets are small.
    pub fn new(spec: &LevelSpec) -> Self {
        let sets = if spec.ways <= LOOK {
            Sets::Ordered(Ordered::new(spec.sets(), spec.ways))
        } else {
            Sets::Linked(Linked::new(spec.sets(), spec.ways))
        };
        Self { sets }
    }

    /// Uses a line, which then is there and the last one used. O(1), or O(ways) up to 32.
    #[inline]
    pub fn touch(&mut self, line: u64, write: bool) -> Touch {
        match &mut self.sets {
            Sets::Ordered(sets) => sets.touch(line, write),
            Sets::Linked(sets) => sets.touch(line, write),
        }
    }

    /// Notes that a line is written to, if it is there. That is no use of it.
    pub fn dirty(&mut self, line: u64) {
        match &mut self.sets {
            Sets::Ordered(sets) => sets.dirty(line),
            Sets::Linked(sets) => sets.dirty(line),
        }
    }
}
