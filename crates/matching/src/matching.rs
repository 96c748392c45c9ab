//! Matches two versions, from beginning to end.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::both::{Both, Candidates, Weighed};
use crate::evidence::compare;
use crate::features::{Stage, Weights};
use crate::region::Region;
use crate::rounds::{Rounds, converge, matched};
use crate::stage_record::StageRecord;
use crate::votes::Votes;
use crate::{Evidence, Names, Version};

/// The counterpart of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The statement of the first version.
    pub a: u32,
    /// The evidence for the match.
    pub evidence: Evidence,
    /// The total score of the match.
    pub score: f32,
}

/// The counterparts of the statements of a version.
#[derive(Clone, Debug, Default)]
pub struct Matching {
    /// The counterpart of each statement of the second version; `None` if it has none.
    pub of_b: Vec<Option<Match>>,
    /// The number of rounds until nothing changed or the limit was reached.
    pub rounds: u32,
    /// For each statement of the second version, the remaining candidates with their likelihoods,
    /// the likeliest first. Likelihoods are from 0 to 1, and add up to at most 1. The match is the
    /// likeliest candidate, except after [renumbering](Self::renumbered), when merged candidates
    /// may have a higher total likelihood.
    pub likely: Vec<Vec<(u32, f32)>>,
}

/// The smallest likelihood of a match, as a fraction of the likelihood of the likeliest candidate.
const NEARLY: f32 = 0.1;

impl Matching {
    /// Returns the statements of the first version that correspond to a statement of the second,
    /// each with its likelihood, as in Zhang and Gupta (2005, section 6.2). The chosen statement,
    /// usually the likeliest, comes first. It is followed by other candidates that are at least a
    /// tenth as likely as the likeliest. The result is empty if the statement has no match.
    ///
    /// The likelihoods come from the fitted weights, and assume that the statement has a
    /// counterpart. The benchmark (`bench matching`) counts how many matches of each likelihood are
    /// right.
    pub fn matches(&self, b: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        let found = self.of_b.get(b as usize).and_then(Option::as_ref);
        let found = found.map(|found| found.a);
        let likely = self.likely.get(b as usize).map_or(&[][..], Vec::as_slice);
        let most = likely.first().map_or(0.0, |(_, most)| *most);
        let own = found.map(|a| {
            let known = likely.iter().find(|(other, _)| *other == a);
            (a, known.map_or(0.0, |(_, likely)| *likely))
        });
        let others = likely.iter().copied();
        let others = others.filter(move |&(a, likely)| {
            found.is_some_and(|found| found != a) && likely >= NEARLY * most
        });
        own.into_iter().chain(others)
    }

    /// Converts the matching to a first version in which some statements are merged. `to` gives
    /// each statement's number in `a`.
    pub fn renumbered(self, a: &Version, b: &Version, to: &[u32]) -> Self {
        let of_b = self.of_b.into_iter().zip(&b.statements);
        let of_b = of_b.map(|(found, statement)| {
            let mut found = found?;
            found.a = to[found.a as usize];
            let of_a = &a.statements[found.a as usize];
            found.evidence.values = compare(of_a.telling(), statement.telling());
            Some(found)
        });
        let likely = self.likely.into_iter().map(|of| {
            let mut sums: Vec<(u32, f32)> = Vec::new();
            for (a, likely) in of {
                let a = to[a as usize];
                match sums.iter_mut().find(|(known, _)| *known == a) {
                    Some((_, sum)) => *sum += likely,
                    None => sums.push((a, likely)),
                }
            }
            likeliest_first(&mut sums);
            sums
        });
        Self {
            of_b: of_b.collect(),
            rounds: self.rounds,
            likely: likely.collect(),
        }
    }
}

/// Sorts candidates by likelihood, the likeliest first. Ties are in program order.
pub(crate) fn likeliest_first(likely: &mut [(u32, f32)]) {
    likely.sort_unstable_by(|x, y| y.1.total_cmp(&x.1).then(x.0.cmp(&y.0)));
}

/// Finds a counterpart in the first version for each statement of the second version, which is the
/// optimised version. Several statements may have the same counterpart.
///
/// O(statements) per round, times a bounded number of candidates for each.
pub fn match_versions(a: &Version, b: &Version, names: Option<&Names>) -> Matching {
    Matcher::new(a, b, names).by_wholes()
}

/// The candidates of a statement, ascending, with the scores of their actions.
type Kept = Mutex<Vec<(u32, f32)>>;

/// Matches two versions, first by the actions of their statements as a whole, then by the actions
/// in corresponding stretches of both runs.
pub struct Matcher<'v> {
    pub(crate) both: Both<'v>,
    /// For each stage and statement of the second version, the likeliest candidates by their
    /// actions as a whole, with their scores.
    likely: OnceLock<[Weighed; 2]>,
    /// For each stage and statement of the second version, all other candidates that were examined,
    /// ascending. They are kept because each round examines them again. The candidates of the first
    /// stage are dropped when the second begins.
    weighed: [Vec<Kept>; 2],
}

