//! Keeps the latest writes of a part of the run, for later questions about the same part.
//!
//! `why` follows a printed byte through copies. Each step searches for the last writers of a few
//! bytes, a little before the previous moment. Without the kept writes, each step would follow the
//! run from the same snapshot again.

use std::collections::VecDeque;

use afterimage_machine::Range;

use super::canvas::{Canvas, Wrote};
use super::writers::Moment;

/// The maximum number of writes, about 16 MB.
const MOST: usize = 1 << 18;

/// A write to memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    /// The time at which the execution with the write begins.
    pub start: u64,
    /// Whether the host wrote during the call at the execution's end.
    pub is_by_call: bool,
    pub range: Range,
    pub wrote: Wrote,
}

/// The latest writes between a snapshot and a moment.
pub(super) struct Latest {
    /// The number of the snapshot, or `None` for the beginning of the run.
    snapshot: Option<usize>,
    moment: Moment,
    writes: VecDeque<Write>,
    /// Whether there were more writes than are kept.
    is_cut: bool,
}

impl Latest {
    /// Creates an empty list, for the part of the run between a snapshot and a moment.
    pub fn new(snapshot: Option<usize>, moment: Moment) -> Self {
        Self {
            snapshot,
            moment,
            writes: VecDeque::new(),
            is_cut: false,
        }
    }

    /// Adds the next write.
    #[inline]
    pub fn push(&mut self, write: Write) {
        if self.writes.len() == MOST {
            self.writes.pop_front();
            self.is_cut = true;
        }
        self.writes.push_back(write);
    }

    /// Finds the last writers between a snapshot and a moment. Returns whether the writes determine
    /// them. Otherwise, the canvas may have some of them.
    pub fn paint(&self, snapshot: Option<usize>, moment: Moment, canvas: &mut Canvas) -> bool {
        if snapshot != self.snapshot || !self.reaches(moment) {
            return false;
        }
        let is_before = |write: &Write| match moment {
            Moment::Start(start) => write.start < start,
            Moment::Call(visit) => {
                write.start < visit.start || write.start == visit.start && !write.is_by_call
            }
        };
        for write in self.writes.iter().rev().filter(|write| is_before(write)) {
            if canvas.under(write.range, write.wrote) && canvas.is_complete() {
                return true;
            }
        }
        !self.is_cut
    }

    /// Whether all writes before a moment were added.
    fn reaches(&self, moment: Moment) -> bool {
        match (moment, self.moment) {
            (Moment::Start(asked), known) => asked <= known.start(),
            (Moment::Call(asked), Moment::Start(known)) => asked.start < known,
            (Moment::Call(asked), Moment::Call(known)) => asked.start <= known.start,
        }
    }
}

#[cfg(test)]
mod tests {
    use afterimage_ids::{EntityRef, NodeId};
    use afterimage_wpp::Visit;

    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        *state >> 33
    }

    fn call(start: u64) -> Moment {
        Moment::Call(Visit {
            start,
            node: NodeId::new(0),
            length: 1,
        })
    }

    /// Returns the last writers by going through all writes.
    fn by_definition(all: &[Write], moment: Moment, range: Range) -> Vec<Option<Wrote>> {
        let mut canvas = Canvas::new(range);
        for write in all {
            let is_before = match moment {
                Moment::Start(start) => write.start < start,
                Moment::Call(visit) => {
                    write.start < visit.start || write.start == visit.start && !write.is_by_call
                }
            };
            if is_before {
                canvas.over(write.range, write.wrote);
            }
        }
        (0..range.length as usize)
            .map(|at| canvas.get(at))
            .collect()
    }

    #[test]
    fn the_latest_writes_determine_the_last_writers_or_say_that_they_do_not() {
        let (mut determined, mut not) = (0, 0);
        for seed in 0..200 {
            let state = &mut (seed + 1);
            let mut all = Vec::new();
            for start in 1..=20 {
                for is_by_call in [false, true] {
                    for inst in 0..random(state) % 3 {
                        let wrote = if is_by_call {
                            Wrote::Host { call: start }
                        } else {
                            let inst = inst as u32;
                            Wrote::Guest { start, inst }
                        };
                        let range = Range {
                            memory: (random(state) % 2) as u32,
                            address: random(state) % 16,
                            length: 1 + random(state) % 4,
                        };
                        all.push(Write {
                            start,
                            is_by_call,
                            range,
                            wrote,
                        });
                    }
                }
            }
            let moment = |state: &mut u64| match (1 + random(state) % 20, random(state) % 2) {
                (start, 0) => Moment::Start(start),
                (start, _) => call(start),
            };
            let mut latest = Latest::new(Some(3), moment(state));
            let until = latest.moment;
            for write in &all {
                let is_last = write.start == until.start() && matches!(until, Moment::Call(_));
                if write.start < until.start() || is_last && !write.is_by_call {
                    latest.push(*write);
                }
            }
            for _ in 0..random(state) % 4 {
                latest.is_cut |= latest.writes.pop_front().is_some();
            }
            for _ in 0..50 {
                let asked = moment(state);
                let range = Range {
                    memory: 0,
                    address: random(state) % 16,
                    length: 1 + random(state) % 4,
                };
                let mut canvas = Canvas::new(range);
                assert!(!latest.paint(Some(2), asked, &mut canvas));
                if latest.paint(Some(3), asked, &mut canvas) {
                    determined += 1;
                    let found = (0..range.length as usize).map(|at| canvas.get(at));
                    let right = by_definition(&all, asked, range);
                    assert_eq!(Vec::from_iter(found), right, "seed {seed}, {asked:?}");
                } else {
                    not += 1;
                }
            }
        }
        assert!(determined > 1000 && not > 1000, "{determined} and {not}");
    }
}
