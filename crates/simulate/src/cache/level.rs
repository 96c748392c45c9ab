//! Simulates one cache level.

use super::LevelSpec;
use super::linked::Linked;
use super::ordered::Ordered;

/// A cache level, which has sets of lines with least-recently-used replacement. A line is
/// identified by its address divided by the line length.
#[derive(Clone, Debug)]
pub struct Level {
    sets: Sets,
}

/// The sets of a level. Small sets are scanned. In large sets, lines are looked up by number.
#[derive(Clone, Debug)]
enum Sets {
    Ordered(Ordered),
    Linked(Linked),
}

/// The result of using a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The line was present.
    Hit,
    /// The line was absent. The line that it replaced, if any, was clean.
    Filled,
    /// The line was absent and replaced this dirty line.
    WroteBack(u64),
}

/// The largest number of ways for which a set is scanned.
const LOOK: u64 = 32;

impl Level {
    /// Creates an empty level. Time: O(size) if its sets are small.
    pub fn new(spec: &LevelSpec) -> Self {
        let sets = if spec.ways <= LOOK {
            Sets::Ordered(Ordered::new(spec.sets(), spec.ways))
        } else {
            Sets::Linked(Linked::new(spec.sets(), spec.ways))
        };
        Self { sets }
    }

    /// Uses a line, which makes it present and the most recently used. Time: O(1), or O(ways) for
    /// sets of up to 32 lines.
    #[inline]
    pub fn touch(&mut self, line: u64, write: bool) -> Touch {
        match &mut self.sets {
            Sets::Ordered(sets) => sets.touch(line, write),
            Sets::Linked(sets) => sets.touch(line, write),
        }
    }

    /// Marks a line as dirty if it is present. This does not count as a use.
    pub fn dirty(&mut self, line: u64) {
        match &mut self.sets {
            Sets::Ordered(sets) => sets.dirty(line),
            Sets::Linked(sets) => sets.dirty(line),
        }
    }
}
