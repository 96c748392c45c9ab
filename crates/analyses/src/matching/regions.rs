//! Finds corresponding stretches of two runs.

use std::collections::HashSet;
use std::ops::Range;

use afterimage_ids::{FuncId, OpId};
use afterimage_matching::{Class, Instance, Region, Version};
use afterimage_wpp::Segments;
use rustc_hash::FxHashMap;

use super::StatementSite;
use super::batches::follow_taking;
use super::collect::Sketched;
use super::diverge::OpenLog;
use super::take::{Collected, ComparedValue, Take};
use afterimage_replay::steps::{Run, StepsError};

/// The minimum number of executions in a stretch of the second version. A stretch ends at the first
/// anchor after this number.
const SHORTEST: usize = 24;
/// A stretch of the second version ends without an anchor when it has more executions than this.
const LONGEST: usize = 300;
/// The number of the first version's executions to keep before a stretch's first anchor and after
/// its last anchor.
const ROOM: usize = 48;
/// When this many executions of the first version are in no stretch, the older ones are removed.
const FORGET: usize = 4 * ROOM;
/// The maximum number of executions in the counterpart of a stretch after its first anchor.
const FIRST: usize = 3000;
/// No stretch is added once a quarter of this number of the second version's executions is kept.
const KEPT: usize = 1 << 24;

/// A stretch of the second run.
#[derive(Debug)]
struct Stretch {
    /// The anchors at the stretch's beginning and end, each with the number of its execution. `to`
    /// is `None` if the stretch ended because it was too long.
    from: (u32, u64),
    to: Option<(u32, u64)>,
    /// The stretch's range in the kept executions.
    executed: Range<usize>,
}

/// The counterpart of a stretch in the first run.
#[derive(Debug)]
struct Counterpart {
    stretch: usize,
    /// The counterpart's range in the kept executions.
    executed: Range<usize>,
    /// The range of executions that certainly belong to the counterpart.
    sure: Range<usize>,
}

/// Corresponding stretches of both runs. An execution that is in several stretches is stored once.
#[derive(Debug)]
pub(super) struct Regions {
    a: Vec<Instance>,
    b: Vec<Instance>,
    stretches: Vec<Stretch>,
    /// The counterparts, in the order of the stretches.
    found: Vec<Counterpart>,
}

impl Regions {
    /// Iterates over the stretches, each with its executions in both runs.
    pub fn all(&self) -> impl Iterator<Item = Region<'_>> {
        self.found.iter().map(|found| Region {
            a: &self.a[found.executed.clone()],
            b: &self.b[self.stretches[found.stretch].executed.clone()],
            first: found.sure.start - found.executed.start,
            last: found.sure.end - found.executed.start,
        })
    }
}

/// Converts an execution to the form used for comparison.
fn instance(statement: &Collected<()>, number: u32, given: ComparedValue) -> Instance {
    Instance {
        statement: number,
        value: given.operands.unwrap_or(given.compared),
        address: statement.address,
    }
}

/// Chooses stretches of the second run. They contain the first executions of each statement, and
/// later executions with decreasing frequency.
struct Chooser {
    numbers: FxHashMap<(u32, OpId), u32>,
    /// For each statement, its anchor.
    anchor: Vec<u32>,
    executed: Vec<u64>,
    wanted: Vec<bool>,
    /// The executions of the finished stretches and then of the current stretch.
    all: Vec<Instance>,
    /// The start of the current stretch.
    current: usize,
    from: Option<(u32, u64)>,
    /// Whether the current stretch has a wanted execution.
    keep: bool,
    stretches: Vec<Stretch>,
}

/// Whether the k-th execution of a statement is wanted. The wanted executions are 1, 2, 3, 4, 6, 8,
/// 12, 16, …
fn is_wanted(k: u64) -> bool {
    k < 4 || k.is_power_of_two() || (k.is_multiple_of(3) && (k / 3).is_power_of_two())
}

