//! Folds repetitions, so that consecutive iterations of a loop are reported once.

use std::collections::VecDeque;

use afterimage_ids::{FuncId, OpId};

use super::{Link, Step};

/// The longest period, in steps.
const LONGEST: usize = 32;
/// The minimum number of occurrences that form a repetition.
const LEAST: usize = 3;

/// An entry in the report.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A step.
    Step(Step),
    /// A repetition of the preceding steps, further back in time, by the same operators.
    Again {
        /// The number of steps that repeat.
        period: usize,
        /// The number of further repetitions.
        times: u64,
        /// The last of the repeated steps, which is the earliest in time.
        last: Step,
    },
}

/// The key by which steps are compared. It contains the operator that made the value, and the
/// operand that is followed. An end or a cut has no key, and equals no step.
type Key = Option<(FuncId, OpId, Option<usize>)>;

/// Folds steps while keeping only a few of them.
#[derive(Debug, Default)]
pub struct Folder {
    /// Steps that may begin a repetition.
    pending: VecDeque<Step>,
    /// The current repetition.
    again: Option<Again>,
}

#[derive(Debug)]
struct Again {
    keys: Vec<Key>,
    times: u64,
    /// The last step of the repetitions.
    last: Step,
    /// The steps of the incomplete repetition.
    begun: Vec<Step>,
}

impl Folder {
    /// Creates a `Folder` that has received no steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next step. Reports the entries that can no longer belong to a repetition. O(the
    /// square of the longest period).
    pub fn push(&mut self, step: Step, told: &mut Vec<Entry>) {
        if let Some(again) = &mut self.again {
            if key(&step).is_some() && again.keys[again.begun.len()] == key(&step) {
                again.begun.push(step);
                if again.begun.len() == again.keys.len() {
                    again.times += 1;
                    if let Some(last) = again.begun.pop() {
                        again.last = last;
                    }
                    again.begun.clear();
                }
                return;
            }
            self.end(told);
        }
        self.pending.push_back(step);
        if let Some(period) = self.period() {
            // The first occurrence is reported in full.
            let rest = self.pending.len() - LEAST * period;
            told.extend(self.pending.drain(..rest + period).map(Entry::Step));
            let keys = self.pending.iter().take(period).map(key).collect();
            if let Some(last) = self.pending.pop_back() {
                self.again = Some(Again {
                    keys,
                    times: (LEAST - 1) as u64,
                    last,
                    begun: Vec::new(),
                });
            }
            self.pending.clear();
        }
        while self.pending.len() > LEAST * LONGEST {
            told.extend(self.pending.pop_front().map(Entry::Step));
        }
    }

    /// Reports the remaining entries.
    pub fn finish(mut self, told: &mut Vec<Entry>) {
        self.end(told);
        told.extend(self.pending.into_iter().map(Entry::Step));
    }

    fn end(&mut self, told: &mut Vec<Entry>) {
        if let Some(again) = self.again.take() {
            told.push(Entry::Again {
                period: again.keys.len(),
                times: again.times,
                last: again.last,
            });
            self.pending.extend(again.begun);
        }
    }

    /// Returns the shortest period with which the last steps repeat.
    fn period(&self) -> Option<usize> {
        let all = &self.pending;
        let key = |back: usize| key(&all[all.len() - 1 - back]);
        (1..=LONGEST.min(all.len() / LEAST)).find(|&period| {
            (0..(LEAST - 1) * period)
                .all(|back| key(back).is_some() && key(back) == key(back + period))
        })
    }
}

fn key(step: &Step) -> Key {
    match &step.link {
        Link::Made(made) => Some((made.spot.function, made.spot.op, made.followed)),
        Link::End(_) | Link::Cut => None,
    }
}
