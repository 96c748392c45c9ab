//! Finds the functions of the first version that still exist as functions in the second version.

use std::cmp::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::evidence::compare;
use crate::version::Entered;
use crate::{Matching, Names, Values, Version};

/// The maximum number of functions without votes to compare with a function. These functions have
/// the same type and were entered equally often.
const MOST: usize = 64;
/// The factor for the natural logarithm of a candidate's votes. The votes are the number of
/// statements with counterparts in the candidate.
const VOTES: f32 = 0.5;
/// The number added to the votes, so that a function without votes has a score.
const NO_VOTE: f32 = 0.3;
/// The score if both functions were entered equally often.
const AS_OFTEN: f32 = 2.0;
/// The score if the candidate was entered less often than the function in the second version.
/// Inlining omits calls but adds none.
const LESS_OFTEN: f32 = -3.0;
/// The score for the same type.
const SAME_TYPE: f32 = 2.0;
/// The score for the same name.
const SAME_NAME: f32 = 6.0;
/// The score for a different number of parameters.
const OTHER_NUMBER: f32 = -2.0;
/// The maximum number of different values for which a parameter counts half. A parameter with few
/// values is weak evidence.
const FEW: usize = 3;

/// Returns the functions of the first version that are the likeliest counterparts of functions in
/// the second. The other functions were inlined, at least mostly, or not compiled at all.
///
/// If other functions were inlined into a function, the counterparts of its statements lie in
/// several functions. If many small functions were inlined, most of these counterparts lie outside
/// the function's own counterpart. So the frequency of entries, the parameters, the types and, if
/// known, the names of functions also count. O(statements + functions × log functions).
pub fn standing(
    a: &Version,
    b: &Version,
    matching: &Matching,
    names: Option<&Names>,
) -> FxHashSet<u32> {
    let mut votes: FxHashMap<u32, FxHashMap<u32, u32>> = FxHashMap::default();
    let mut standing = FxHashSet::default();
    let mut certain = FxHashSet::default();
    for (of_b, found) in b.statements.iter().zip(&matching.of_b) {
        let Some(found) = found else { continue };
        let of_a = &a.statements[found.a as usize];
        if found.evidence.same_code {
            standing.insert(of_a.function);
            certain.insert(of_b.function);
        } else {
            let votes = votes.entry(of_b.function).or_default();
            *votes.entry(of_a.function).or_default() += 1;
        }
    }
    let (groups_of_a, groups_of_b) = (groups(a, &standing), groups(b, &certain));
    let taken = standing.clone();
    for (key, of_b) in &groups_of_b {
        let of_a = groups_of_a.get(key).map_or(&[][..], Vec::as_slice);
        for (at, function) in of_b.iter().enumerate() {
            let votes = votes.remove(function).unwrap_or_default();
            // The functions of a group were entered in roughly the same order.
            let expected = at * of_a.len() / of_b.len();
            let first = expected.saturating_sub(MOST / 2);
            let likely = of_a.iter().skip(first).take(MOST).copied();
            let voted = votes.keys().copied();
            let named = names.and_then(|names| names.same.get(function).copied());
            let others = voted.chain(named).filter(|f| !taken.contains(f));
            let candidates = likely.chain(others).filter_map(|candidate| {
                let entered = a.entered.get(&candidate)?;
                let votes = votes.get(&candidate).copied().unwrap_or(0);
                let mut score = score(votes, entered, &b.entered[function]);
                if named == Some(candidate) {
                    score += SAME_NAME;
                }
                Some((score, entered.first, candidate))
            });
            let best = candidates.max_by(by_score_and_first);
            // The copies of a mostly inlined function must be distinguished.
            let whole =
                best.filter(|(_, _, at)| a.entered[at].count <= 2 * b.entered[function].count);
            standing.extend(whole.map(|(_, _, candidate)| candidate));
        }
    }
    standing
}

/// Compares by score. Ties go to the function that was entered first, because it may pass its own
/// arguments on to another function.
fn by_score_and_first(x: &(f32, u64, u32), y: &(f32, u64, u32)) -> Ordering {
    let first = (y.1, y.2).cmp(&(x.1, x.2));
    x.0.total_cmp(&y.0).then(first)
}

/// A function's frequency of entries, and its type.
type Key = (u64, u64);

/// Returns the functions that were entered and are not in `but`, grouped by frequency and type, in
/// the order of their first entries.
fn groups(version: &Version, but: &FxHashSet<u32>) -> FxHashMap<Key, Vec<u32>> {
    let mut groups: FxHashMap<Key, Vec<u32>> = FxHashMap::default();
    let entered = version.entered.iter();
    for (function, entered) in entered.filter(|(function, _)| !but.contains(function)) {
        let key = (entered.count, entered.ty);
        groups.entry(key).or_default().push(*function);
    }
    for group in groups.values_mut() {
        group.sort_unstable_by_key(|function| (version.entered[function].first, *function));
    }
    groups
}