impl Chooser {
    /// Ends the current stretch, at an anchor or because it is too long.
    fn end(&mut self, to: Option<(u32, u64)>) {
        match self.from {
            Some(from) if self.keep && self.current < KEPT / 4 => {
                self.stretches.push(Stretch {
                    from,
                    to,
                    executed: self.current..self.all.len(),
                });
            }
            _ => self.all.truncate(self.current),
        }
        self.current = self.all.len();
        self.keep = false;
        self.from = to;
    }
}

impl Take for Chooser {
    type Kept = ();

    fn begin(_: Class) {}

    fn number(&self, context: u32, place: StatementSite) -> u32 {
        let known = self.numbers.get(&(context, place.op));
        known.copied().unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn take(&mut self, statement: &mut Collected<()>, given: ComparedValue, _: u64) {
        let number = statement.number;
        let Some(executed) = self.executed.get_mut(number as usize) else {
            return;
        };
        *executed += 1;
        let k = *executed;
        self.keep |= is_wanted(k) && self.wanted[number as usize];
        self.all.push(instance(statement, number, given));
        let anchor = self.anchor[number as usize];
        let length = self.all.len() - self.current;
        if anchor != u32::MAX && (length >= SHORTEST || self.from.is_none()) {
            self.end(Some((anchor, k)));
        }
        if self.all.len() - self.current > LONGEST {
            self.end(None);
        }
    }

    #[inline(always)]
    fn access(&mut self, statement: &mut Collected<()>, address: u64) {
        statement.address = address;
    }
}

/// A stretch of the first run that has begun but is not complete.
struct Open {
    found: Counterpart,
    /// Whether the stretch has reached its last anchor.
    ended: bool,
    /// The length of the list of executions at which the stretch is full.
    full: usize,
}

/// Finds the counterparts of stretches in the first run.
struct Finder {
    numbers: FxHashMap<(u32, OpId), u32>,
    anchor: Vec<u32>,
    executed: Vec<u64>,
    /// The executions of the stretches, followed by the latest executions.
    all: Vec<Instance>,
    /// The number of executions in `all` that belong to stretches.
    kept: usize,
    begins: FxHashMap<(u32, u64), Vec<usize>>,
    ends: Vec<Option<(u32, u64)>>,
    /// The number of executions of each anchor.
    passed: Vec<u64>,
    open: Vec<Open>,
    found: Vec<Counterpart>,
}

impl Take for Finder {
    type Kept = ();

    fn begin(_: Class) {}

    fn number(&self, context: u32, place: StatementSite) -> u32 {
        let known = self.numbers.get(&(context, place.op));
        known.copied().unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn take(&mut self, statement: &mut Collected<()>, given: ComparedValue, _: u64) {
        let number = statement.number;
        let Some(executed) = self.executed.get_mut(number as usize) else {
            return;
        };
        *executed += 1;
        let k = *executed;
        if self.open.is_empty() {
            self.forget();
        }
        self.all.push(instance(statement, number, given));
        if !self.open.is_empty() {
            self.close();
        }
        let anchor = self.anchor[number as usize];
        if anchor != u32::MAX {
            self.pass(anchor, k);
        }
    }

    #[inline(always)]
    fn access(&mut self, statement: &mut Collected<()>, address: u64) {
        statement.address = address;
    }
}

impl Finder {
    /// Forgets executions that are in no stretch and that no stretch will need.
    fn forget(&mut self) {
        let recent = self.all.len() - self.kept;
        if recent >= FORGET {
            let last = self.all.len() - ROOM;
            self.all.copy_within(last.., self.kept);
            self.all.truncate(self.kept + ROOM);
        }
    }

    /// Ends the stretches that are full.
    fn close(&mut self) {
        let length = self.all.len();
        let full = |open: &mut Open| open.full <= length;
        for open in self.open.extract_if(.., full) {
            self.found.push(open.end(length));
            self.kept = length;
        }
    }