impl<'v> Matcher<'v> {
    /// Prepares to match two versions. O(statements × log statements).
    pub fn new(a: &'v Version, b: &'v Version, names: Option<&'v Names>) -> Self {
        Self::with_weights(a, b, names, Weights::default())
    }

    /// Like [`new`](Self::new), with these weights instead of the fitted weights. O(statements ×
    /// log statements).
    pub fn with_weights(
        a: &'v Version,
        b: &'v Version,
        names: Option<&'v Names>,
        weights: Weights,
    ) -> Self {
        Self {
            both: Both::new(a, b, names, weights),
            likely: OnceLock::new(),
            weighed: [0, 1].map(|_| b.statements.iter().map(|_| Mutex::default()).collect()),
        }
    }

    /// Matches by the statements' actions as a whole. O(statements) per round, times a bounded
    /// number of candidates for each.
    pub fn by_wholes(&self) -> Matching {
        self.by_wholes_telling(None)
    }

    /// Like [`by_wholes`](Self::by_wholes), but without choosing matches together and without
    /// likelihoods. This is enough to know which functions correspond.
    pub fn roughly(&self) -> Matching {
        let none = vec![None; self.both.b.statements.len()];
        converge(&Rounds::new(self, None), none).0
    }

    /// Like [`by_wholes`](Self::by_wholes), and reports the final features of each candidate.
    pub fn by_wholes_telling(&self, to: Option<&mut dyn FnMut(StageRecord)>) -> Matching {
        let none = vec![None; self.both.b.statements.len()];
        let rounds = Rounds::new(self, None);
        let found = matched(&rounds, none);
        if let Some(to) = to {
            rounds.tell(&found.of_b, to);
        }
        found
    }

    /// Matches by the statements' actions as a whole and by corresponding stretches of both runs.
    /// `before` is the matching with which the stretches were found. O(statements) per round as
    /// before, plus the product of the two versions' executions in each stretch.
    pub fn by_regions(&self, regions: &[Region<'_>], before: &Matching) -> Matching {
        self.by_regions_telling(regions, before, None)
    }

    /// Like [`by_regions`](Self::by_regions), and reports the final features of each candidate.
    pub fn by_regions_telling(
        &self,
        regions: &[Region<'_>],
        before: &Matching,
        to: Option<&mut dyn FnMut(StageRecord)>,
    ) -> Matching {
        for kept in &self.weighed[Stage::Wholes as usize] {
            std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let votes = Votes::new(self.both.a, self.both.b, regions, before);
        let rounds = Rounds::new(self, Some(votes));
        let found = matched(&rounds, before.of_b.clone());
        if let Some(to) = to {
            rounds.tell(&found.of_b, to);
        }
        found
    }

    /// Returns the matching that would result if each statement were matched while all other
    /// statements had only right matches. `right` decides whether a statement of the second version
    /// corresponds to a statement of the first. `before` is the matching with which the stretches
    /// `regions` were found. `found` is the result of [`by_regions`](Self::by_regions) for them.
    /// The result shows how many errors are caused only by errors nearby. Takes as long as
    /// [`by_regions`](Self::by_regions).
    pub fn if_others_were_right(
        &self,
        regions: &[Region<'_>],
        before: &Matching,
        found: &Matching,
        right: &(dyn Fn(u32, u32) -> bool + Sync),
    ) -> Matching {
        let votes = Votes::new(self.both.a, self.both.b, regions, before);
        let rounds = Rounds::new(self, Some(votes));
        Matching {
            of_b: rounds.if_others_were_right(&found.of_b, right),
            ..Matching::default()
        }
    }

    /// Reports the scores of a statement's candidates by the actions of both statements as a whole.
    /// The candidates must be in ascending order.
    pub(crate) fn weigh(
        &self,
        stage: Stage,
        b: u32,
        candidates: &[u32],
        mut told: impl FnMut(u32, f32),
    ) {
        let known = &self.weighed[stage as usize][b as usize];
        // Each critical section leaves the list complete.
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut more = Vec::new();
        let mut side = None;
        let mut next = 0;
        for &a in candidates {
            next += known[next..].partition_point(|(known, _)| *known < a);
            let weight = match known.get(next).filter(|(known, _)| *known == a) {
                Some((_, weight)) => *weight,
                None => {
                    let side = side.get_or_insert_with(|| Candidates::new(&self.both, b, stage));
                    let weight = side.weigh(a);
                    more.push((a, weight));
                    weight
                }
            };
            told(a, weight);
        }
        if !more.is_empty() {
            known.append(&mut more);
            known.sort_unstable_by_key(|(a, _)| *a);
        }
    }

    /// Returns the candidates with the best scores, independent of other matches and of stretches.
    pub(crate) fn likely(&self, stage: Stage) -> &[Vec<(u32, f32)>] {
        &self.likely.get_or_init(|| self.both.likely())[stage as usize]
    }
}
