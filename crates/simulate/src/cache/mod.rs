//! Caches of one or two levels, with least-recently-used replacement, write-allocate and
//! write-back.
//!
//! An access touches every line that contains one of its bytes. Lines missing from the first level
//! are looked up in the second level, in address order, and are then present in both. The levels
//! are neither inclusive nor exclusive, so a line evicted from one level may stay in the other. A
//! dirty line is written back when it is evicted. It goes to the second level if that level holds
//! the line, and otherwise to memory. A write-back does not count as a use, so it never affects
//! whether an access misses.

mod level;
mod linked;
mod ordered;
mod spec;

pub use level::{Level, Touch};
pub use spec::{CacheSpec, LevelSpec};

/// The simulated caches of a run.
#[derive(Clone, Debug)]
pub struct Caches {
    first: Level,
    second: Option<Level>,
    first_shift: u32,
    second_shift: u32,
    traffic: Traffic,
}

/// The numbers of lines that an access missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// The number of lines missing from the first level.
    pub first: u64,
    /// The number of these lines that are also missing from the second level. Without a
    /// second level, this equals `first`.
    pub last: u64,
}

/// The numbers of lines moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of times that an access touched a line. An access that touches several lines
    /// counts once for each.
    pub touched: u64,
    /// The number of lines read into the first level.
    pub first: u64,
    /// The number of lines read into the second level.
    pub second: u64,
    /// The number of lines written back from the first level.
    pub first_back: u64,
    /// The number of lines written back from the second level.
    pub second_back: u64,
}

impl Caches {
    /// Creates empty caches. Time: O(size of the caches).
    pub fn new(spec: &CacheSpec) -> Self {
        let second = spec.second.as_ref();
        Self {
            first: Level::new(&spec.first),
            second: second.map(Level::new),
            first_shift: spec.first.line.trailing_zeros(),
            second_shift: second.map_or(0, |second| second.line.trailing_zeros()),
            traffic: Traffic::default(),
        }
    }

    /// Returns the numbers of lines moved so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Reads or writes `length` bytes and returns the misses. There are none if `length` is 0.
    /// Time: O(lines).
    #[inline]
    pub fn access(&mut self, address: u64, length: u64, write: bool) -> Missed {
        let mut missed = Missed::default();
        if length == 0 {
            return missed;
        }
        let first = address >> self.first_shift;
        let last = address.saturating_add(length - 1) >> self.first_shift;
        for line in first..=last {
            self.traffic.touched += 1;
            let touch = self.first.touch(line, write);
            if touch != Touch::Hit {
                missed.first += 1;
                missed.last += u64::from(self.fetch(line, touch));
            }
        }
        missed
    }

    /// Fetches a line that the first level lacks, and returns whether it comes from memory.
    fn fetch(&mut self, line: u64, touch: Touch) -> bool {
        self.traffic.first += 1;
        let shift = self.second_shift.saturating_sub(self.first_shift);
        let mut from_memory = true;
        if let Some(second) = &mut self.second {
            let found = second.touch(line >> shift, false);
            from_memory = found != Touch::Hit;
            self.traffic.second += u64::from(from_memory);
            self.traffic.second_back += u64::from(matches!(found, Touch::WroteBack(_)));
        }
        if let Touch::WroteBack(old) = touch {
            self.traffic.first_back += 1;
            if let Some(second) = &mut self.second {
                second.dirty(old >> shift);
            }
        }
        from_memory
    }
}
