//! Which executions of a line changed places, by what they gave.
//!
//! Counting sees how often a part of a line is executed, not in which order. Within one execution of a block an optimiser may exchange what has no effect: a
//! loop that was unrolled computes its rounds in any order. So what is counted is held against what the operators gave: it is confirmed, or put right, or refused.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::error::Error;
use std::ops::Range;

use afterimage_ids::OpId;
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;
use wasmparser::ValType;

use super::{Moments, Part, Trail, Unit};
use crate::steps::{Run, Steps, StepsError, Value, Wanted, What};

/// What an execution of an operator gave: the value that it computed, loaded or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    value: Value,
    /// It is a number that is an address, too. What is at an address of one run may lie elsewhere in the other one.
    may_be_address: bool,
}

/// What was given, by time and operator. What has no value, as a call, is not in it.
pub type AllGiven = HashMap<(u64, OpId), Given>;

/// Linkers put nothing below this address.
const LOWEST: u64 = 1024;

/// What operators gave, by time and operator, ascending. The run is followed from the last checkpoint before the first of them.
///
/// # Errors
/// If the run cannot be followed.
pub fn given_at<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    wanted: &[(u64, OpId)],
) -> Result<AllGiven, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let mut steps = Steps::before(run, log, Wanted::ALL)?;
    let mut found = AllGiven::new();
    let mut rest = wanted;
    let mut skipped = None;
    while let Some(&(time, _)) = rest.first() {
        if skipped != Some(time) {
            steps.follower.skip_to(time)?;
            skipped = Some(time);
        }
        let Some(visit) = steps.follower.next()? else {
            break;
        };
        if visit.last() < time {
            steps.follower.execute(visit, &mut ())?;
            continue;
        }
        steps.execute(visit)?;
        let memory = steps.follower.machine.state.memories.first();
        let size = memory.map_or(0, |memory| memory.bytes.len() as u64);
        let (own, later) = rest.split_at(rest.partition_point(|at| at.0 <= visit.last()));
        for step in steps.taken() {
            let (Some(op), What::Computed(value) | What::Load(_, value) | What::Store(_, value)) =
                (step.op, step.what)
            else {
                continue;
            };
            let at = (step.time, op);
            if own.binary_search(&at).is_ok() {
                let given = Given {
                    value,
                    may_be_address: matches!(value.ty, ValType::I32 | ValType::I64)
                        && (LOWEST..size).contains(&value.bits.0),
                };
                found.insert(at, given);
            }
        }
        rest = later;
    }
    Ok(found)
}

/// Why an execution of the optimised run that was counted is not told after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An operator of the line gave something else than that of the unoptimised run that it was counted to be.
    Differs {
        /// The column.
        column: Option<u32>,
        /// What it gave in the optimised run.
        b: Value,
        /// What in the unoptimised one.
        a: Value,
    },
    /// A block has several operators of that kind, which may have changed places, and what they gave does not tell them apart.
    Alike {
        /// The column.
        column: Option<u32>,
    },
}

/// What became of a pair.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// It is this part of the unoptimised run, and gave the same.
    Confirmed(u32),
    /// It is not told.
    Open,
    Refused(Refusal),
}

/// Which executions correspond, by counting and by what they gave.
#[derive(Debug)]
pub struct Settled<'m> {
    moments: &'m Moments,
    /// What operators gave in the unoptimised run, and in the optimised one.
    given: [AllGiven; 2],
    /// By part of the optimised run, if it does not stay as it was counted.
    outcomes: HashMap<u32, Outcome>,
}

impl Trail {
    /// The parts of the block that executed this one.
    fn block(&self, part: u32) -> Range<u32> {
        let time = self.parts[part as usize].time;
        let first = self.parts.partition_point(|other| other.time < time);
        let own = self.parts[first..].partition_point(|other| other.time == time);
        first as u32..(first + own) as u32
    }

    /// The parts that are executed from a stop on.
    fn parts_of(&self, stop: u32) -> impl Iterator<Item = u32> {
        let first = self.of_stops.partition_point(|entry| entry.0 < stop);
        let own = self.of_stops[first..].iter();
        own.take_while(move |entry| entry.0 == stop)
            .map(|entry| entry.1)
    }

    fn operators(&self, parts: impl Iterator<Item = u32>) -> impl Iterator<Item = &Part> {
        let parts = parts.map(|part| &self.parts[part as usize]);
        parts.filter(|part| is_operator(part.unit) && !part.is_test)
    }
}

