//! What the executions of corresponding stretches say for pairs of statements.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::region::{Instance, Region};
use crate::{Match, Version};

/// How often two statements were executed at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// The first was executed at that time and gave the same value.
    pub together: u32,
    /// An alignment of both sequences makes them a pair.
    pub aligned: u32,
    /// How often what the first accessed lies where objects lie: 1 each time if most lie so far from where they lie in the other run, less if few do.
    pub placed: f32,
}

/// What the regions say.
#[derive(Debug, Default)]
pub(crate) struct Votes {
    /// By statement of the second version, how many of its executions are in regions.
    pub executions: Vec<u32>,
    /// By statement of the second version, those of the first with which it was executed together.
    pub with: Vec<FxHashMap<u32, Tally>>,
}

/// Most cells of an alignment's table.
const CELLS: usize = 1 << 21;

impl Votes {
    /// Counts. O(what the regions hold of one version times what they hold of the other).
    pub fn new(a: &Version, b: &Version, regions: &[Region], known: &[Option<Match>]) -> Self {
        let moved = moved(regions, known);
        let mut votes = Self {
            executions: vec![0; b.statements.len()],
            with: vec![FxHashMap::default(); b.statements.len()],
        };
        let mut table = Table::default();
        for region in regions {
            votes.count(a, b, region, known, &moved, &mut table);
        }
        votes
    }

    fn count(
        &mut self,
        a: &Version,
        b: &Version,
        region: &Region,
        known: &[Option<Match>],
        moved: &Moved,
        table: &mut Table,
    ) {
        let (rows, columns) = (region.b.len(), region.a.len());
        if rows * columns > CELLS {
            return;
        }
        table.clear(rows, columns);
        let mut here: FxHashMap<u32, Tally> = FxHashMap::default();
        for (row, of_b) in region.b.iter().enumerate() {
            here.clear();
            let statement = &b.statements[of_b.statement as usize];
            self.executions[of_b.statement as usize] += 1;
            let matched = known[of_b.statement as usize].as_ref().map(|m| m.a);
            for (column, of_a) in region.a.iter().enumerate() {
                let other = &a.statements[of_a.statement as usize];
                if other.class.group() != statement.class.group() {
                    continue;
                }
                let operator = statement.operator == other.operator;
                let Some((weight, placed)) = weight(operator, of_a, of_b, moved) else {
                    if statement.operands.is_some() && operator {
                        table.weights[row * columns + column] = 0.3;
                    }
                    continue;
                };
                let prior = if matched == Some(of_a.statement) {
                    1.0
                } else {
                    0.0
                };
                let inside = (region.first..=region.last).contains(&column);
                let weight = weight + prior + if inside { 0.3 } else { 0.0 };
                table.weights[row * columns + column] = weight;
                let tally = here.entry(of_a.statement).or_default();
                tally.together = 1;
                tally.placed = placed.max(tally.placed);
            }
            let all = &mut self.with[of_b.statement as usize];
            for (&statement, tally) in &here {
                let sum = all.entry(statement).or_default();
                sum.together += tally.together;
                sum.placed += tally.placed;
            }
        }
        for (row, column) in table.align() {
            let of = &mut self.with[region.b[row].statement as usize];
            of.entry(region.a[column].statement).or_default().aligned += 1;
        }
    }
}

/// How much speaks for two executions being one, and for what they access being the same object; `None` if they are not.
fn weight(operator: bool, a: &Instance, b: &Instance, moved: &Moved) -> Option<(f32, f32)> {
    let distance = |a: u64, b: u64| (b as u32).wrapping_sub(a as u32);
    let mut weight = if operator { 1.0 } else { 0.2 };
    if a.value == b.value {
        weight += 1.0 + if b.value > 16 { 0.5 } else { 0.0 };
    } else {
        let known = moved.get(&distance(a.value, b.value))?;
        if a.value < 1024 || b.value < 1024 {
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

/// Distances between where objects lie in the second run and where they lie in the first, each with how usual it is: 0 to 1.
type Moved = FxHashMap<u32, f32>;

/// How far objects lie from where they lie in the first version: what loads and stores that correspond say.
fn moved(regions: &[Region], known: &[Option<Match>]) -> Moved {
    let mut pairs: FxHashMap<u32, FxHashSet<u32>> = FxHashMap::default();
    for region in regions {
        for of_b in region
            .b
            .iter()
            .filter(|i| i.address != Instance::NO_ADDRESS)
        {
            let Some(matched) = known[of_b.statement as usize].as_ref() else {
                continue;
            };
            for of_a in region.a.iter().filter(|of_a| of_a.statement == matched.a) {
                if of_a.value == of_b.value && of_a.address != Instance::NO_ADDRESS {
                    let distance = (of_b.address as u32).wrapping_sub(of_a.address as u32);
                    pairs.entry(distance).or_default().insert(of_b.statement);
                }
            }
        }
    }
    let most = pairs.values().map(FxHashSet::len).max().unwrap_or(0) as f32;
    let usual = pairs.into_iter().filter(|(_, of)| of.len() > 2);
    let usual = usual.map(|(distance, of)| {
        let part = (of.len() as f32 / most.max(1.0)).sqrt();
        (distance, ((part - 0.15) / 0.35).clamp(0.0, 1.0))
    });
    usual.collect()
}

/// The table of an alignment: the heaviest chain of pairs that rises in both sequences (Needleman and Wunsch 1970, without a cost for gaps).
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

    /// The pairs of the heaviest chain.
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

    /// The weight of the heaviest chain that rises in both, by trying all.
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
        // A pointer to an object that lies 16 bytes further on; numbers that are no addresses do not move.
        assert!(of(instance(0, 4096, none), instance(0, 4112, none)).is_some());
        assert!(of(instance(0, 40, none), instance(0, 56, none)).is_none());
        let there = of(instance(0, 5, 4096), instance(0, 5, 4112)).unwrap();
        let elsewhere = of(instance(0, 5, 4096), instance(0, 5, 4100)).unwrap();
        assert!(there.1 == 1.0 && elsewhere.1 == 0.0 && there.0 > elsewhere.0);
    }
}
