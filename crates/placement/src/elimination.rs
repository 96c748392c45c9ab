//! Sparse elimination, one column after another, modulo 2^61 − 1.
//!
//! Columns that are independent modulo a prime are independent over the rationals. So a set of
//! columns that is accepted here has at most one rational solution. If the converse fails, this
//! costs a counter but never affects exactness.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::field::{Residue, inverse, multiply, residue, subtract_product};

/// A sparse column, as rows with their entries, ascending by row. No entry is zero.
pub(crate) type Column = Vec<(u32, i64)>;

/// The outcome of inserting a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The column is independent of the columns kept so far, and was added to them.
    Independent,
    /// The column is a combination of the columns kept so far.
    Dependent,
    /// Deciding about the column, or keeping it, would exceed the limits.
    TooDense,
}

/// The limits on the fill-in that is accepted in order to avoid a counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The maximum number of entries that a kept column may have after reduction.
    pub(crate) entries: usize,
    /// The maximum number of entries of kept columns that the reduction of one column may visit.
    pub(crate) work: usize,
}

impl Limits {
    /// No limit.
    pub(crate) const NONE: Self = Self {
        entries: usize::MAX,
        work: usize::MAX,
    };
}

/// The columns kept so far, in echelon form.
#[derive(Debug)]
pub(crate) struct Elimination {
    kept: Vec<Kept>,
    /// For each row, the kept column whose pivot is in this row.
    pivot_of: Vec<Option<u32>>,
    /// For each row, the number of columns that touch it. Pivots are chosen in rows that few
    /// columns touch, which keeps fill-in low.
    touched: Vec<u32>,
    /// A dense column during reduction. It is zero between calls.
    scratch: Vec<Residue>,
    in_support: Vec<bool>,
}

/// A kept column minus multiples of earlier kept columns.
///
/// The result has no entry in the pivot rows of earlier kept columns.
#[derive(Debug)]
struct Kept {
    entries: Vec<(u32, Residue)>,
    pivot_row: u32,
    pivot_inverse: Residue,
    /// The multiples of earlier reduced columns that were subtracted.
    subtracted: Vec<(u32, Residue)>,
}

impl Elimination {
    /// Creates an elimination without columns. `touched` is roughly the number of columns that will
    /// touch each row.
    pub(crate) fn new(touched: Vec<u32>) -> Self {
        Self {
            kept: Vec::new(),
            pivot_of: vec![None; touched.len()],
            scratch: vec![0; touched.len()],
            in_support: vec![false; touched.len()],
            touched,
        }
    }

    /// Keeps the column if it is independent of the columns kept so far.
    pub(crate) fn insert(&mut self, column: &Column, limits: Limits) -> Verdict {
        let mut support: Vec<u32> = Vec::with_capacity(column.len());
        let mut pending = BinaryHeap::new();
        for &(row, entry) in column {
            self.scratch[row as usize] = residue(i128::from(entry));
            self.touch(row, &mut support, &mut pending);
        }
        let mut subtracted = Vec::new();
        let mut work = 0usize;
        // Earlier columns come first, because subtracting a column can only introduce entries in
        // the pivot rows of later columns.
        while let Some(Reverse(index)) = pending.pop() {
            let row = self.kept[index as usize].pivot_row;
            let entry = self.scratch[row as usize];
            if entry == 0 {
                continue;
            }
            let basis = &self.kept[index as usize];
            work = work.saturating_add(basis.entries.len());
            if work > limits.work {
                self.reset(&support);
                return Verdict::TooDense;
            }
            let factor = multiply(entry, basis.pivot_inverse);
            subtracted.push((index, factor));
            for i in 0..basis.entries.len() {
                let (row, entry) = self.kept[index as usize].entries[i];
                let slot = &mut self.scratch[row as usize];
                *slot = subtract_product(*slot, factor, entry);
                self.touch(row, &mut support, &mut pending);
            }
        }
        let entries: Vec<(u32, Residue)> = support
            .iter()
            .map(|&row| (row, self.scratch[row as usize]))
            .filter(|&(_, entry)| entry != 0)
            .collect();
        self.reset(&support);
        let rarest = |&&(row, _): &&(u32, Residue)| (self.touched[row as usize], row);
        let Some(&(pivot_row, pivot)) = entries.iter().min_by_key(rarest) else {
            return Verdict::Dependent;
        };
        if entries.len() > limits.entries {
            return Verdict::TooDense;
        }
        self.pivot_of[pivot_row as usize] = Some(self.kept.len() as u32);
        self.kept.push(Kept {
            entries,
            pivot_row,
            pivot_inverse: inverse(pivot),
            subtracted,
        });
        Verdict::Independent
    }

    fn touch(&mut self, row: u32, support: &mut Vec<u32>, pending: &mut BinaryHeap<Reverse<u32>>) {
        if !std::mem::replace(&mut self.in_support[row as usize], true) {
            support.push(row);
            pending.extend(self.pivot_of[row as usize].map(Reverse));
        }
    }

