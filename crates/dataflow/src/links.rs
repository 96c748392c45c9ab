//! Resolves answers that executions share.

use std::collections::BTreeMap;

use afterimage_wpp::twpp::Series;

use crate::graph::Direction;
use crate::progression::clipped;
use crate::solution::Outcome;
use crate::times::{Merged, Times};

/// Gives each execution without an answer the answer of the nearest execution that has an answer.
/// This is the nearest earlier or later execution, depending on the direction.
///
/// O(log n) for each execution with its own answer, plus O(queried series).
pub(crate) fn resolve(
    direction: Direction,
    asked: &Series,
    own: &BTreeMap<Outcome, Times>,
) -> BTreeMap<Outcome, Times> {
    let known = own
        .iter()
        .flat_map(|(&outcome, times)| times.entries().iter().map(move |&entry| (entry, outcome)));
    let mut known = Merged::of(known).peekable();
    let mut clip = Clip {
        asked,
        at: 0,
        found: BTreeMap::new(),
    };
    match direction {
        // An answer also holds for the executions up to the next different answer.
        Direction::Backward => {
            while let Some((from, outcome)) = known.next() {
                while known.next_if(|&(_, other)| other == outcome).is_some() {}
                let to = known.peek().map_or(u64::MAX, |&(next, _)| next - 1);
                clip.add(outcome, from, to);
            }
        }
        // An answer also holds for the executions after the previous different answer.
        Direction::Forward => {
            let mut from = 0;
            while let Some((mut to, outcome)) = known.next() {
                while let Some((next, _)) = known.next_if(|&(_, other)| other == outcome) {
                    to = next;
                }
                clip.add(outcome, from, to);
                from = to + 1;
            }
        }
    }
    clip.found
}

struct Clip<'a> {
    asked: &'a Series,
    /// The number of the first series that may extend further.
    at: usize,
    found: BTreeMap<Outcome, Times>,
}

impl Clip<'_> {
    /// Adds the queried executions from one time to another. Calls must be in order of time.
    fn add(&mut self, outcome: Outcome, from: u64, to: u64) {
        let times = self.found.entry(outcome).or_default();
        while let Some(&entry) = self.asked.entries().get(self.at) {
            if entry.first > to {
                break;
            }
            if let Some(part) = clipped(entry, from, to) {
                times.add(part);
            }
            if entry.last > to {
                break;
            }
            self.at += 1;
        }
    }
}
