//! Ranks values by how well they separate failing runs from passing runs.
//!
//! As in statistical debugging (Liblit, Naik, Zheng, Aiken and Jordan, "Scalable statistical bug
//! isolation", 2005, sections 2 and 3), each statement is a site with predicates. A predicate
//! states that some value had a given sign, or was outside the range of a passing run. Predicates
//! are left out if they state only that their statement was executed, or if their Increase(P) is
//! not positive. Like lines, predicates are ranked by Ochiai's coefficient.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::ranges::{Number, Range};
use crate::matching::StatementSite;

/// A predicate on the values of a statement. It holds in a run if some value satisfies it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Predicate {
    /// Some value is less than 0.
    Negative,
    /// Some value is 0. A test that does not hold counts as 0, and so does a branch that is not
    /// taken.
    Zero,
    /// Some value is greater than 0. A test that holds counts as 1, and so does a branch that is
    /// taken.
    Positive,
    /// Some value is greater than this number.
    Above(Number),
    /// Some value is less than this number.
    Below(Number),
}

/// A statement, with the predicate on its values that best separates failing from passing runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedValue {
    /// The place of the statement.
    pub place: StatementSite,
    /// The predicate on the statement's values that best separates the runs.
    pub predicate: Predicate,
    /// Whether the statement's values are truth values.
    pub is_truth: bool,
    /// The number of failing runs in which the predicate holds.
    pub failing: usize,
    /// The number of passing runs in which the predicate holds.
    pub passing: usize,
    /// Ochiai's coefficient of the predicate.
    pub score: f64,
    /// The numbers of failing and of passing runs that executed the statement.
    pub executed: [usize; 2],
}

/// Runs, each represented by the ranges of its statements' values.
type Executions = [BTreeMap<StatementSite, Range>];

/// Ranks statements by how well a predicate on their values separates failing runs from passing
/// runs. A statement is ranked by its best predicate. It is included only if failures are more
/// frequent where the predicate holds than where the statement was executed. O(statements · runs²).
pub fn rank_values(passing: &Executions, failing: &Executions) -> Vec<RankedValue> {
    let mut places: Vec<StatementSite> = failing.iter().flat_map(BTreeMap::keys).copied().collect();
    places.sort_unstable();
    places.dedup();
    let all = failing.len();
    let rows = places
        .into_iter()
        .filter_map(|place| best(place, passing, failing));
    let mut rows: Vec<RankedValue> = rows
        .map(|row| RankedValue {
            score: row.failing as f64 / ((all * (row.failing + row.passing)) as f64).sqrt(),
            ..row
        })
        .collect();
    let of = |row: &RankedValue| (row.failing, row.passing);
    rows.sort_by(|x, y| {
        let order = telling(of(y), of(x));
        // A statement is more informative if passing runs also execute it but produce different
        // values.
        order
            .then(y.executed[1].cmp(&x.executed[1]))
            .then(x.place.cmp(&y.place))
    });
    rows
}

/// Returns the predicate of a statement that best separates the runs.
fn best(place: StatementSite, passing: &Executions, failing: &Executions) -> Option<RankedValue> {
    let of = |executions: &Executions| -> Vec<Range> {
        let ranges = executions.iter().filter_map(|ranges| ranges.get(&place));
        ranges.copied().collect()
    };
    let (failing, passing) = (of(failing), of(passing));
    let executed = [failing.len(), passing.len()];
    let is_truth = failing
        .iter()
        .any(|range| matches!(range.largest, Number::Truth(_)));
    let mut predicates = vec![Predicate::Zero, Predicate::Positive];
    if !is_truth {
        predicates.push(Predicate::Negative);
        predicates.extend(passing.iter().map(|range| Predicate::Above(range.largest)));
        predicates.extend(passing.iter().map(|range| Predicate::Below(range.smallest)));
    }
    let counted = predicates.into_iter().map(|predicate| {
        let holds = |range: &&Range| holds(predicate, range);
        let counts = (
            failing.iter().filter(holds).count(),
            passing.iter().filter(holds).count(),
        );
        (predicate, counts)
    });
    // Among equal predicates, the first wins, so signs come before numbers.
    let (predicate, counts) = counted.fold(
        None,
        |best: Option<(Predicate, (usize, usize))>, next| match best {
            Some(known) if telling(next.1, known.1) != Ordering::Greater => Some(known),
            _ => Some(next),
        },
    )?;
    // Liblit's Increase compares two shares of failing runs: among the runs where the predicate
    // holds, and among the runs where it was observed.
    let increases = counts.0 * (executed[0] + executed[1]) > executed[0] * (counts.0 + counts.1);
    increases.then_some(RankedValue {
        place,
        predicate,
        is_truth,
        failing: counts.0,
        passing: counts.1,
        score: 0.0,
        executed,
    })
}

