//! Compares two profiles by function or line. The greatest growth comes first.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::hash::Hash;

use afterimage_ids::FuncId;

use crate::{
    By, FunctionRow, LeftOut, LineRow, Options, Profile, ProfileError, Report, Rows, Sort, Totals,
};

/// The rows of one item in two profiles, A and B. At least one of the rows exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair<R> {
    /// The row in each profile.
    pub rows: [Option<R>; 2],
}

/// The pairs of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// Pairs of functions, which are compared by their executed instructions.
    Functions(Vec<Pair<FunctionRow>>),
    /// Pairs of lines, which are compared by their arrivals.
    Lines(Vec<Pair<LineRow>>),
}

/// The result of comparing two profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The pairs, in the requested order. Items that ran in neither profile have no pair.
    pub pairs: Pairs,
    /// The number of pairs before a limit is applied.
    pub available: usize,
    /// The number of functions or lines that both programs have, including items that never ran.
    pub common: usize,
    /// The number of functions or lines that ran in neither profile.
    pub never: usize,
    /// The number of functions that ran but have no name, and so cannot be matched.
    pub unnamed: usize,
    /// The parts of B that [`Options::code`] left out.
    pub left_out: LeftOut,
    /// The sums over each program.
    pub totals: [Totals; 2],
    /// The order of the rows. `None` means that ratios descend.
    pub sort: Option<Sort>,
    /// Whether functions are matched by name, because the programs differ.
    pub by_name: bool,
}

/// A row whose numbers can be compared.
pub trait Measured {
    /// Returns the number of executions, which are activations or arrivals.
    fn count(&self) -> u64;
    /// Returns the number of executed instructions.
    fn instructions(&self) -> u64;
    /// Returns the number by which rows are compared.
    fn measure(&self) -> u64;
}

impl Measured for FunctionRow {
    fn count(&self) -> u64 {
        self.entries
    }

    fn instructions(&self) -> u64 {
        self.instructions
    }

    fn measure(&self) -> u64 {
        self.instructions
    }
}

impl Measured for LineRow {
    fn count(&self) -> u64 {
        self.count
    }

    fn instructions(&self) -> u64 {
        self.instructions
    }

    fn measure(&self) -> u64 {
        self.count
    }
}

impl<R: Measured> Pair<R> {
    /// Returns the compared number in each profile.
    pub fn measures(&self) -> [u64; 2] {
        self.both(R::measure)
    }

    /// Returns a number from each profile's row, or 0 for a missing row.
    pub fn both(&self, of: impl Fn(&R) -> u64) -> [u64; 2] {
        let [a, b] = &self.rows;
        [a, b].map(|row| row.as_ref().map_or(0, &of))
    }
}

impl<R> Pair<R> {
    /// Returns the row of B or, if there is none, the row of A, with the position of its profile.
    pub fn newest(&self) -> Option<(usize, &R)> {
        let [a, b] = &self.rows;
        let b = b.as_ref().map(|row| (1, row));
        b.or(a.as_ref().map(|row| (0, row)))
    }
}

impl Comparison {
    /// Compares by function or by line. Functions are matched by number or, with `by_name`, by
    /// name. Functions with the same name are then added up. The options of both profiles must have
    /// the same [`Options::by`]. If this is not [`By::Line`], functions are compared. O(rows ·
    /// log).
    ///
    /// # Errors
    /// Returns the same errors as [`Profile::operators`], and an error if a sum does not fit into
    /// 64 bits.
    pub fn new(
        [a, b]: [&Profile<'_>; 2],
        [of_a, of_b]: [&Options; 2],
        by_name: bool,
    ) -> Result<Self, ProfileError> {
        let rows = |profile: &Profile<'_>, options: &Options| {
            let options = Options {
                by: match options.by {
                    By::Line => By::Line,
                    _ => By::Function,
                },
                sort: Some(Sort::Program),
                top: None,
                inlined: false,
                ..options.clone()
            };
            Report::new(profile, &options)
        };
        let [in_a, in_b] = [rows(a, of_a)?, rows(b, of_b)?];
        let left_out = in_b.left_out;
        let (sort, top) = (of_b.sort, of_b.top);
        let mut unnamed = 0;
        let (pairs, [common, available, never]) = match (in_a.rows, in_b.rows) {
            (Rows::Lines(in_a), Rows::Lines(in_b)) => {
                let path = |_, row: &LineRow| b.file(row.line.file).to_owned();
                let pairs = paired([in_a, in_b], [|row: &LineRow| row.line; 2]);
                let (pairs, sizes) = chosen(pairs, sort, top, path);
                (Pairs::Lines(pairs), sizes)
            }
            (Rows::Functions(in_a), Rows::Functions(in_b)) => {
                let name = |side: usize, row: &FunctionRow| {
                    [a, b][side].names().function(row.function).to_owned()
                };
                let pairs = if by_name {
                    let mut named = |profile: &Profile<'_>, rows: Vec<FunctionRow>| {
                        by_names(profile, rows, &mut unnamed)
                    };
                    let rows = [named(a, in_a)?, named(b, in_b)?];
                    let of_a = |row: &FunctionRow| name(0, row);
                    let of_b = |row: &FunctionRow| name(1, row);
                    paired(rows, [&of_a as &dyn Fn(&FunctionRow) -> String, &of_b])
                } else {
                    paired([in_a, in_b], [|row: &FunctionRow| row.function; 2])
                };
                let (pairs, sizes) = chosen(pairs, sort, top, name);
                (Pairs::Functions(pairs), sizes)
            }
            _ => (Pairs::Functions(Vec::new()), [0; 3]),
        };
        Ok(Self {
            pairs,
            available,
            common,
            never,
            unnamed,
            left_out,
            totals: [a.totals(), b.totals()],
            sort,
            by_name,
        })
    }
}