fn is_operator(unit: Unit) -> bool {
    matches!(unit, Unit::Operator(..) | Unit::Matched(_))
}

impl Moments {
    /// The parts of some stops of the optimised run.
    pub fn parts_of(&self, stops: Range<u32>) -> BTreeSet<u32> {
        let stops = stops.into_iter();
        stops.flat_map(|stop| self.b.parts_of(stop)).collect()
    }

    /// Of which operators, of the unoptimised run and of the optimised one, it has to be known what they gave to settle these parts of the optimised one. Ascending.
    pub fn to_be_known(&self, parts: &BTreeSet<u32>) -> [Vec<(u64, OpId)>; 2] {
        let mut found = [BTreeSet::new(), BTreeSet::new()];
        for block in self.blocks(parts) {
            for part in block.clone() {
                let Some(other) = self.pairs[part as usize] else {
                    continue;
                };
                let stop = self.a.parts[other as usize].stop;
                let others = self.a.block(other).chain(self.a.parts_of(stop));
                found[0].extend(self.a.operators(others).map(|part| (part.time, part.op)));
            }
            found[1].extend(self.b.operators(block).map(|part| (part.time, part.op)));
        }
        found.map(|found| found.into_iter().collect())
    }

    fn blocks(&self, parts: &BTreeSet<u32>) -> Vec<Range<u32>> {
        let mut blocks: Vec<Range<u32>> = parts.iter().map(|part| self.b.block(*part)).collect();
        blocks.dedup();
        blocks
    }

    /// Holds what was counted of these parts against what [`to_be_known`](Self::to_be_known) operators gave in the unoptimised run and in the optimised one.
    pub fn settled(&self, parts: &BTreeSet<u32>, given: [AllGiven; 2]) -> Settled<'_> {
        let mut settled = Settled {
            moments: self,
            given,
            outcomes: HashMap::new(),
        };
        for block in self.blocks(parts) {
            settled.block(block);
        }
        settled
    }
}

