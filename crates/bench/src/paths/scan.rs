//! Finds one function's path traces by reading the whole raw trace.

use std::time::{Duration, Instant};

use afterimage_ids::FuncId;
use rustc_hash::FxHashMap;

use super::raw::{ENTER, LEAVE};

/// Finds the path traces of one function. This is the paper's extraction from the uncompacted trace
/// (Zhang and Gupta 2001, Table 4).
pub(crate) struct Scan {
    pub function: FuncId,
    /// For each open activation, whether it belongs to the function.
    open: Vec<bool>,
    /// For each open activation of the function, the blocks that it has executed.
    own: Vec<Vec<u32>>,
    /// Whether the innermost activation belongs to the function.
    inside: bool,
    /// The traces found, with the number of calls that took each.
    pub found: FxHashMap<Vec<u32>, u64>,
    pub time: Duration,
}

impl Scan {
    pub(super) fn new(function: FuncId) -> Self {
        Self {
            function,
            open: Vec::new(),
            own: Vec::new(),
            inside: false,
            found: FxHashMap::default(),
            time: Duration::ZERO,
        }
    }

    pub(super) fn read(&mut self, words: &[u32]) {
        let start = Instant::now();
        for &word in words {
            if word < ENTER {
                if self.inside
                    && let Some(own) = self.own.last_mut()
                {
                    own.push(word);
                }
            } else if word == LEAVE {
                self.leave();
            } else {
                self.inside = word == ENTER + self.function.as_u32();
                self.open.push(self.inside);
                if self.inside {
                    self.own.push(Vec::new());
                }
            }
        }
        self.time += start.elapsed();
    }

    fn leave(&mut self) {
        if self.open.pop() == Some(true)
            && let Some(trace) = self.own.pop()
        {
            *self.found.entry(trace).or_default() += 1;
        }
        self.inside = self.open.last() == Some(&true);
    }

    pub(super) fn finish(&mut self) {
        while !self.open.is_empty() {
            self.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_blocks_are_told_from_those_of_callees_and_of_recursion() {
        let enter = |function: u32| ENTER + function;
        // 7 executes 1, calls 8 and itself, and executes 2. Then it is called again and never
        // returns.
        let words = [
            enter(7),
            1,
            enter(8),
            100,
            LEAVE,
            enter(7),
            1,
            2,
            LEAVE,
            2,
            LEAVE,
            enter(8),
            enter(7),
            1,
            enter(8),
            100,
        ];
        let mut scan = Scan::new(FuncId::from_u32(7));
        for chunk in words.chunks(3) {
            scan.read(chunk);
        }
        scan.finish();
        let mut found: Vec<_> = scan.found.into_iter().collect();
        found.sort();
        assert_eq!(found, [(vec![1], 1), (vec![1, 2], 2)]);
    }
}
