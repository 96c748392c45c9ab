//! Checks counterparts, which were found by counting, against the values that operators produced.
//!
//! Counting shows how often a part of a line is executed, but not in which order. Within one
//! execution of a block, an optimiser may reorder code that has no effect. For example, an unrolled
//! loop may compute its iterations in any order. So the values that the operators produced confirm,
//! correct or refuse each *counted counterpart*, that is, each counterpart found by counting.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::error::Error;
use std::ops::Range;

use afterimage_ids::OpId;
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;
use wasmparser::ValType;

use super::{Moments, Part, Trail, Unit};
use afterimage_replay::steps::{Run, Steps, StepsError, Value, Wanted, What};

/// The value that an execution of an operator computed, loaded or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorValue {
    value: Value,
    /// Whether the value may be an address. The other run may place the same object at another
    /// address.
    may_be_address: bool,
}

/// The values by time and operator. Excludes operators without a value, such as calls.
pub type OperatorValues = HashMap<(u64, OpId), OperatorValue>;

/// The lowest address at which linkers place data.
const LOWEST: u64 = 1024;

/// Returns the values that some operators produced, by time and operator. `wanted` lists the
/// operators with their times, ascending. Follows the run from the last checkpoint before the first
/// wanted operator.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn operator_values<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    wanted: &[(u64, OpId)],
) -> Result<OperatorValues, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let mut steps = Steps::before(run, log, Wanted::ALL)?;
    let mut found = OperatorValues::new();
    let mut rest = wanted;
    let mut skipped = None;
    while let Some(&(time, _)) = rest.first() {
        if skipped != Some(time) {
            steps.follower.skip_to(time)?;
            skipped = Some(time);
        }
        let Some(visit) = steps.follower.advance()? else {
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
                let given = OperatorValue {
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

fn has_test(trail: &Trail, parts: &[u32]) -> bool {
    parts.iter().any(|part| trail.parts[*part as usize].is_test)
}

/// The reason why a counted counterpart is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An operator of the line did not produce the same value as its counted counterpart in the
    /// unoptimised run.
    Differs {
        /// The column of the operator, if it has one.
        column: Option<u32>,
        /// The value that the optimised run produced.
        b: Value,
        /// The value that the unoptimised run produced.
        a: Value,
    },
    /// Several executions of the operators have the same values and may have been reordered.
    Alike {
        /// The column of the operators, if they have one.
        column: Option<u32>,
    },
}

/// The result of comparing a part with its counted counterpart.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// The part corresponds to this part of the unoptimised run, which produced the same values.
    Confirmed(u32),
    /// The part has no certain counterpart.
    Open,
    Refused(Refusal),
}

/// The correspondence of executions, found by counting and checked by values.
#[derive(Debug)]
pub struct Alignment<'m> {
    moments: &'m Moments,
    /// The values that operators produced, in the unoptimised and in the optimised run.
    given: [OperatorValues; 2],
    /// The outcomes of those parts of the optimised run that the values decided. Counting decides
    /// the other parts.
    outcomes: HashMap<u32, Outcome>,
    /// Times of blocks in the optimised run. The arrivals at the line in one of these blocks belong
    /// to several blocks of the unoptimised run.
    exchanged: HashSet<u64>,
    /// The values that each block of the unoptimised run produced, by time. Cached, because every
    /// column of a block of the optimised run needs them.
    given_by_unit: HashMap<u64, ByUnit>,
    all: ByActivation,
    /// The values at the stops of the unoptimised run that were found by counting, for each block
    /// of the optimised run with several arrivals. The key is the block's time.
    counted: HashMap<u64, Givers>,
}

/// Maps a kind of operator and a value to the first stop at which they occur. The flag is true if
/// they occur at that stop only.
type Givers = HashMap<(Unit, (u64, u64)), (u32, bool)>;

/// The parts other than operators, by unit and activation, ascending.
type ByActivation = HashMap<(Unit, u64), Vec<u32>>;