    fn pass(&mut self, anchor: u32, k: u64) {
        self.passed[anchor as usize] = k;
        let length = self.all.len();
        for open in &mut self.open {
            if !open.ended && self.ends[open.found.stretch] == Some((anchor, k)) {
                open.ended = true;
                open.found.sure.end = length;
                open.full = open.full.min(length + ROOM);
            }
        }
        for stretch in self.begins.remove(&(anchor, k)).unwrap_or_default() {
            let over = self.ends[stretch].is_some_and(|(end, k)| self.passed[end as usize] >= k);
            self.open.push(Open {
                found: Counterpart {
                    stretch,
                    executed: length.saturating_sub(ROOM)..length,
                    sure: length - 1..length,
                },
                ended: over,
                full: length + if over { ROOM } else { FIRST },
            });
        }
    }
}

impl Finder {
    /// Returns the result once the first run has ended. `b` contains the executions of the second
    /// run.
    fn regions(mut self, b: Vec<Instance>, stretches: Vec<Stretch>) -> Regions {
        let length = self.all.len();
        let open = self.open.drain(..).map(|open| open.end(length));
        self.found.extend(open);
        self.found.sort_unstable_by_key(|found| found.stretch);
        Regions {
            a: self.all,
            b,
            stretches,
            found: self.found,
        }
    }
}

impl Open {
    /// Returns the counterpart, cut at `length` executions.
    fn end(self, length: usize) -> Counterpart {
        let mut found = self.found;
        found.executed.end = length;
        if !self.ended {
            found.sure.end = length;
        }
        found
    }
}

fn anchor_of(version: &Version, anchors: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut of = vec![u32::MAX; version.statements.len()];
    for (anchor, statement) in (0..).zip(anchors) {
        if of[statement as usize] == u32::MAX {
            of[statement as usize] = anchor;
        }
    }
    of
}

/// Follows both runs again and keeps corresponding stretches between anchors. In functions that do
/// not stand alone, the first version's statements are separated by the calls around them.
///
/// # Errors
/// Returns an error if a run cannot be followed.
pub(super) fn regions<S: Segments>(
    versions: [&Sketched; 2],
    standing: Option<&HashSet<FuncId>>,
    anchors: &[(u32, u32)],
    wanted: Vec<bool>,
    runs: [(Run<'_, S>, OpenLog<'_>); 2],
) -> Result<Regions, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    // A statement of the first version may be the counterpart of several statements, so each anchor
    // uses a statement of its own.
    let mut taken = HashSet::new();
    let anchors: Vec<(u32, u32)> = anchors
        .iter()
        .copied()
        .filter(|(a, _)| taken.insert(*a))
        .collect();
    let open = |log: OpenLog<'_>| log().map_err(afterimage_machine::MachineError::from);
    let [of_a, of_b] = versions;
    let chooser = Chooser {
        numbers: of_b.numbers.clone(),
        anchor: anchor_of(&of_b.version, anchors.iter().map(|pair| pair.1)),
        executed: vec![0; of_b.places.len()],
        wanted,
        all: Vec::new(),
        current: 0,
        from: None,
        keep: false,
        stretches: Vec::new(),
    };
    let mut chooser = follow_taking(runs[1].0, open(runs[1].1)?, chooser, None)?
        .listener
        .taker;
    chooser.all.truncate(chooser.current);
    let stretches = chooser.stretches;
    let mut begins: FxHashMap<(u32, u64), Vec<usize>> = FxHashMap::default();
    for (at, stretch) in stretches.iter().enumerate() {
        begins.entry(stretch.from).or_default().push(at);
    }
    let finder = Finder {
        numbers: of_a.numbers.clone(),
        anchor: anchor_of(&of_a.version, anchors.iter().map(|pair| pair.0)),
        executed: vec![0; of_a.places.len()],
        all: Vec::new(),
        kept: 0,
        begins,
        ends: stretches.iter().map(|stretch| stretch.to).collect(),
        passed: vec![0; anchors.len()],
        open: Vec::new(),
        found: Vec::new(),
    };
    let finder = follow_taking(runs[0].0, open(runs[0].1)?, finder, standing)?
        .listener
        .taker;
    Ok(finder.regions(chooser.all, stretches))
}

#[cfg(test)]
mod tests {
    use afterimage_ids::{EntityRef, FuncId};
    use proptest::prelude::*;

