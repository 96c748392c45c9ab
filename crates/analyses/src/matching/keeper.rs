//! Keeps executions of chosen statements while a run is followed.

use afterimage_matching::{Class, mix};
use rustc_hash::FxHashMap;

use super::StatementSite;
use super::take::{Collected, ComparedValue, Take, Taken};

/// A kept execution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// A hash of all values from the beginning of the stretch to this execution.
    pub hash: u64,
    /// The compared value, which is equal in both versions if the statements do the same thing.
    pub compared: u64,
    pub value: u64,
    pub time: u64,
    /// The number of the execution, from 1, counting executions through all calls.
    pub number: u64,
    pub taken: Taken,
}

/// A stretch of a statement's executions, from number `after` + 1 to number `last`. Every
/// `stride`-th execution and the last execution are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The calls through which the statement is executed.
    pub context: u32,
    pub place: StatementSite,
    pub after: u64,
    pub last: u64,
    pub stride: u64,
}

/// A receiver of values that keeps executions of chosen statements.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    /// The watched statements by context and place. For all other contexts, `others` has the
    /// watched statements by place.
    numbers: FxHashMap<(u32, StatementSite), u32>,
    others: FxHashMap<StatementSite, u32>,
    watched: Vec<Watched>,
    /// The number of executions of each place, through any calls.
    executed: Vec<u64>,
    kept: Vec<Vec<Kept>>,
}

/// A statement, when executed through certain calls.
#[derive(Debug)]
struct Watched {
    /// The index of the statement's place.
    place: usize,
    /// The number of executions through these calls.
    count: u64,
    /// The statement's stretches that are kept.
    stretches: Vec<Filling>,
}

/// A stretch while it is filled.
#[derive(Debug)]
struct Filling {
    stretch: Stretch,
    /// The stretch's position among all stretches.
    at: usize,
    /// A hash of the values in the stretch so far.
    hash: u64,
}

impl Watched {
    fn of(place: usize) -> Self {
        Self {
            place,
            count: 0,
            stretches: Vec::new(),
        }
    }
}

impl Keeper {
    pub fn new(stretches: &[Stretch]) -> Self {
        let mut keeper = Self {
            kept: vec![Vec::new(); stretches.len()],
            ..Self::default()
        };
        let watched = &mut keeper.watched;
        for (at, &stretch) in stretches.iter().enumerate() {
            let executed = &mut keeper.executed;
            let other = *keeper.others.entry(stretch.place).or_insert_with(|| {
                watched.push(Watched::of(executed.len()));
                executed.push(0);
                watched.len() as u32 - 1
            });
            let key = (stretch.context, stretch.place);
            let number = *keeper.numbers.entry(key).or_insert_with(|| {
                watched.push(Watched::of(watched[other as usize].place));
                watched.len() as u32 - 1
            });
            watched[number as usize].stretches.push(Filling {
                stretch,
                at,
                hash: 0,
            });
        }
        keeper
    }

    /// Returns the number of the statement at a place, when executed through these calls. It is
    /// `u32::MAX` if its executions are not counted.
    pub fn number_of(&self, context: u32, place: StatementSite) -> u32 {
        let own = self.numbers.get(&(context, place));
        let known = own.or_else(|| self.others.get(&place));
        known.copied().unwrap_or(u32::MAX)
    }

    /// Adds a value that the statement with this number produced.
    pub fn add(&mut self, number: u32, given: ComparedValue, time: u64) {
        let Some(watched) = self.watched.get_mut(number as usize) else {
            return;
        };
        let executed = &mut self.executed[watched.place];
        *executed += 1;
        watched.count += 1;
        let count = watched.count;
        for filling in &mut watched.stretches {
            let stretch = &filling.stretch;
            if count <= stretch.after || count > stretch.last {
                continue;
            }
            filling.hash = mix(filling.hash ^ mix(given.compared));
            if (count - stretch.after).is_multiple_of(stretch.stride) || count == stretch.last {
                self.kept[filling.at].push(Kept {
                    hash: filling.hash,
                    compared: given.compared,
                    value: given.value,
                    time,
                    number: *executed,
                    taken: given.taken,
                });
            }
        }
    }

    pub fn kept(self) -> Vec<Vec<Kept>> {
        self.kept
    }
}

impl Take for Keeper {
    type Kept = ();

    const TAKEN: bool = true;

    fn begin(_: Class) {}

    fn number(&self, context: u32, place: StatementSite) -> u32 {
        self.number_of(context, place)
    }

    fn take(&mut self, statement: &mut Collected<()>, given: ComparedValue, time: u64) {
        self.add(statement.number, given, time);
    }
}

#[cfg(test)]
mod tests {
    use afterimage_ids::{EntityRef, FuncId, OpId};
    use proptest::prelude::*;

    use super::*;

    fn place(at: usize) -> StatementSite {
        StatementSite {
            function: FuncId::from_u32(0),
            op: OpId::new(at),
        }
    }

    fn compared(value: u64) -> ComparedValue {
        ComparedValue {
            compared: value,
            value,
            operands: None,
            taken: Taken::default(),
        }
    }

    proptest! {
        /// Compares the keeper with its definition, for each context and place.
        #[test]
        fn what_is_kept_of_a_stretch_is_what_was_executed_in_it(
            executed in prop::collection::vec((0u32..3, 0usize..3, 0u64..4), 0..60),
            asked in prop::collection::vec((0u32..3, 0usize..3, 0u64..8, 1u64..12, 1u64..4), 0..6),
        ) {
            let stretches = asked.iter().map(|&(context, at, after, more, stride)| Stretch {
                context,
                place: place(at),
                after,
                last: after + more,
                stride,
            });
            let stretches = Vec::from_iter(stretches);
            let mut keeper = Keeper::new(&stretches);
            for (time, &(context, at, value)) in (0..).zip(&executed) {
                let number = keeper.number_of(context, place(at));
                keeper.add(number, compared(value), time);
            }
            for (stretch, kept) in stretches.iter().zip(keeper.kept()) {
                let (mut hash, mut expected) = (0, Vec::new());
                let (mut here, mut anywhere) = (0, 0);
                for (time, &(context, at, value)) in (0u64..).zip(&executed) {
                    if place(at) != stretch.place {
                        continue;
                    }
                    anywhere += 1;
                    if context != stretch.context {
                        continue;
                    }
                    here += 1;
                    if here > stretch.after && here <= stretch.last {
                        hash = mix(hash ^ mix(value));
                        if (here - stretch.after).is_multiple_of(stretch.stride) || here == stretch.last {
                            expected.push((hash, value, time, anywhere));
                        }
                    }
                }
                let kept = kept.iter().map(|kept| (kept.hash, kept.value, kept.time, kept.number));
                prop_assert_eq!(Vec::from_iter(kept), expected);
            }
        }
    }
}
