//! Counts the evidence from executions in corresponding stretches.

use std::sync::{Mutex, PoisonError};

use afterimage_parallel as parallel;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::region::{Instance, Region};
use crate::{ADDRESSES, Match, Matching, Version};

/// A number from 0 to 1, or a sum of such numbers. The representation is fixed-point, so that sums
/// do not depend on the order in which threads add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Parts(u64);

impl Parts {
    /// The number of units in 1, which is the resolution of 32-bit floats near 1.
    const ONE: f32 = (1 << 24) as f32;

    /// Returns the nearest representation of a number from 0 to 1.
    fn of(part: f32) -> Self {
        Self((part * Self::ONE).round() as u64)
    }

    pub fn value(self) -> f32 {
        self.0 as f32 / Self::ONE
    }
}

/// Counts of how two statements were executed at corresponding times, over the executions of the
/// second statement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// The number of times that the first statement was executed in the stretch with the same
    /// value.
    pub together: u32,
    /// The number of times that the first statement was the earliest in the stretch with this value
    /// and operator.
    pub earliest: u32,
    /// The number of times that the first statement was the latest in the stretch with this value
    /// and operator.
    pub latest: u32,
    /// The number of times that an alignment of both sequences pairs the two statements.
    pub aligned: u32,
    /// The number of times that the first statement accessed an address with a common displacement
    /// between the runs. Each time counts as 1 if most objects have that displacement, and less if
    /// few have it.
    pub placed: Parts,
    /// The number of times that the first statement was executed between the partners of the
    /// neighbouring executions.
    pub within: u32,
    /// The number of times that the first statement was executed with the same value between the
    /// partners of the neighbouring executions.
    pub within_same: u32,
    /// The first statement's total proximity to the place between the partners of the neighbouring
    /// executions. Each execution in that place counts as 1.
    pub near: Parts,
}

/// The distance from the expected place up to which executions are examined.
const AROUND: usize = 32;

/// The evidence from the regions.
#[derive(Debug, Default)]
pub(crate) struct Votes {
    /// For each statement of the second version, the number of its executions in the regions that
    /// were small enough to align.
    pub executions: Vec<u32>,
    /// For each statement of the second version, the statements of the first that were executed
    /// with the same value in a region or near the expected place.
    pub with: Vec<FxHashMap<u32, Tally>>,
}

/// The score of a certain candidate. The scores of all other evidence, such as equal values, have
/// about the same total.
const PRIOR: f32 = 3.0;
/// The maximum number of cells in an alignment's table. Larger regions are skipped.
const CELLS: usize = 1 << 21;

impl Votes {
    /// Counts votes. `found` is the matching with which the regions were found. O(product of the
    /// two versions' executions in each region).
    pub fn new(a: &Version, b: &Version, regions: &[Region<'_>], found: &Matching) -> Self {
        let counting = Counting {
            a,
            b,
            moved: moved(regions, &found.of_b),
            likely: &found.likely,
        };
        let fits = |region: &&Region<'_>| region.a.len() * region.b.len() <= CELLS;
        let regions = Vec::from_iter(regions.iter().filter(fits));
        let mut executions = vec![0; b.statements.len()];
        for of_b in regions.iter().flat_map(|region| region.b) {
            executions[of_b.statement as usize] += 1;
        }
        let sums = Sums::new(b);
        parallel::map_with(regions.len(), Room::default, |room, at| {
            room.begin(counting.a, regions[at]);
            counting.together(regions[at], room, &sums);
            let pairs = room.table.align();
            counting.aligned(regions[at], &pairs, room, &sums);
        });
        Self {
            executions,
            with: sums.all(),
        }
    }
}

/// For each statement of the second version, the votes of its executions. Several threads add to
/// them.
struct Sums(Vec<Mutex<FxHashMap<u32, Tally>>>);

impl Sums {
    fn new(b: &Version) -> Self {
        Self(b.statements.iter().map(|_| Mutex::default()).collect())
    }

    /// Adds the votes of one execution.
    fn add(&self, of_b: u32, here: impl Iterator<Item = (u32, Tally)>) {
        let sums = self.0[of_b as usize].lock();
        let mut sums = sums.unwrap_or_else(PoisonError::into_inner);
        for (statement, tally) in here {
            sums.entry(statement).or_default().add(tally);
        }
    }