impl Pairs {
    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        match self {
            Self::Functions(pairs) => pairs.len(),
            Self::Lines(pairs) => pairs.len(),
        }
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Merges functions with the same name. Functions without a name are left out. `unnamed` counts the
/// functions among them that ran.
fn by_names(
    profile: &Profile<'_>,
    rows: Vec<FunctionRow>,
    unnamed: &mut usize,
) -> Result<Vec<FunctionRow>, ProfileError> {
    let (mut known, mut all) = (HashMap::<&str, usize>::new(), Vec::<FunctionRow>::new());
    for row in rows {
        if profile.names().raw(row.function).is_none() {
            *unnamed += usize::from(row.entries > 0);
            continue;
        }
        match known.get(profile.names().function(row.function)) {
            None => {
                known.insert(profile.names().function(row.function), all.len());
                all.push(row);
            }
            Some(&at) => {
                let overflow = overflow(row.function);
                let sum = &mut all[at];
                for (sum, part) in [
                    (&mut sum.entries, row.entries),
                    (&mut sum.blocks, row.blocks),
                    (&mut sum.instructions, row.instructions),
                ] {
                    *sum = sum.checked_add(part).ok_or_else(|| overflow.clone())?;
                }
            }
        }
    }
    Ok(all)
}

fn overflow(function: FuncId) -> ProfileError {
    ProfileError::Overflow { function }
}

/// Pairs rows with the same key. The rows of A come first, in their order. The rows that only B has
/// follow in their order.
fn paired<R, K: Eq + Hash>(
    [in_a, in_b]: [Vec<R>; 2],
    [of_a, of_b]: [impl Fn(&R) -> K; 2],
) -> Vec<Pair<R>> {
    let mut known = HashMap::with_capacity(in_a.len());
    let mut pairs = Vec::with_capacity(in_a.len());
    for row in in_a {
        known.insert(of_a(&row), pairs.len());
        pairs.push(Pair {
            rows: [Some(row), None],
        });
    }
    for row in in_b {
        match known.get(&of_b(&row)) {
            Some(&at) => pairs[at].rows[1] = Some(row),
            None => pairs.push(Pair {
                rows: [None, Some(row)],
            }),
        }
    }
    pairs
}

/// Returns the first pairs in an order, and three numbers. These are the numbers of items in both
/// profiles, of all pairs, and of items left out because they ran in neither profile.
fn chosen<R: Measured>(
    mut pairs: Vec<Pair<R>>,
    sort: Option<Sort>,
    top: Option<usize>,
    name: impl Fn(usize, &R) -> String,
) -> (Vec<Pair<R>>, [usize; 3]) {
    let all = pairs.len();
    let is_common = |pair: &&Pair<R>| pair.rows.iter().all(Option::is_some);
    let common = pairs.iter().filter(is_common).count();
    let ran = |pair: &Pair<R>| {
        let [count, instructions] = [R::count, R::instructions].map(|of| pair.both(of));
        count != [0, 0] || instructions != [0, 0]
    };
    pairs.retain(ran);
    let in_b = |pair: &Pair<R>| {
        let [_, count] = pair.both(R::count);
        let [_, instructions] = pair.both(R::instructions);
        (instructions, count)
    };
    match sort {
        None => pairs.sort_by(|a, b| growth(a.measures(), b.measures()).reverse()),
        Some(Sort::Instructions) => pairs.sort_by_key(|pair| Reverse(in_b(pair))),
        Some(Sort::Count) => pairs.sort_by_key(|pair| {
            let (instructions, count) = in_b(pair);
            Reverse((count, instructions))
        }),
        Some(Sort::Name) => {
            pairs.sort_by_cached_key(|pair| pair.newest().map(|(side, row)| name(side, row)))
        }
        Some(Sort::Program) => {}
    }
    let available = pairs.len();
    pairs.truncate(top.unwrap_or(available));
    (pairs, [common, available, all - available])
}

/// Compares growth by the exact ratio B/A, and then by the amount in B. Items missing from A grew
/// most. Items missing from both did not grow.
fn growth([a, b]: [u64; 2], [other_a, other_b]: [u64; 2]) -> Ordering {
    let is_new = |a: u64, b: u64| a == 0 && b > 0;
    let ratios = match (is_new(a, b), is_new(other_a, other_b)) {
        (false, false) => {
            let product = |one: u64, other: u64| u128::from(one) * u128::from(other.max(1));
            product(b, other_a).cmp(&product(other_b, a))
        }
        (one, other) => one.cmp(&other),
    };
    ratios.then(b.cmp(&other_b))
}

#[cfg(test)]
mod tests {
    use super::growth;

    #[test]
    fn growth_is_ordered_by_exact_ratios() {
        let mut all = [
            [10, 20],
            [0, 1],
            [1, 3],
            [u64::MAX, u64::MAX - 1],
            [u64::MAX - 1, u64::MAX],
            [7, 0],
            [100, 200],
            [0, 9],
            [0, 0],
        ];
        all.sort_by(|a, b| growth(*a, *b).reverse());
        let expected = [
            [0, 9],
            [0, 1],
            [1, 3],
            [100, 200],
            [10, 20],
            [u64::MAX - 1, u64::MAX],
            [u64::MAX, u64::MAX - 1],
            [7, 0],
            [0, 0],
        ];
        assert_eq!(all, expected);
    }
}
