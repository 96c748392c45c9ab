//! Caches: one level or two, least recently used first out, write-allocate and write-back.
//!
//! An access touches each line that it has a byte in. Lines that the first level does not have are looked for in the second, in order of their
//! addresses, and are then in both. Nothing keeps the levels' contents equal or apart: what leaves one may stay in the other. A line that was
//! written to is written back when it leaves: to the second level, if that has it, which does not count as a use there; otherwise to
//! memory. So whether an access misses does not depend on what was written.

mod level;
mod linked;
mod ordered;
mod spec;

pub use level::{Level, Touch};
pub use spec::{CacheSpec, LevelSpec};

/// The caches of a run.
#[derive(Clone, Debug)]
pub struct Caches {
    first: Level,
    second: Option<Level>,
    first_shift: u32,
    second_shift: u32,
    traffic: Traffic,
}

/// What an access missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// How many lines the first level did not have.
    pub first: u64,
    /// How many of these the second level did not have, counted as the first level's lines; all, if there is none.
    pub last: u64,
}

/// Lines that moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Lines that accesses touched.
    pub touched: u64,
    /// Lines that were read into the first level.
    pub first: u64,
    /// Lines that were read into the second level.
    pub second: u64,
    /// Lines of the first level that were written back.
    pub first_back: u64,
    /// Lines of the second level that were written back.
    pub second_back: u64,
}

impl Caches {
    /// Empty ones. O(their size).
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

    /// Lines that moved so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Some bytes are read or written. What that missed; nothing if there are no bytes. O(lines).
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

    /// The first level did not have a line. Whether it comes from memory.
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