    fn all(self) -> Vec<FxHashMap<u32, Tally>> {
        let all = self.0.into_iter();
        all.map(|sums| sums.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }
}

impl Tally {
    fn add(&mut self, tally: Self) {
        self.together += tally.together;
        self.earliest += tally.earliest;
        self.latest += tally.latest;
        self.aligned += tally.aligned;
        self.placed.0 += tally.placed.0;
        self.within += tally.within;
        self.within_same += tally.within_same;
        self.near.0 += tally.near.0;
    }
}

/// The data of one execution of the first version, for comparison with all executions of the
/// second.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// The number of the execution's statement in the stretch.
    local: u32,
    group: u8,
    operator: u64,
}

/// Scratch space for one stretch at a time.
#[derive(Debug, Default)]
struct Room {
    table: Table,
    columns: Vec<Column>,
    /// The statements of the first version in the stretch. `locals` contains each statement's
    /// position in this list.
    statements: Vec<u32>,
    locals: FxHashMap<u32, u32>,
    /// For each statement in the stretch, its score as a likely candidate.
    priors: Vec<f32>,
    /// For each statement in the stretch, the votes of an execution of the second version, if any.
    tallies: Vec<Option<Tally>>,
    /// The statements with votes.
    told: Vec<u32>,
}

impl Room {
    /// Looks up the data of each execution of the first version.
    fn begin(&mut self, a: &Version, region: &Region<'_>) {
        self.columns.clear();
        self.statements.clear();
        self.locals.clear();
        for of_a in region.a {
            let statement = &a.statements[of_a.statement as usize];
            let next = self.statements.len() as u32;
            let local = *self.locals.entry(of_a.statement).or_insert(next);
            if local == next {
                self.statements.push(of_a.statement);
            }
            self.columns.push(Column {
                local,
                group: statement.class.group(),
                operator: statement.operator,
            });
        }
        self.priors.clear();
        self.priors.resize(self.statements.len(), 0.0);
        self.tallies.clear();
        self.tallies.resize(self.statements.len(), None);
    }

    /// Returns the current execution's votes for a statement.
    #[inline(always)]
    fn tally(&mut self, local: u32) -> &mut Tally {
        let tally = &mut self.tallies[local as usize];
        if tally.is_none() {
            self.told.push(local);
        }
        tally.get_or_insert_default()
    }

    /// Adds the current execution's votes to `sums`, and clears them.
    fn end(&mut self, of_b: u32, sums: &Sums) {
        let told = self.told.drain(..).filter_map(|local| {
            let tally = self.tallies[local as usize].take()?;
            Some((self.statements[local as usize], tally))
        });
        sums.add(of_b, told);
    }
}

struct Counting<'v> {
    a: &'v Version,
    b: &'v Version,
    moved: Moved,
    /// For each statement of the second version, the candidates with their likelihoods.
    likely: &'v [Vec<(u32, f32)>],
}