fn holds(predicate: Predicate, range: &Range) -> bool {
    match predicate {
        Predicate::Negative => range.signs[0],
        Predicate::Zero => range.signs[1],
        Predicate::Positive => range.signs[2],
        Predicate::Above(than) => range.largest > than,
        Predicate::Below(than) => range.smallest < than,
    }
}

/// Compares two predicates by ef² / (ef + ep). This is the square of Ochiai's coefficient, times a
/// factor common to all predicates.
fn telling(x: (usize, usize), y: (usize, usize)) -> Ordering {
    let part = |(failing, passing): (usize, usize)| {
        let failing = failing as u128;
        (failing * failing, (failing + passing as u128).max(1))
    };
    let ((xn, xd), (yn, yd)) = (part(x), part(y));
    (xn * yd).cmp(&(yn * xd))
}

#[cfg(test)]
mod tests {
    use afterimage_ids::{EntityRef, FuncId, OpId};

    use super::*;

    fn place(op: usize) -> StatementSite {
        StatementSite {
            function: FuncId::new(0),
            op: OpId::new(op),
        }
    }

    fn execution(statements: &[(usize, &[i64])]) -> BTreeMap<StatementSite, Range> {
        let ranges = statements.iter().map(|&(op, values)| {
            let range = Range {
                smallest: Number::Integer(*values.iter().min().unwrap()),
                largest: Number::Integer(*values.iter().max().unwrap()),
                signs: [-1, 0, 1].map(|sign| values.iter().any(|value| value.signum() == sign)),
            };
            (place(op), range)
        });
        ranges.collect()
    }

    #[test]
    fn what_passing_executions_never_gave_comes_first() {
        let passing = [
            execution(&[(1, &[3, 9]), (2, &[5]), (3, &[0, 1])]),
            execution(&[(1, &[4]), (2, &[5]), (3, &[0])]),
        ];
        let failing = [
            execution(&[(1, &[12, 4]), (2, &[5]), (3, &[1]), (4, &[7])]),
            execution(&[(1, &[10]), (2, &[5]), (3, &[-1]), (4, &[7])]),
        ];
        let rows = rank_values(&passing, &failing);
        let told: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.place.op.index(),
                    row.predicate,
                    row.failing,
                    row.passing,
                )
            })
            .collect();
        // Statement 2 produced the same value in all runs. The values of statement 4 add nothing to
        // the fact that it was executed.
        assert_eq!(
            told,
            [
                (1, Predicate::Above(Number::Integer(9)), 2, 0),
                (3, Predicate::Negative, 1, 0),
            ]
        );
        assert_eq!(rows[0].score, 1.0);
        assert!((rows[1].score - 0.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(rows[0].executed, [2, 2]);
    }

    #[test]
    fn signs_are_preferred_to_numbers_that_tell_as_much() {
        let passing = [execution(&[(1, &[1, 2])])];
        let failing = [execution(&[(1, &[-3, 2])])];
        let rows = rank_values(&passing, &failing);
        assert_eq!(rows[0].predicate, Predicate::Negative);
    }
}