    use super::*;
    use crate::matching::take::Taken;

    /// The number of statements. The first two are anchors.
    const STATEMENTS: u32 = 4;

    /// An anchor, and the number of one of its executions.
    type At = (u32, u64);

    fn finder(stretches: &[(At, Option<At>)]) -> Finder {
        let mut begins: FxHashMap<At, Vec<usize>> = FxHashMap::default();
        for (at, (from, _)) in stretches.iter().enumerate() {
            begins.entry(*from).or_default().push(at);
        }
        Finder {
            numbers: FxHashMap::default(),
            anchor: vec![0, 1, u32::MAX, u32::MAX],
            executed: vec![0; STATEMENTS as usize],
            all: Vec::new(),
            kept: 0,
            begins,
            ends: stretches.iter().map(|stretch| stretch.1).collect(),
            passed: vec![0; 2],
            open: Vec::new(),
            found: Vec::new(),
        }
    }

    proptest! {
        /// Compares each stretch with its definition, by positions in the whole run. Executions
        /// carry numbers, so their origins are known.
        #[test]
        fn what_corresponds_to_a_stretch_is_found(
            part in prop::collection::vec(0..STATEMENTS, 1..400),
            times in 1usize..20,
            stretches in prop::collection::vec(((0u32..2, 1u64..60), prop::option::of((0u32..2, 1u64..90))), 0..12),
        ) {
            let run = Vec::from_iter(std::iter::repeat_n(&part, times).flatten().copied());
            let mut finder = finder(&stretches);
            for (at, &statement) in run.iter().enumerate() {
                let place = StatementSite { function: FuncId::new(0), op: OpId::new(0) };
                let mut executed = Collected::new(place, 0, statement, ());
                let given = ComparedValue { compared: at as u64, value: 0, operands: None, taken: Taken::default() };
                finder.take(&mut executed, given, 0);
            }
            let regions = finder.regions(Vec::new(), Vec::new());
            let found = regions.found.iter().map(|found| {
                let positions = regions.a[found.executed.clone()].iter().map(|here| here.value as usize);
                let sure = found.sure.start - found.executed.start..found.sure.end - found.executed.start;
                (found.stretch, Vec::from_iter(positions), sure)
            });

            let position = |(statement, k): (u32, u64)| {
                let mut of = (0..run.len()).filter(|&at| run[at] == statement);
                of.nth(k as usize - 1)
            };
            let expected = stretches.iter().enumerate().filter_map(|(stretch, &(from, to))| {
                let first = position(from)?;
                let (mut end, mut sure) = (first + 1 + FIRST, None);
                if let Some(last) = to.and_then(position) {
                    if last <= first {
                        (end, sure) = (first + 1 + ROOM, Some(first + 1));
                    } else if last + 1 < end {
                        (end, sure) = (end.min(last + 1 + ROOM), Some(last + 1));
                    }
                }
                let end = end.min(run.len());
                let begin = (first + 1).saturating_sub(ROOM);
                let sure = first - begin..sure.unwrap_or(end) - begin;
                Some((stretch, Vec::from_iter(begin..end), sure))
            });
            prop_assert_eq!(Vec::from_iter(found), Vec::from_iter(expected));
            // Executions that belong to no stretch were forgotten.
            prop_assert!(regions.a.len() <= FORGET || !regions.found.is_empty());
        }
    }
}