impl Counting<'_> {
    /// Counts joint executions, and fills the table of the alignment. `room` has been prepared for
    /// the stretch.
    fn together(&self, region: &Region<'_>, room: &mut Room, sums: &Sums) {
        let columns = region.a.len();
        room.table.clear(region.b.len(), columns);
        for (row, of_b) in region.b.iter().enumerate() {
            let (mut earliest, mut latest) = (None, None);
            let statement = &self.b.statements[of_b.statement as usize];
            let group = statement.class.group();
            let likely = self.likely.get(of_b.statement as usize);
            let likely = likely.map_or(&[][..], Vec::as_slice);
            for (a, likely) in likely {
                if let Some(&local) = room.locals.get(a) {
                    room.priors[local as usize] = PRIOR * likely;
                }
            }
            for (at, of_a) in region.a.iter().enumerate() {
                let column = room.columns[at];
                if column.group != group {
                    continue;
                }
                let operator = statement.operator == column.operator;
                let prior = room.priors[column.local as usize];
                let cell = &mut room.table.weights[row * columns + at];
                let Some((weight, placed)) = weight(operator, of_a, of_b, &self.moved) else {
                    // The compared values may have been computed differently.
                    if statement.operands.is_some() && operator {
                        *cell = 0.3 + prior;
                    } else if prior > 0.3 {
                        *cell = prior;
                    }
                    continue;
                };
                let inside = (region.first..=region.last).contains(&at);
                *cell = weight + prior + if inside { 0.3 } else { 0.0 };
                let tally = room.tally(column.local);
                tally.together = 1;
                tally.placed = tally.placed.max(Parts::of(placed));
                if inside && operator {
                    earliest.get_or_insert(column.local);
                    latest = Some(column.local);
                }
            }
            if let Some(earliest) = earliest {
                room.tally(earliest).earliest = 1;
            }
            if let Some(latest) = latest {
                room.tally(latest).latest = 1;
            }
            for (a, _) in likely {
                if let Some(&local) = room.locals.get(a) {
                    room.priors[local as usize] = 0.0;
                }
            }
            room.end(of_b.statement, sums);
        }
    }

    /// Counts the pairs of the alignment, and executions near the place given by the surrounding
    /// pairs. `room` has been prepared for the stretch.
    fn aligned(&self, region: &Region<'_>, pairs: &[(usize, usize)], room: &mut Room, sums: &Sums) {
        let columns = region.a.len();
        let mut next = 0;
        for (row, of_b) in region.b.iter().enumerate() {
            while pairs.get(next).is_some_and(|pair| pair.0 < row) {
                next += 1;
            }
            let own = pairs.get(next).filter(|pair| pair.0 == row);
            if let Some(&(_, column)) = own {
                let local = room.columns[column].local;
                room.tally(local).aligned = 1;
            }
            let before = next.checked_sub(1).map(|before| pairs[before].1 + 1);
            let before = before.unwrap_or(region.first).min(columns);
            let after = pairs.get(next + usize::from(own.is_some()));
            let after = after.map_or(region.last, |after| after.1);
            let after = after.clamp(before, columns);
            let group = self.b.statements[of_b.statement as usize].class.group();
            let around = before.saturating_sub(AROUND)..(after + AROUND).min(columns);
            for at in around {
                let column = room.columns[at];
                if column.group != group {
                    continue;
                }
                let tally = room.tally(column.local);
                let earlier = before.saturating_sub(at);
                let apart = earlier.max((at + 1).saturating_sub(after));
                tally.near = tally.near.max(near(apart));
                if apart == 0 {
                    let same = weight(true, &region.a[at], of_b, &self.moved).is_some();
                    tally.within = 1;
                    tally.within_same |= u32::from(same);
                }
            }
            room.end(of_b.statement, sums);
        }
    }
}

/// Returns the proximity of an execution at this distance from its expected place.
fn near(apart: usize) -> Parts {
    Parts::of(1.0 / (1.0 + apart as f32 / 8.0))
}

/// Returns two scores for a pair of executions: how well the executions correspond, and how likely
/// their accesses are to the same object. Returns `None` if the executions do not match.
fn weight(operator: bool, a: &Instance, b: &Instance, moved: &Moved) -> Option<(f32, f32)> {
    let distance = |a: u64, b: u64| (b as u32).wrapping_sub(a as u32);
    let mut weight = if operator { 1.0 } else { 0.2 };
    if a.value == b.value {
        weight += 1.0 + if b.value > 16 { 0.5 } else { 0.0 };
    } else {
        let known = moved.get(&distance(a.value, b.value))?;
        if a.value < ADDRESSES || b.value < ADDRESSES {
            return None;
        }
        weight += 0.5 + 0.5 * known;
    }
    let mut placed = 0.0;
    if b.address != Instance::NO_ADDRESS && a.address != Instance::NO_ADDRESS {
        placed = moved
            .get(&distance(a.address, b.address))
            .copied()
            .unwrap_or(0.0);
        weight += 2.0 * placed - 0.5;
    }
    Some((weight, placed))
}

/// Displacements of objects from the first run to the second, with their frequencies from 0 to 1.
type Moved = FxHashMap<u32, f32>;