    fn reset(&mut self, support: &[u32]) {
        for &row in support {
            self.scratch[row as usize] = 0;
            self.in_support[row as usize] = false;
        }
    }

    /// Finds one factor for each kept column, in the order of insertion, such that the columns
    /// times their factors add up to `right`. If there are no such factors, returns a row in which
    /// the sum fails.
    pub(crate) fn solve(&self, mut right: Vec<Residue>) -> Result<Vec<Residue>, u32> {
        let mut factors: Vec<Residue> = Vec::with_capacity(self.kept.len());
        for basis in &self.kept {
            let factor = multiply(right[basis.pivot_row as usize], basis.pivot_inverse);
            for &(row, entry) in &basis.entries {
                let slot = &mut right[row as usize];
                *slot = subtract_product(*slot, factor, entry);
            }
            factors.push(factor);
        }
        if let Some(row) = right.iter().position(|&rest| rest != 0) {
            return Err(row as u32);
        }
        // Convert factors of the reduced columns to factors of the original columns.
        for (index, basis) in self.kept.iter().enumerate().rev() {
            for &(earlier, multiple) in &basis.subtracted {
                factors[earlier as usize] =
                    subtract_product(factors[earlier as usize], factors[index], multiple);
            }
        }
        Ok(factors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::PRIME;
    use proptest::prelude::*;

    fn columns() -> impl Strategy<Value = Vec<Vec<i64>>> {
        let column = proptest::collection::vec(prop_oneof![3 => Just(0i64), 2 => -2i64..=2], 6);
        proptest::collection::vec(column, 1..9)
    }

    fn sparse(column: &[i64]) -> Column {
        let rows = column.iter().enumerate();
        rows.filter(|(_, entry)| **entry != 0)
            .map(|(row, &entry)| (row as u32, entry))
            .collect()
    }

    /// Computes the rank by fraction-free elimination of dense integer rows.
    fn rank(columns: &[Vec<i64>]) -> usize {
        let mut rows: Vec<Vec<i128>> = columns
            .iter()
            .map(|c| c.iter().map(|&x| i128::from(x)).collect())
            .collect();
        let mut rank = 0;
        for k in 0..6 {
            let Some(pivot) = (rank..rows.len()).find(|&i| rows[i][k] != 0) else {
                continue;
            };
            rows.swap(rank, pivot);
            for i in rank + 1..rows.len() {
                let (a, b) = (rows[rank][k], rows[i][k]);
                let pivot = rows[rank].clone();
                for (x, p) in rows[i].iter_mut().zip(pivot) {
                    *x = *x * a - p * b;
                }
            }
            rank += 1;
        }
        rank
    }

    proptest! {
        #[test]
        fn keeps_exactly_the_independent_columns(columns in columns(), touched in proptest::collection::vec(0u32..4, 6)) {
            let mut elimination = Elimination::new(touched);
            let mut kept: Vec<Vec<i64>> = Vec::new();
            for column in columns {
                let mut with = kept.clone();
                with.push(column.clone());
                let independent = rank(&with) > rank(&kept);
                let verdict = elimination.insert(&sparse(&column), Limits::NONE);
                prop_assert_eq!(verdict == Verdict::Independent, independent);
                if independent {
                    kept = with;
                }
            }
        }

        #[test]
        fn finds_the_factors_of_a_combination(columns in columns(), factors in proptest::collection::vec(0u64..1 << 40, 9)) {
            let mut elimination = Elimination::new(vec![0; 6]);
            let mut right = vec![0i128; 6];
            let mut used = Vec::new();
            for (column, factor) in columns.iter().zip(factors) {
                if elimination.insert(&sparse(column), Limits::NONE) == Verdict::Independent {
                    used.push(factor);
                    for (r, &entry) in right.iter_mut().zip(column) {
                        *r += i128::from(entry) * i128::from(factor);
                    }
                }
            }
            let right = right.into_iter().map(residue).collect();
            prop_assert_eq!(elimination.solve(right), Ok(used));
        }
    }

    #[test]
    fn a_right_side_outside_the_span_is_refused() {
        let mut elimination = Elimination::new(vec![0; 2]);
        elimination.insert(&vec![(0, 1), (1, -1)], Limits::NONE);
        assert_eq!(elimination.solve(vec![3, PRIME - 3]), Ok(vec![3]));
        assert!(elimination.solve(vec![3, 3]).is_err());
    }

    #[test]
    fn a_column_beyond_the_limits_is_left_out() {
        let mut elimination = Elimination::new(vec![0; 3]);
        let limits = Limits {
            entries: 1,
            work: 8,
        };
        assert_eq!(
            elimination.insert(&vec![(0, 1), (1, 1)], limits),
            Verdict::TooDense
        );
        assert_eq!(
            elimination.insert(&vec![(0, 1)], limits),
            Verdict::Independent
        );
        assert_eq!(
            elimination.insert(&vec![(0, 1), (1, 1)], limits),
            Verdict::Independent
        );
    }
}