/// Returns the score of a function of the first version as the counterpart of a function of the
/// second. The weights maximise the number of functions of bzip2, Lua, zstd, batsat, jpeg,
/// pulldown-cmark and syn that get the counterpart with the same name.
fn score(votes: u32, a: &Entered, b: &Entered) -> f32 {
    let by_votes = VOTES * (votes as f32 + NO_VOTE).ln();
    let by_count = match a.count.cmp(&b.count) {
        Ordering::Equal => AS_OFTEN,
        Ordering::Less => LESS_OFTEN,
        Ordering::Greater => 0.0,
    };
    let by_type = if a.ty == b.ty {
        SAME_TYPE
    } else if a.parameters.len() == b.parameters.len() {
        0.0
    } else {
        OTHER_NUMBER
    };
    let parameters = a.parameters.iter().zip(&b.parameters);
    let by_parameters = parameters.map(|(a, b)| {
        let same = match compare(a, b) {
            Values::Different => -1.0,
            Values::Unknown | Values::Some => 0.0,
            Values::Part => 0.7,
            Values::Prefix | Values::Permuted => 1.0,
            Values::Shifted => 1.5,
            Values::Same => 2.0,
        };
        if b.sample.len() > FEW {
            same
        } else {
            same / 2.0
        }
    });
    by_votes + by_count + by_type + by_parameters.sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Evidence, Match, Sketch, Statement};

    const UNARY: u64 = 1;
    const BINARY: u64 = 2;

    fn sketch(values: impl IntoIterator<Item = u64>) -> Sketch {
        let mut sketch = Sketch::default();
        values.into_iter().for_each(|value| sketch.add(value));
        sketch
    }

    /// A function with statements, entered with these parameter values.
    struct Function {
        statements: usize,
        first: u64,
        ty: u64,
        parameter: Vec<u64>,
    }

    fn function(
        statements: usize,
        first: u64,
        ty: u64,
        parameter: impl IntoIterator<Item = u64>,
    ) -> Function {
        Function {
            statements,
            first,
            ty,
            parameter: Vec::from_iter(parameter),
        }
    }

    fn version(functions: &[Function]) -> Version {
        let statement = |function| Statement {
            values: Box::new(sketch([1])),
            ..Statement::plain(function, Class::Compute)
        };
        let of = (0..).zip(functions);
        let statements = of.clone().flat_map(|(number, function)| {
            std::iter::repeat_with(move || statement(number)).take(function.statements)
        });
        let entered = of.map(|(number, function)| {
            let entered = Entered {
                count: function.parameter.len() as u64,
                first: function.first,
                ty: function.ty,
                parameters: vec![sketch(function.parameter.iter().copied()); function.ty as usize],
            };
            (number, entered)
        });
        Version {
            statements: statements.collect(),
            length: 1000,
            entered: entered.collect(),
            ..Version::default()
        }
    }

    /// Builds a matching where each statement of the second version has this counterpart.
    fn matching(counterparts: &[u32], same_code: bool) -> Matching {
        let of = |&a: &u32| {
            Some(Match {
                a,
                evidence: Evidence {
                    same_code,
                    ..Evidence::PLAIN
                },
                score: 1.0,
            })
        };
        Matching {
            of_b: counterparts.iter().map(of).collect(),
            ..Matching::default()
        }
    }

    fn found(a: &[Function], b: &[Function], counterparts: &[u32]) -> Vec<u32> {
        let (a, b) = (version(a), version(b));
        let found = standing(&a, &b, &matching(counterparts, false), None);
        let mut found = Vec::from_iter(found);
        found.sort_unstable();
        found
    }

    #[test]
    fn a_function_into_which_others_were_inlined_is_told_by_what_it_is_given() {
        // The second function is called four times from the first, and contains most counterparts.
        let a = [
            function(2, 5, UNARY, 10..20),
            function(6, 6, UNARY, 10..50),
            function(1, 1, BINARY, 10..20),
        ];
        let b = [function(8, 3, UNARY, 10..20)];
        assert_eq!(found(&a, &b, &[0, 2, 3, 4, 5, 6, 7, 2]), [0]);
    }

    #[test]
    fn of_functions_that_are_given_the_same_the_one_that_calls_stands() {
        let a = [function(0, 4, UNARY, 0..9), function(0, 5, UNARY, 0..9)];
        let b = [function(1, 2, UNARY, 0..9)];
        assert_eq!(found(&a, &b, &[]), [0]);
    }

    #[test]
    fn what_is_mostly_inlined_is_told_apart_though_a_copy_stands() {
        let b = [function(1, 2, UNARY, 0..10)];
        let of = |times| found(&[function(2, 1, UNARY, 0..times)], &b, &[1]);
        assert!(of(20) == [0] && of(21).is_empty());
    }

    #[test]
    fn a_name_decides_and_the_same_code_is_certain() {
        let a = [function(1, 4, UNARY, 0..9), function(1, 5, UNARY, 0..9)];
        let (a, b) = (version(&a), version(&[function(1, 2, UNARY, 0..9)]));
        let names = Names {
            same: FxHashMap::from_iter([(0, 1)]),
        };
        let unmatched = Matching::default();
        let by_name = standing(&a, &b, &unmatched, Some(&names));
        assert_eq!(by_name, FxHashSet::from_iter([1]));
        let by_code = standing(&a, &b, &matching(&[1], true), None);
        assert_eq!(by_code, FxHashSet::from_iter([1]));
    }
}