/// Returns the displacements of objects, according to corresponding loads and stores.
fn moved(regions: &[Region<'_>], known: &[Option<Match>]) -> Moved {
    // For each stretch, the displacements, each with the second version's statements that show it.
    let told = parallel::map_with(regions.len(), FxHashSet::default, |told, at| {
        let region = &regions[at];
        for of_b in region.b {
            let matched = known[of_b.statement as usize].as_ref();
            let Some(matched) = matched.filter(|_| of_b.address != Instance::NO_ADDRESS) else {
                continue;
            };
            for of_a in region.a.iter().filter(|of_a| of_a.statement == matched.a) {
                if of_a.value == of_b.value && of_a.address != Instance::NO_ADDRESS {
                    let distance = (of_b.address as u32).wrapping_sub(of_a.address as u32);
                    told.insert((distance, of_b.statement));
                }
            }
        }
        Vec::from_iter(told.drain())
    });
    let mut pairs: FxHashMap<u32, FxHashSet<u32>> = FxHashMap::default();
    for (distance, statement) in told.into_iter().flatten() {
        pairs.entry(distance).or_default().insert(statement);
    }
    let most = pairs.values().map(FxHashSet::len).max().unwrap_or(0) as f32;
    let usual = pairs.into_iter().filter(|(_, of)| of.len() > 2);
    let usual = usual.map(|(distance, of)| {
        let part = (of.len() as f32 / most.max(1.0)).sqrt();
        (distance, ((part - 0.15) / 0.35).clamp(0.0, 1.0))
    });
    usual.collect()
}

/// The table of an alignment. It contains the heaviest chains of pairs in ascending order in both
/// sequences (Needleman and Wunsch 1970, without a gap cost).
#[derive(Debug, Default)]
struct Table {
    rows: usize,
    columns: usize,
    weights: Vec<f32>,
    best: Vec<f32>,
}

impl Table {
    fn clear(&mut self, rows: usize, columns: usize) {
        self.rows = rows;
        self.columns = columns;
        self.weights.clear();
        self.weights.resize(rows * columns, 0.0);
        self.best.clear();
        self.best.resize((rows + 1) * (columns + 1), 0.0);
    }

    /// Returns the pairs of the heaviest chain.
    fn align(&mut self) -> Vec<(usize, usize)> {
        let width = self.columns + 1;
        for row in 0..self.rows {
            for column in 0..self.columns {
                let weight = self.weights[row * self.columns + column];
                let skip =
                    self.best[row * width + column + 1].max(self.best[(row + 1) * width + column]);
                let take = self.best[row * width + column] + weight;
                self.best[(row + 1) * width + column + 1] =
                    if weight > 0.0 { take.max(skip) } else { skip };
            }
        }
        let mut pairs = Vec::new();
        let (mut row, mut column) = (self.rows, self.columns);
        while row > 0 && column > 0 {
            let here = self.best[row * width + column];
            if here == self.best[row * width + column - 1] {
                column -= 1;
            } else if here == self.best[(row - 1) * width + column] {
                row -= 1;
            } else {
                row -= 1;
                column -= 1;
                pairs.push((row, column));
            }
        }
        pairs.reverse();
        pairs
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Class, Evidence};

    /// Returns the weight of the heaviest chain in ascending order in both sequences, found by
    /// trying all chains.
    fn heaviest(weights: &[f32], rows: usize, columns: usize) -> f32 {
        let cells = 0..1u32 << (rows * columns);
        let rises = |set: u32| {
            let chosen: Vec<_> = (0..rows * columns)
                .filter(|cell| set >> cell & 1 == 1)
                .map(|cell| (cell / columns, cell % columns))
                .collect();
            chosen
                .windows(2)
                .all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1)
        };
        let weight = |set: u32| {
            let chosen = (0..weights.len()).filter(|cell| set >> cell & 1 == 1);
            chosen.map(|cell| weights[cell]).sum::<f32>()
        };
        cells
            .filter(|&set| rises(set))
            .map(weight)
            .fold(0.0, f32::max)
    }

    proptest! {
        #[test]
        fn the_heaviest_chain_is_found(rows in 1usize..4, columns in 1usize..5, numbers in prop::collection::vec(0u8..5, 12)) {
            let weights: Vec<f32> = numbers[..rows * columns].iter().map(|&n| f32::from(n)).collect();
            let mut table = Table::default();
            table.clear(rows, columns);
            table.weights.copy_from_slice(&weights);
            let pairs = table.align();
            prop_assert!(pairs.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
            let sum: f32 = pairs.iter().map(|&(row, column)| weights[row * columns + column]).sum();
            prop_assert_eq!(sum, heaviest(&weights, rows, columns));
        }
    }

    proptest! {
        /// Compares the counts around the pairs of an alignment with their definition.
        #[test]
        fn what_is_near_to_where_it_is_expected_is_counted(
            of_a in prop::collection::vec(0u32..4, 1..60),
            of_b in prop::collection::vec(0u32..3, 1..12),
            chosen in prop::collection::vec((0usize..12, 0usize..60), 0..12),
            ends in (0usize..60, 0usize..60),
        ) {
            let instances = |of: &[u32]| -> Vec<Instance> {
                let of = of.iter();
                of.map(|&at| instance(at, u64::from(at), Instance::NO_ADDRESS)).collect()
            };
            let executed = [instances(&of_a), instances(&of_b)];
            let region = Region {
                first: ends.0.min(of_a.len() - 1),
                last: ends.1.min(of_a.len()),
                a: &executed[0],
                b: &executed[1],
            };
            let mut pairs: Vec<(usize, usize)> = Vec::new();
            for (row, column) in chosen {
                let rises = pairs.last().is_none_or(|last| last.0 < row && last.1 < column);
                if rises && row < of_b.len() && column < of_a.len() {
                    pairs.push((row, column));
                }
            }
            let (a, b) = (version(4), version(3));
            let moved = Moved::default();
            let counting = Counting { a: &a, b: &b, moved, likely: &[] };
            let (sums, mut room) = (Sums::new(&b), Room::default());
            room.begin(&a, &region);
            counting.aligned(&region, &pairs, &mut room, &sums);

            let mut expected = vec![FxHashMap::<u32, Tally>::default(); 3];
            for (row, &statement) in of_b.iter().enumerate() {
                let before = pairs.iter().rfind(|pair| pair.0 < row);
                let after = pairs.iter().find(|pair| pair.0 > row);
                let from = before.map_or(region.first, |pair| pair.1 + 1);
                let to = after.map_or(region.last, |pair| pair.1).max(from);
                for other in 0..4 {
                    let columns = (0..of_a.len()).filter(|&at| of_a[at] == other);
                    // Executions in `from..to` have distance 0. If there are none, the place
                    // between `from` and `to` has distance 0.
                    let apart = columns.map(|at| match at {
                        _ if at < from => from - at,
                        _ if at >= to => at + 1 - to,
                        _ => 0,
                    });
                    let least = apart.min().filter(|&apart| apart <= AROUND);
                    let aligned = pairs.iter().any(|&(r, c)| r == row && of_a[c] == other);
                    if least.is_none() && !aligned {
                        continue;
                    }
                    let tally = expected[statement as usize].entry(other).or_default();
                    tally.aligned += u32::from(aligned);
                    if let Some(apart) = least {
                        let within = apart == 0;
                        tally.near.0 += near(apart).0;
                        tally.within += u32::from(within);
                        tally.within_same += u32::from(within && other == statement);
                    }
                }
            }
            prop_assert_eq!(sums.all(), expected);
        }
    }

    /// Computes the votes of regions from their definition, by comparing each execution of the
    /// second version with each execution of the first.
    fn together_by_definition(
        (a, b): (&Version, &Version),
        regions: &[Region<'_>],
        found: &Matching,
    ) -> Vec<FxHashMap<u32, Tally>> {
        let moved = moved(regions, &found.of_b);
        let sums = Sums::new(b);
        for region in regions {
            let mut table = Table::default();
            table.clear(region.b.len(), region.a.len());
            for (row, of_b) in region.b.iter().enumerate() {
                let statement = &b.statements[of_b.statement as usize];
                let mut here = FxHashMap::<u32, Tally>::default();
                let mut alike = Vec::new();
                for (column, of_a) in region.a.iter().enumerate() {
                    let other = &a.statements[of_a.statement as usize];
                    if other.class.group() != statement.class.group() {
                        continue;
                    }
                    let operator = statement.operator == other.operator;
                    let likely = &found.likely[of_b.statement as usize];
                    let known = likely.iter().find(|(a, _)| *a == of_a.statement);
                    let prior = known.map_or(0.0, |(_, likely)| PRIOR * likely);
                    let cell = &mut table.weights[row * region.a.len() + column];
                    match weight(operator, of_a, of_b, &moved) {
                        None if statement.operands.is_some() && operator => *cell = 0.3 + prior,
                        None if prior > 0.3 => *cell = prior,
                        None => {}
                        Some((weight, placed)) => {
                            let inside = column >= region.first && column <= region.last;
                            *cell = weight + prior + if inside { 0.3 } else { 0.0 };
                            let tally = here.entry(of_a.statement).or_default();
                            tally.together = 1;
                            tally.placed = tally.placed.max(Parts::of(placed));
                            if inside && operator {
                                alike.push(of_a.statement);
                            }
                        }
                    }
                }
                if let (Some(first), Some(last)) = (alike.first(), alike.last()) {
                    here.entry(*first).or_default().earliest = 1;
                    here.entry(*last).or_default().latest = 1;
                }
                sums.add(of_b.statement, here.into_iter());
            }
            // The counts around the pairs of an alignment have their own definition.
            let pairs = table.align();
            let mut room = Room::default();
            room.begin(a, region);
            let moved = moved.clone();
            let counting = Counting {
                a,
                b,
                moved,
                likely: &[],
            };
            counting.aligned(region, &pairs, &mut room, &sums);
        }
        sums.all()
    }

    proptest! {
        /// Tests several regions, one after another with the same scratch space.
        #[test]
        fn what_was_executed_together_is_counted(
            classes in prop::collection::vec(0usize..3, 8),
            executed in prop::collection::vec((
                prop::collection::vec((0u32..5, 1000u64..1004, 0u64..4), 1..20),
                prop::collection::vec((0u32..3, 1000u64..1004, 0u64..4), 1..8),
                (0usize..20, 0usize..20),
            ), 1..5),
            likely in prop::collection::vec(prop::collection::btree_map(0u32..5, 0.0f32..1.0, 0..3), 3),
            matched in prop::collection::vec(prop::option::of(0u32..5), 3),
        ) {
            let classes = classes.iter().map(|&class| [Class::Compute, Class::Load, Class::Branch][class]);
            let classes = Vec::from_iter(classes);
            let version = |classes: &[Class]| {
                let mut version = version(classes.len() as u32);
                for (statement, &class) in version.statements.iter_mut().zip(classes) {
                    statement.class = class;
                    statement.operator = class as u64;
                    statement.operands = (class == Class::Branch).then(Box::default);
                }
                version
            };
            let (a, b) = (version(&classes[..5]), version(&classes[5..]));
            let instances = |all: &[(u32, u64, u64)]| {
                let of = |&(at, value, address): &(u32, u64, u64)| {
                    let address = if address == 0 { Instance::NO_ADDRESS } else { 4096 + address };
                    instance(at, value, address)
                };
                Vec::from_iter(all.iter().map(of))
            };
            let executed = executed.iter().map(|(a, b, ends)| (instances(a), instances(b), ends));
            let executed = Vec::from_iter(executed);
            let regions = executed.iter().map(|(of_a, of_b, ends)| Region {
                first: ends.0.min(of_a.len() - 1),
                last: ends.1.min(of_a.len()),
                a: of_a,
                b: of_b,
            });
            let regions = Vec::from_iter(regions);
            let of_b = matched.iter().map(|a| Some(Match { a: (*a)?, evidence: Evidence::PLAIN, score: 1.0 }));
            let found = Matching {
                of_b: of_b.collect(),
                rounds: 1,
                likely: likely.iter().map(|of| of.iter().map(|(a, likely)| (*a, *likely)).collect()).collect(),
            };
            let votes = Votes::new(&a, &b, &regions, &found);
            prop_assert_eq!(votes.with, together_by_definition((&a, &b), &regions, &found));
        }
    }

    fn version(statements: u32) -> Version {
        let statement = |function| crate::Statement::plain(function, Class::Compute);
        Version {
            statements: (0..statements).map(statement).collect(),
            length: 1,
            stack: 0,
            bodies: FxHashMap::default(),
            entered: FxHashMap::default(),
        }
    }

    fn instance(statement: u32, value: u64, address: u64) -> Instance {
        Instance {
            statement,
            value,
            address,
        }
    }

    #[test]
    fn executions_are_one_if_their_values_are_the_same_or_lie_as_far_apart_as_objects_do() {
        let moved = Moved::from_iter([(16, 1.0)]);
        let none = Instance::NO_ADDRESS;
        let of = |a: Instance, b: Instance| weight(true, &a, &b, &moved);
        assert!(of(instance(0, 5, none), instance(0, 5, none)).is_some());
        assert!(of(instance(0, 5, none), instance(0, 6, none)).is_none());
        // A pointer to an object displaced by 16 bytes. Numbers that are not addresses do not move.
        assert!(of(instance(0, 4096, none), instance(0, 4112, none)).is_some());
        assert!(of(instance(0, 40, none), instance(0, 56, none)).is_none());
        let there = of(instance(0, 5, 4096), instance(0, 5, 4112)).unwrap();
        let elsewhere = of(instance(0, 5, 4096), instance(0, 5, 4100)).unwrap();
        assert!(there.1 == 1.0 && elsewhere.1 == 0.0 && there.0 > elsewhere.0);
    }
}
