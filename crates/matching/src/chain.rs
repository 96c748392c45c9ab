//! Chooses the matches of a function's statements together, so that successive statements have
//! successive counterparts.
//!
//! A round chooses the best candidate of each statement, given the matches of the previous round.
//! If values are weak evidence, as in a row of stores of 0, the counterparts of many successive
//! statements can be off by one place. Moving one counterpart alone then improves nothing. Dynamic
//! programming finds the best sequence of candidates (Viterbi 1967).

use crate::rounds::Judged;

/// The number of a statement's best candidates to consider.
const CANDIDATES: usize = 8;
/// The maximum distance, in statements, at which a counterpart counts as shortly after the previous
/// statement's counterpart.
const SHORTLY: i64 = 12;
/// Beyond this distance, in statements, a later counterpart counts as far from the previous
/// statement's counterpart.
const BEHIND: i64 = 40;
/// The weights of a counterpart at three positions: shortly after the previous statement's
/// counterpart, later, or far from it in the same function. Weights twice as large work equally
/// well (`docs/lessons/matching.md`).
const FOLLOWS: [f32; 3] = [1.0, 0.5, 0.2];

/// The candidates of a statement, with the best sequence up to each.
#[derive(Default)]
struct Link {
    candidates: Vec<Judged>,
    /// For each candidate, the total score up to this link, and the predecessor in the previous
    /// link.
    sums: Vec<(f32, usize)>,
}

/// The statements of a function of the second version, in program order.
#[derive(Default)]
pub(crate) struct Chain {
    links: Vec<Link>,
}

impl Chain {
    /// Adds the next statement with its candidates, at least one. `function` returns the function
    /// of a statement in the first version.
    pub fn push(&mut self, mut candidates: Vec<Judged>, function: impl Fn(u32) -> u32) {
        let by_score = |x: &Judged, y: &Judged| y.score.total_cmp(&x.score).then(x.a.cmp(&y.a));
        candidates.sort_by(by_score);
        candidates.truncate(CANDIDATES);
        let before = self.links.last();
        let sum = |found: &Judged| match before {
            None => (found.score, 0),
            Some(before) => {
                let ways = before.candidates.iter().zip(&before.sums);
                let ways = ways.map(|(other, &(sum, _))| {
                    let same = function(other.a) == function(found.a);
                    sum + if same { follows(other.a, found.a) } else { 0.0 }
                });
                let (way, most) = first_of_most(ways);
                (found.score + most, way)
            }
        };
        let sums = candidates.iter().map(sum).collect();
        self.links.push(Link { candidates, sums });
    }

    /// Returns the sequence of candidates with the best total, one for each statement. O(statements
    /// × candidates²), including [`push`](Self::push).
    pub fn best(mut self) -> Vec<Judged> {
        let mut best = Vec::with_capacity(self.links.len());
        let last = self.links.last().map_or(0, |last| {
            first_of_most(last.sums.iter().map(|&(sum, _)| sum)).0
        });
        let mut at = last;
        for link in self.links.iter_mut().rev() {
            best.push(link.candidates.swap_remove(at));
            at = link.sums[at].1;
        }
        best.reverse();
        best
    }
}

/// Returns the score for the position of a counterpart relative to the previous statement's
/// counterpart.
fn follows(before: u32, a: u32) -> f32 {
    match i64::from(a) - i64::from(before) {
        distance if !(-BEHIND..=BEHIND).contains(&distance) => FOLLOWS[2],
        distance if distance > SHORTLY => FOLLOWS[1],
        distance if distance > 0 => FOLLOWS[0],
        _ => 0.0,
    }
}

/// Returns the largest number, with the position of its first occurrence.
fn first_of_most(all: impl Iterator<Item = f32>) -> (usize, f32) {
    all.enumerate().fold(
        (0, f32::MIN),
        |most, (at, sum)| if sum > most.1 { (at, sum) } else { most },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surroundings::Around;

    fn candidate(a: u32, score: f32) -> Judged {
        let around = Around::default();
        Judged { a, score, around }
    }

    /// Returns the best total of all sequences, found by trying each.
    fn naive(all: &[Vec<(u32, f32)>], before: Option<u32>) -> f32 {
        let Some((first, rest)) = all.split_first() else {
            return 0.0;
        };
        let sums = first.iter().map(|&(a, score)| {
            let edge = before.map_or(0.0, |before| {
                if before / 100 == a / 100 {
                    follows(before, a)
                } else {
                    0.0
                }
            });
            score + edge + naive(rest, Some(a))
        });
        sums.fold(f32::MIN, f32::max)
    }

    #[test]
    fn a_row_of_equal_statements_is_matched_in_order() {
        let mut chain = Chain::default();
        for at in 0..5u32 {
            // Only the last statement is distinguishable.
            let score = |a| if at == 4 && a == 4 { 3.5 } else { 3.0 };
            let candidates = (0..5).map(|a| candidate(a, score(a))).collect();
            chain.push(candidates, |_| 0);
        }
        let found = chain.best();
        assert_eq!(Vec::from_iter(found.iter().map(|m| m.a)), [0, 1, 2, 3, 4]);
        assert!(Chain::default().best().is_empty());
    }

    #[test]
    fn the_best_sequence_is_found() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let length = 1 + random(6);
            let mut all: Vec<Vec<(u32, f32)>> = Vec::new();
            for _ in 0..length {
                let count = 1 + random(4);
                // Use multiples of 1/4, so that sums are exact.
                let one = |_| (random(230) as u32, random(20) as f32 / 4.0);
                let mut candidates = Vec::from_iter((0..count).map(one));
                candidates.sort_by_key(|(a, _)| *a);
                candidates.dedup_by_key(|(a, _)| *a);
                all.push(candidates);
            }
            let mut chain = Chain::default();
            for candidates in &all {
                let candidates = candidates.iter().map(|&(a, score)| candidate(a, score));
                chain.push(candidates.collect(), |a| a / 100);
            }
            let found = chain.best();
            let chosen = found.iter().map(|m| vec![(m.a, m.score)]);
            let sum = naive(&Vec::from_iter(chosen), None);
            assert!((sum - naive(&all, None)).abs() < 1e-3);
        }
    }
}