/// The values that operators produced, by unit and then by time.
type ByUnit = BTreeMap<Unit, Vec<OperatorValue>>;

impl Trail {
    /// Returns the parts of the block that executed this part.
    fn block(&self, part: u32) -> Range<u32> {
        let time = self.parts[part as usize].time;
        let first = self.parts.partition_point(|other| other.time < time);
        let own = self.parts[first..].partition_point(|other| other.time == time);
        first as u32..(first + own) as u32
    }

    /// Returns the parts that belong to a stop.
    fn parts_of(&self, stop: u32) -> impl Iterator<Item = u32> {
        let first = self.of_stops.partition_point(|entry| entry.0 < stop);
        let own = self.of_stops[first..].iter();
        own.take_while(move |entry| entry.0 == stop)
            .map(|entry| entry.1)
    }

    /// Returns the executions of each column and the arrivals, grouped by activation.
    fn by_activation(&self) -> ByActivation {
        let mut found = ByActivation::new();
        for (part, at) in self.parts.iter().zip(0..) {
            if !is_operator(part.unit) {
                let key = (part.unit, part.activation);
                found.entry(key).or_default().push(at);
            }
        }
        found
    }

    /// Returns the parts directly before and after a part, of the same unit and activation.
    fn beside(&self, all: &ByActivation, part: u32) -> impl Iterator<Item = u32> {
        let one = &self.parts[part as usize];
        let own = all.get(&(one.unit, one.activation));
        let own = own.map_or(&[][..], Vec::as_slice);
        let at = own.partition_point(|other| *other < part);
        let before = at.checked_sub(1).and_then(|before| own.get(before));
        before.into_iter().chain(own.get(at + 1)).copied()
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
    /// Returns the parts that belong to these stops of the optimised run.
    pub fn parts_of(&self, stops: Range<u32>) -> BTreeSet<u32> {
        let stops = stops.into_iter();
        stops.flat_map(|stop| self.b.parts_of(stop)).collect()
    }

    /// Returns the operators whose values are needed to confirm the counterparts of these parts of
    /// the optimised run. The first list is for the unoptimised run and the second for the
    /// optimised run. Both are ascending.
    pub fn to_be_known(&self, parts: &BTreeSet<u32>) -> [Vec<(u64, OpId)>; 2] {
        let blocks = self.blocks(parts);
        let of_b: BTreeSet<u32> = blocks.into_iter().flatten().collect();
        let paired = of_b.iter().filter_map(|part| self.pairs[*part as usize]);
        let mut others: BTreeSet<u32> = paired.collect();
        // A value decides nothing if the part's neighbours have the same value.
        let all = self.a.by_activation();
        let beside = others.iter().flat_map(|part| self.a.beside(&all, *part));
        let beside = Vec::from_iter(beside);
        others.extend(beside);
        let stops = others.iter().map(|part| self.a.parts[*part as usize].stop);
        let stops: BTreeSet<u32> = stops.collect();
        let mut of_a: BTreeSet<u32> = blocks_of(&self.a, &others).into_iter().flatten().collect();
        of_a.extend(stops.iter().flat_map(|stop| self.a.parts_of(*stop)));
        [(&self.a, of_a), (&self.b, of_b)].map(|(trail, parts)| {
            let operators = trail.operators(parts.into_iter());
            let found: BTreeSet<_> = operators.map(|part| (part.time, part.op)).collect();
            found.into_iter().collect()
        })
    }

    fn blocks(&self, parts: &BTreeSet<u32>) -> Vec<Range<u32>> {
        blocks_of(&self.b, parts)
    }

    /// Checks the counted counterparts of `parts` against the values of the operators from
    /// [`to_be_known`](Self::to_be_known), in the unoptimised and in the optimised run. O(n log n)
    /// in these operators.
    pub fn confirmed(&self, parts: &BTreeSet<u32>, given: [OperatorValues; 2]) -> Alignment<'_> {
        let mut settled = Alignment {
            moments: self,
            given,
            outcomes: HashMap::new(),
            exchanged: HashSet::new(),
            given_by_unit: HashMap::new(),
            all: self.a.by_activation(),
            counted: HashMap::new(),
        };
        for block in self.blocks(parts) {
            settled.block(block);
        }
        settled
    }
}