impl Settled<'_> {
    /// Which part of the unoptimised run one of the optimised run is.
    pub fn pair(&self, part: u32) -> Option<u32> {
        match self.outcomes.get(&part) {
            Some(Outcome::Confirmed(other)) => Some(*other),
            Some(Outcome::Open | Outcome::Refused(_)) => None,
            None => self.moments.pairs[part as usize],
        }
    }

    fn refusal(&self, part: u32) -> Option<Refusal> {
        match self.outcomes.get(&part) {
            Some(Outcome::Refused(why)) => Some(*why),
            _ => None,
        }
    }

    fn is_confirmed(&self, part: u32) -> bool {
        matches!(self.outcomes.get(&part), Some(Outcome::Confirmed(_)))
    }

    /// The stop of the unoptimised run that a stop of the optimised one is: the earliest of those at whose parts it stands; if none of its parts is told, the arrival that
    /// corresponds to it. If a part is refused, only what the values confirm is told.
    ///
    /// # Errors
    /// If it is not told; why, if counting tells something that the values do not bear out.
    pub fn counterpart(&self, stop: u32) -> Result<u32, Option<Refusal>> {
        let Moments { a, b, .. } = self.moments;
        let is_arrival = |part: &u32| b.parts[*part as usize].unit == Unit::Arrival;
        let parts = || b.parts_of(stop).filter(|part| !is_arrival(part));
        let refused = parts().find_map(|part| self.refusal(part));
        let found = parts()
            .filter(|part| refused.is_none() || self.is_confirmed(*part))
            .filter_map(|part| Some(a.parts[self.pair(part)? as usize].stop))
            .min();
        if let Some(found) = found {
            return Ok(found);
        }
        if refused.is_some() {
            return Err(refused);
        }
        let arrival = b.parts_of(stop).find(is_arrival).ok_or(None)?;
        let other = self.pair(arrival).ok_or(None)?;
        let counted = a.parts[other as usize].stop;
        let of_a: Vec<&Part> = a.operators(a.parts_of(counted)).collect();
        let of_b: Vec<&Part> = b.operators(b.parts_of(stop)).collect();
        match self.compared(&of_a, &of_b) {
            Compared::Differs(why) => Err(Some(why)),
            Compared::Nothing if self.may_be_exchanged(arrival) => {
                Err(Some(Refusal::Alike { column: None }))
            }
            Compared::Nothing | Compared::Same => Ok(counted),
        }
    }

    /// Whether the block arrives at the line for several blocks of the unoptimised run.
    fn may_be_exchanged(&self, arrival: u32) -> bool {
        let Moments { a, b, .. } = self.moments;
        let block = b.block(arrival);
        let arrivals = block.filter(|part| b.parts[*part as usize].unit == Unit::Arrival);
        let others = arrivals.filter_map(|part| self.pair(part));
        let times: HashSet<u64> = others.map(|other| a.parts[other as usize].time).collect();
        times.len() > 1
    }

    /// Settles the parts that a block executed.
    fn block(&mut self, block: Range<u32>) {
        let b = &self.moments.b;
        let unit = |part: u32| b.parts[part as usize].unit;
        let mut by_unit: Vec<(Unit, u32)> = block.map(|part| (unit(part), part)).collect();
        by_unit.sort_unstable();
        for same in by_unit.chunk_by(|x, y| x.0 == y.0) {
            if is_operator(same[0].0) {
                let parts: Vec<u32> = same.iter().map(|entry| entry.1).collect();
                self.operators(&parts);
            }
        }
        for (unit, part) in &by_unit {
            if let Unit::Column(column) = *unit {
                let inside = by_unit.iter().filter(|(unit, _)| {
                    matches!(unit, Unit::Operator(..)) && unit.column() == Some(column)
                });
                let inside: Vec<u32> = inside.map(|entry| entry.1).collect();
                self.column(*part, &inside);
            }
        }
    }

    /// Settles the operators of a kind in a block: in it they may have changed places, but not with those of other executions of it.
    fn operators(&mut self, parts: &[u32]) {
        let Moments { a, b, pairs } = self.moments;
        let paired = parts
            .iter()
            .map(|part| Some((*part, pairs[*part as usize]?)));
        let Some(paired) = paired.collect::<Option<Vec<(u32, u32)>>>() else {
            return;
        };
        let first = &b.parts[parts[0] as usize];
        let column = first.unit.column();
        let stop = |other: u32| a.parts[other as usize].stop;
        let is_one = paired.iter().all(|pair| stop(pair.1) == stop(paired[0].1));
        let is_test = paired.iter().any(|(part, other)| {
            b.parts[*part as usize].is_test || a.parts[*other as usize].is_test
        });
        let known = paired.iter().map(|(part, other)| {
            let of_b = self.of_b(&b.parts[*part as usize])?;
            Some((of_b, self.of_a(&a.parts[*other as usize])?))
        });
        let known: Option<Vec<(Given, Given)>> = known.collect();
        let known = match known.filter(|_| !is_test) {
            Some(known) => known,
            // What has no value has an effect, and keeps its place.
            None if is_one || !is_test => return,
            None => return self.refuse(parts, Refusal::Alike { column }),
        };
        if is_one {
            let of_a: Vec<&Part> = paired
                .iter()
                .map(|pair| &a.parts[pair.1 as usize])
                .collect();
            let of_b: Vec<&Part> = parts.iter().map(|part| &b.parts[*part as usize]).collect();
            match self.compared(&of_a, &of_b) {
                Compared::Same => self.confirm(&paired),
                Compared::Nothing => {}
                Compared::Differs(why) => self.refuse(parts, why),
            }
            return;
        }
        let Some(shift) = shift(&known) else {
            let differing = known.iter().find(|(b, a)| b.value.bits != a.value.bits);
            if let Some((b, a)) = differing {
                let (b, a) = (b.value, a.value);
                self.refuse(parts, Refusal::Differs { column, b, a });
            }
            return;
        };
        for (at, (part, counted)) in paired.iter().enumerate() {
            let (bits, high) = known[at].0.value.bits;
            let is_its = |given: Given| given.value.bits == (bits.wrapping_sub(shift), high);
            let others = paired.iter().zip(&known);
            let others = others.filter(|(_, (_, given))| is_its(*given));
            let others: Vec<u32> = others.map(|(pair, _)| pair.1).collect();
            let outcome = match others.as_slice() {
                [first, rest @ ..] if rest.iter().all(|other| stop(*other) == stop(*first)) => {
                    let is_counted = others.contains(counted);
                    Outcome::Confirmed(if is_counted { *counted } else { *first })
                }
                _ => Outcome::Refused(Refusal::Alike { column }),
            };
            self.outcomes.insert(*part, outcome);
        }
    }

    /// Settles the code of a column in a block, by the operators in it.
    fn column(&mut self, part: u32, inside: &[u32]) {
        let Moments { a, b, pairs } = self.moments;
        let Some(other) = pairs[part as usize] else {
            return;
        };
        let time = a.parts[other as usize].time;
        if let Some(why) = inside.iter().find_map(|part| self.refusal(*part)) {
            return self.refuse(&[part], why);
        }
        let told = inside
            .iter()
            .filter_map(|part| Some((*part, self.pair(*part)?)));
        let told: Vec<(u32, u32)> = told.collect();
        let mut same = told
            .iter()
            .filter(|(_, other)| a.parts[*other as usize].time == time);
        let outcome = match same.next() {
            Some(_) if told.iter().any(|(part, _)| self.is_confirmed(*part)) => {
                Outcome::Confirmed(other)
            }
            Some(_) => return,
            None if !told.is_empty() => Outcome::Open,
            None => {
                let of_a: Vec<&Part> = a.operators(a.block(other)).collect();
                let of_b: Vec<&Part> = b.operators(inside.iter().copied()).collect();
                match self.compared(&of_a, &of_b) {
                    Compared::Differs(why) => Outcome::Refused(why),
                    Compared::Same => Outcome::Confirmed(other),
                    Compared::Nothing => return,
                }
            }
        };
        self.outcomes.insert(part, outcome);
    }

    fn confirm(&mut self, pairs: &[(u32, u32)]) {
        let confirmed = pairs
            .iter()
            .map(|(part, other)| (*part, Outcome::Confirmed(*other)));
        self.outcomes.extend(confirmed);
    }

    fn refuse(&mut self, parts: &[u32], why: Refusal) {
        let refused = parts.iter().map(|part| (*part, Outcome::Refused(why)));
        self.outcomes.extend(refused);
    }

    fn of_a(&self, part: &Part) -> Option<Given> {
        self.given[0].get(&(part.time, part.op)).copied()
    }

    fn of_b(&self, part: &Part) -> Option<Given> {
        self.given[1].get(&(part.time, part.op)).copied()
    }

    /// Holds what operators gave against each other, kind by kind: both are executed more or less often, but something has to be the same.
    fn compared(&self, of_a: &[&Part], of_b: &[&Part]) -> Compared {
        let mut found = Compared::Nothing;
        let units: BTreeSet<Unit> = of_b.iter().map(|part| part.unit).collect();
        for unit in units {
            let own = |part: &&&Part| part.unit == unit;
            let a = of_a.iter().filter(own).filter_map(|part| self.of_a(part));
            let b = of_b.iter().filter(own).filter_map(|part| self.of_b(part));
            let (a, b): (Vec<Given>, Vec<Given>) = (a.collect(), b.collect());
            let ([first_a, ..], [first_b, ..]) = (a.as_slice(), b.as_slice()) else {
                continue;
            };
            if a.iter()
                .any(|a| b.iter().any(|b| a.value.bits == b.value.bits))
            {
                found = Compared::Same;
            } else if !a.iter().chain(&b).any(|given| given.may_be_address) {
                return Compared::Differs(Refusal::Differs {
                    column: unit.column(),
                    b: first_b.value,
                    a: first_a.value,
                });
            }
        }
        found
    }
}

/// How what was given compares.
enum Compared {
    /// Something is the same.
    Same,
    /// There is nothing to compare but addresses.
    Nothing,
    Differs(Refusal),
}

/// By how much what was given in the optimised run is more than in the unoptimised one, if the same was given but for the order: by nothing, or addresses that lie elsewhere.
fn shift(known: &[(Given, Given)]) -> Option<u64> {
    let mut of_b: Vec<Given> = known.iter().map(|given| given.0).collect();
    let mut of_a: Vec<Given> = known.iter().map(|given| given.1).collect();
    of_b.sort_unstable_by_key(|given| given.value.bits);
    of_a.sort_unstable_by_key(|given| given.value.bits);
    let by = |(b, a): (&Given, &Given)| b.value.bits.0.wrapping_sub(a.value.bits.0);
    let mut both = of_b.iter().zip(&of_a);
    let shift = both.clone().next().map(by)?;
    let are_addresses = || {
        known
            .iter()
            .all(|(b, a)| b.may_be_address && a.may_be_address)
    };
    let is_same = both.all(|(b, a)| by((b, a)) == shift && b.value.bits.1 == a.value.bits.1);
    (is_same && (shift == 0 || are_addresses())).then_some(shift)
}