/// Returns the blocks that contain these parts, ascending.
fn blocks_of(trail: &Trail, parts: &BTreeSet<u32>) -> Vec<Range<u32>> {
    let mut blocks: Vec<Range<u32>> = Vec::new();
    for &part in parts {
        if blocks.last().is_none_or(|last| last.end <= part) {
            blocks.push(trail.block(part));
        }
    }
    blocks
}

impl Alignment<'_> {
    /// Returns the part of the unoptimised run that corresponds to a part of the optimised run.
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

    /// Returns the counterpart of a stop of the optimised run. The stop's parts must be among the
    /// parts passed to `Moments::confirmed`.
    ///
    /// The counterpart is the earliest stop among the counterparts of the parts of `stop`. If no
    /// part has a counterpart, it is the arrival that corresponds to `stop`. If a part is refused,
    /// only counterparts confirmed by values count.
    ///
    /// # Errors
    /// Returns an error if the stop has no counterpart. The error contains a reason if the values
    /// refuse the counted counterpart.
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
        let of_stop = |part: u32| {
            let stop = a.parts[part as usize].stop;
            by_unit(a, &self.given[0], a.parts_of(stop))
        };
        let of_a = of_stop(other);
        let of_b = by_unit(b, &self.given[1], b.parts_of(stop));
        let own: Vec<u32> = parts().collect();
        let time = b.parts[arrival as usize].time;
        match compared(&of_a, &of_b) {
            Compared::Differs(why) => Err(Some(why)),
            Compared::Nothing if self.exchanged.contains(&time) => {
                Err(Some(Refusal::Alike { column: None }))
            }
            Compared::Nothing if !of_b.is_empty() || has_test(b, &own) => Err(None),
            Compared::Nothing => Ok(counted),
            Compared::Same => {
                let mut beside = a.beside(&self.all, other);
                let is_alone = |givers: &Givers| {
                    let gave = of_b
                        .iter()
                        .flat_map(|(unit, all)| all.iter().map(|given| (*unit, given.value.bits)));
                    gave.filter_map(|gave| givers.get(&gave))
                        .any(|giver| *giver == (counted, true))
                };
                let is_told = self.counted.get(&time).is_none_or(is_alone)
                    && !beside.any(|part| is_same(&of_stop(part), &of_b));
                if is_told {
                    Ok(counted)
                } else {
                    Err(Some(Refusal::Alike { column: None }))
                }
            }
        }
    }

    /// Decides the counterparts of the parts that a block executed.
    fn block(&mut self, block: Range<u32>) {
        let Moments { a, b, pairs } = self.moments;
        let unit = |part: u32| b.parts[part as usize].unit;
        let mut by_unit: Vec<(Unit, u32)> = block.map(|part| (unit(part), part)).collect();
        by_unit.sort_unstable();
        let arrivals = by_unit.iter().filter(|entry| entry.0 == Unit::Arrival);
        let others = arrivals.filter_map(|(_, part)| pairs[*part as usize]);
        let others = Vec::from_iter(others);
        let mut times = others.iter().map(|other| a.parts[*other as usize].time);
        if let Some(first) = times.next()
            && times.any(|time| time != first)
        {
            self.exchanged.extend(
                by_unit
                    .first()
                    .map(|(_, part)| b.parts[*part as usize].time),
            );
        }
        if let ([_, _, ..], Some((_, part))) = (&others[..], by_unit.first()) {
            let mut givers = Givers::new();
            let stops = others.iter().map(|other| a.parts[*other as usize].stop);
            for stop in stops.collect::<BTreeSet<u32>>() {
                for part in a.operators(a.parts_of(stop)) {
                    if let Some(given) = self.of_a(part) {
                        let giver = givers.entry((part.unit, given.value.bits));
                        let giver = giver.or_insert((stop, true));
                        giver.1 &= giver.0 == stop;
                    }
                }
            }
            let time = b.parts[*part as usize].time;
            self.counted.insert(time, givers);
        }
        for same in by_unit.chunk_by(|x, y| x.0 == y.0) {
            if is_operator(same[0].0) {
                let parts: Vec<u32> = same.iter().map(|entry| entry.1).collect();
                self.operators(&parts);
            }
        }
        for (unit, part) in &by_unit {
            if let Unit::Column(column) = *unit {
                let operators = [0, u32::MAX].map(|name| Unit::Operator(column, name));
                let first = by_unit.partition_point(|entry| entry.0 < operators[0]);
                let end = by_unit.partition_point(|entry| entry.0 <= operators[1]);
                let inside = by_unit[first..end].iter().map(|entry| entry.1);
                self.column(*part, &Vec::from_iter(inside));
            }
        }
    }

    /// Decides the counterparts of a block's operators of one kind. The operators may have been
    /// reordered within the block, but not across its executions.
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
        let known: Option<Vec<(OperatorValue, OperatorValue)>> = known.collect();
        let known = match known.filter(|_| !is_test) {
            Some(known) => known,
            // An operator without a value has an effect, so optimisers do not move it.
            None if is_one || !is_test => return,
            None => return self.refuse(parts, Refusal::Alike { column }),
        };
        if is_one {
            let (of_b, of_a): (Vec<OperatorValue>, Vec<OperatorValue>) = known.into_iter().unzip();
            match of_kind(first.unit, &of_a, &of_b) {
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
        // For each value in the unoptimised run, the first part with this value, and whether all
        // executions with it belong to one stop.
        let mut giving: HashMap<(u64, u64), (u32, bool)> = HashMap::new();
        for ((_, other), (_, given)) in paired.iter().zip(&known) {
            let entry = giving.entry(given.value.bits).or_insert((*other, true));
            entry.1 &= stop(*other) == stop(entry.0);
        }
        for ((part, counted), (given, of_counted)) in paired.iter().zip(&known) {
            let (bits, high) = given.value.bits;
            let its = (bits.wrapping_sub(shift), high);
            let outcome = match giving.get(&its) {
                Some((_, true)) if of_counted.value.bits == its => Outcome::Confirmed(*counted),
                Some((first, true)) => Outcome::Confirmed(*first),
                Some((_, false)) | None => Outcome::Refused(Refusal::Alike { column }),
            };
            self.outcomes.insert(*part, outcome);
        }
    }

    /// Decides the counterpart of the code that a block contains for a source column, using the
    /// operators in that code.
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
                let of_b = by_unit(b, &self.given[1], inside.iter().copied());
                let beside = Vec::from_iter(a.beside(&self.all, other));
                let mut of_a = |part: u32| {
                    let of_a = self.given_by_unit.entry(a.parts[part as usize].time);
                    let given = &self.given[0];
                    compared(
                        of_a.or_insert_with(|| by_unit(a, given, a.block(part))),
                        &of_b,
                    )
                };
                match of_a(other) {
                    Compared::Differs(why) => Outcome::Refused(why),
                    Compared::Same => {
                        let mut same = beside.into_iter().map(of_a);
                        if same.any(|found| matches!(found, Compared::Same)) {
                            Outcome::Refused(Refusal::Alike {
                                column: b.parts[part as usize].unit.column(),
                            })
                        } else {
                            Outcome::Confirmed(other)
                        }
                    }
                    // Compilers add tests and remove others. An operator without a counterpart
                    // proves nothing. So equal counts prove nothing either.
                    Compared::Nothing if !of_b.is_empty() || has_test(b, inside) => Outcome::Open,
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

    fn of_a(&self, part: &Part) -> Option<OperatorValue> {
        self.given[0].get(&(part.time, part.op)).copied()
    }

    fn of_b(&self, part: &Part) -> Option<OperatorValue> {
        self.given[1].get(&(part.time, part.op)).copied()
    }
}

/// Returns the values of the parts that are operators but not tests.
fn by_unit(trail: &Trail, given: &OperatorValues, parts: impl Iterator<Item = u32>) -> ByUnit {
    let mut found = ByUnit::new();
    for part in trail.operators(parts) {
        if let Some(given) = given.get(&(part.time, part.op)) {
            found.entry(part.unit).or_default().push(*given);
        }
    }
    found
}

/// Compares the values of operators, kind by kind. The runs may execute the operators different
/// numbers of times, but for each kind, at least one value must be the same.
fn compared(of_a: &ByUnit, of_b: &ByUnit) -> Compared {
    let mut found = Compared::Nothing;
    for (unit, of_b) in of_b {
        let of_a = of_a.get(unit).map_or(&[][..], Vec::as_slice);
        match of_kind(*unit, of_a, of_b) {
            Compared::Same => found = Compared::Same,
            Compared::Nothing => {}
            differs @ Compared::Differs(_) => return differs,
        }
    }
    found
}

fn is_same(of_a: &ByUnit, of_b: &ByUnit) -> bool {
    matches!(compared(of_a, of_b), Compared::Same)
}

/// Compares the values of operators of one kind.
fn of_kind(unit: Unit, of_a: &[OperatorValue], of_b: &[OperatorValue]) -> Compared {
    let ([first_a, ..], [first_b, ..]) = (of_a, of_b) else {
        return Compared::Nothing;
    };
    let known: HashSet<(u64, u64)> = of_a.iter().map(|given| given.value.bits).collect();
    if of_b.iter().any(|given| known.contains(&given.value.bits)) {
        return Compared::Same;
    }
    if of_a.iter().chain(of_b).any(|given| given.may_be_address) {
        return Compared::Nothing;
    }
    Compared::Differs(Refusal::Differs {
        column: unit.column(),
        b: first_b.value,
        a: first_a.value,
    })
}

enum Compared {
    /// At least one value is the same.
    Same,
    /// No values could be compared, or the values differ and some may be addresses.
    Nothing,
    Differs(Refusal),
}

/// Returns the distance between the values of the two runs, if the values are the same apart from
/// their order. The distance is 0, except for addresses of moved objects.
fn shift(known: &[(OperatorValue, OperatorValue)]) -> Option<u64> {
    let mut of_b: Vec<OperatorValue> = known.iter().map(|given| given.0).collect();
    let mut of_a: Vec<OperatorValue> = known.iter().map(|given| given.1).collect();
    of_b.sort_unstable_by_key(|given| given.value.bits);
    of_a.sort_unstable_by_key(|given| given.value.bits);
    let by = |(b, a): (&OperatorValue, &OperatorValue)| b.value.bits.0.wrapping_sub(a.value.bits.0);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::currency::{Stop, align};

    fn value(bits: u64, may_be_address: bool) -> OperatorValue {
        let value = Value {
            ty: ValType::I32,
            bits: (bits, 0),
        };
        OperatorValue {
            value,
            may_be_address,
        }
    }

    /// Builds a run that executes a line's operators in a single block. `columns` gives the number
    /// of operators for each column, in this order. With `each_a_stop`, each operator has its own
    /// stop.
    fn block(columns: &[u32], each_a_stop: bool) -> Trail {
        let mut trail = Trail::default();
        let mut seen = HashSet::new();
        for (at, &column) in (0..).zip(columns) {
            let op = OpId::from_u32(at);
            let mut units = Vec::new();
            if each_a_stop || at == 0 {
                let function = afterimage_ids::FuncId::from_u32(0);
                trail.stops.push(Stop {
                    time: 1,
                    op,
                    function,
                    entered: 0,
                });
                units.push(Unit::Arrival);
            }
            units.push(Unit::Operator(column, 0));
            if seen.insert(column) {
                units.push(Unit::Column(column));
            }
            let stop = trail.stops.len() as u32 - 1;
            for unit in units {
                trail.of_stops.push((stop, trail.parts.len() as u32));
                let part = Part {
                    unit,
                    segment: 0,
                    activation: 0,
                    stop,
                    time: 1,
                    op,
                    is_test: false,
                };
                trail.parts.push(part);
            }
        }
        trail
    }

    /// Returns values for `count` operators, by operator number.
    fn gave(count: u32, given: impl Fn(u32) -> OperatorValue) -> OperatorValues {
        (0..count)
            .map(|at| ((1, OpId::from_u32(at)), given(at)))
            .collect()
    }

    /// Tests a block with all operators of a line, as in an unrolled loop or a line with many
    /// statements. Either each operator has its own arrival, or all share one.
    #[test]
    fn a_long_block_takes_time_in_proportion() {
        const COUNT: u32 = 60_000;
        let one = vec![0; COUNT as usize];
        let each = Vec::from_iter(0..COUNT);
        for (columns, each_a_stop, confirmed) in [
            (&one, true, COUNT),
            (&one, false, COUNT),
            (&each, true, 2 * COUNT),
            (&each, false, 2 * COUNT),
        ] {
            let a = block(columns, each_a_stop);
            let b = a.clone();
            let pairs = align(&a, &b);
            let moments = Moments { a, b, pairs };
            let stops = moments.b.stops.len() as u32;
            let parts = moments.parts_of(0..stops);
            let all = Vec::from_iter((0..COUNT).map(|at| (1, OpId::from_u32(at))));
            assert_eq!(moments.to_be_known(&parts), [all.clone(), all]);
            let same = || gave(COUNT, |at| value(u64::from(at), false));
            let settled = moments.confirmed(&parts, [same(), same()]);
            for stop in 0..stops {
                assert_eq!(settled.counterpart(stop), Ok(stop));
            }
            let found = parts.iter().filter(|part| settled.is_confirmed(**part));
            assert_eq!(
                found.count() as u32,
                confirmed + u32::from(confirmed == COUNT)
            );
        }
    }

    /// Builds an unrolled loop in which one run executes one more operator. Only the arrivals can
    /// be counted, and an optimiser may reverse their order.
    fn unrolled(rounds: u32) -> Moments {
        let b = block(&vec![0; rounds as usize], true);
        let mut a = b.clone();
        let more = Part {
            unit: Unit::Operator(0, 0),
            op: OpId::from_u32(rounds),
            ..a.parts[0]
        };
        a.of_stops.insert(3, (0, a.parts.len() as u32));
        a.parts.push(more);
        let pairs = align(&a, &b);
        Moments { a, b, pairs }
    }

    #[test]
    fn many_arrivals_in_a_block_take_time_in_proportion() {
        const COUNT: u32 = 60_000;
        let moments = unrolled(COUNT);
        let parts = moments.parts_of(0..COUNT);
        for (modulus, told) in [(COUNT + 1, true), (2, false)] {
            let same = |count| gave(count, |at| value(u64::from(at % modulus), false));
            let settled = moments.confirmed(&parts, [same(COUNT + 1), same(COUNT)]);
            for stop in 1..COUNT {
                assert_eq!(settled.counterpart(stop).is_ok(), told, "{stop}");
            }
        }
    }

    #[test]
    fn what_several_arrivals_gave_tells_none_of_them() {
        let moments = unrolled(3);
        let parts = moments.parts_of(0..3);
        let apart = |at: u32| value(u64::from(at), false);
        let settled = moments.confirmed(&parts, [gave(4, apart), gave(3, apart)]);
        assert_eq!(settled.counterpart(1), Ok(1));
        assert_eq!(settled.counterpart(2), Ok(2));
        let alike = |_| value(7, false);
        let settled = moments.confirmed(&parts, [gave(4, alike), gave(3, alike)]);
        let refused = Err(Some(Refusal::Alike { column: None }));
        assert_eq!(settled.counterpart(1), refused);
        assert_eq!(settled.counterpart(2), refused);
    }
}
