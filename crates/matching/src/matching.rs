//! Matching of two versions, from beginning to end.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::both::{Both, Candidates, Weighed};
use crate::evidence::compare;
use crate::features::{Stage, Weights};
use crate::region::Region;
use crate::rounds::{Rounds, matched, settled};
use crate::told::StageRecord;
use crate::votes::Votes;
use crate::{Evidence, Names, Version};

/// The counterpart of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The statement of the first version.
    pub a: u32,
    /// What speaks for it.
    pub evidence: Evidence,
    /// For how much that counts, in all.
    pub score: f32,
}

/// The counterparts of the statements of a version.
#[derive(Clone, Debug, Default)]
pub struct Matching {
    /// By statement of the second version; `None` where nothing corresponds.
    pub of_b: Vec<Option<Match>>,
    /// How many rounds it took until nothing changed, or was given up.
    pub rounds: u32,
    /// By statement of the second version the candidates that are left, the likeliest first, and how likely each is: 0 to 1, in all at most 1. The match is among them: the likeliest, unless statements were [renumbered](Self::renumbered), where several that are one may be likelier together.
    pub likely: Vec<Vec<(u32, f32)>>,
}

/// What is so much less likely than the likeliest candidate is no match.
const NEARLY: f32 = 0.1;

impl Matching {
    /// The statements of the first version that one of the second corresponds to, one or more, as Zhang and Gupta (2005, section 6.2) have it: the one that was chosen first, in most cases the likeliest, then those that are at least a tenth as likely as the
    /// likeliest, each with how likely it is. Nothing if it has no match.
    ///
    /// How likely a match is, is what the fitted weights say, of a statement that has a counterpart at all. The benchmark (`bench matching`) counts how many are right by how likely they are said to be.
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

    /// The same, where of the first version's statements some are one: by statement there, which one it is of `a`.
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

/// Of equal ones the first in the program.
pub(crate) fn likeliest_first(likely: &mut [(u32, f32)]) {
    likely.sort_unstable_by(|x, y| y.1.total_cmp(&x.1).then(x.0.cmp(&y.0)));
}

/// Finds for each statement of the second version, the optimised one, a counterpart in the first. Several may have the same.
///
/// O(statements) a round, times the candidates of each, of which there is a bounded number.
pub fn match_versions(a: &Version, b: &Version, names: Option<&Names>) -> Matching {
    Matcher::new(a, b, names).by_wholes()
}

/// Candidates of a statement, ascending, and for how much counts what they did.
type Kept = Mutex<Vec<(u32, f32)>>;

/// Matches two versions, first by what their statements did as a whole, and then by what they did in stretches of both runs that correspond.
pub struct Matcher<'v> {
    pub(crate) both: Both<'v>,
    /// By stage and statement of the second version, the most likely candidates by what they did as a whole, and for how much that counts.
    likely: OnceLock<[Weighed; 2]>,
    /// The same of other candidates that were looked at, ascending: they are looked at in each round again. Those of the first stage are let go when the second begins.
    weighed: [Vec<Kept>; 2],
}

impl<'v> Matcher<'v> {
    /// O(statements × log statements).
    pub fn new(a: &'v Version, b: &'v Version, names: Option<&'v Names>) -> Self {
        Self::with_weights(a, b, names, Weights::default())
    }

    /// Weighs what speaks for a pair by other weights than those that were fitted. O(statements × log statements).
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

    /// By what the statements did as a whole. O(statements) a round, times the candidates of each, of which there is a bounded number.
    pub fn by_wholes(&self) -> Matching {
        self.by_wholes_telling(None)
    }

    /// The same, but no matches are chosen together, and how likely other candidates are is not told: enough to know which functions correspond.
    pub fn roughly(&self) -> Matching {
        let none = vec![None; self.both.b.statements.len()];
        settled(&Rounds::new(self, None), none).0
    }

    /// As [`by_wholes`](Self::by_wholes), and tells what spoke for each candidate in the end.
    pub fn by_wholes_telling(&self, to: Option<&mut dyn FnMut(StageRecord)>) -> Matching {
        let none = vec![None; self.both.b.statements.len()];
        let rounds = Rounds::new(self, None);
        let found = matched(&rounds, none);
        if let Some(to) = to {
            rounds.tell(&found.of_b, to);
        }
        found
    }

    /// With what stretches of both runs say that correspond; `before` is what they were found with. O(statements) a round as before; and what the stretches hold of one
    /// version times what they hold of the other.
    pub fn by_regions(&self, regions: &[Region<'_>], before: &Matching) -> Matching {
        self.by_regions_telling(regions, before, None)
    }

    /// The same, and tells what spoke for each candidate in the end.
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

    /// What would be matched if the counterparts of all other statements were right, each for itself: `right` tells of a statement of the second version and one of the first whether they correspond. `found` is what was found with these stretches, `before` what they
    /// were found with. It tells how much of what is wrong is wrong only because what is around is. Takes as long as [`by_regions`](Self::by_regions).
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

    /// Tells for candidates of a statement of the second version, which ascend, for how much counts what they and it did as a whole.
    pub(crate) fn weigh(
        &self,
        stage: Stage,
        b: u32,
        candidates: &[u32],
        mut told: impl FnMut(u32, f32),
    ) {
        let known = &self.weighed[stage as usize][b as usize];
        // What is behind the lock is whole after each statement that holds it.
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

    /// The candidates for which most speaks, whatever else is matched or what stretches say.
    pub(crate) fn likely(&self, stage: Stage) -> &[Vec<(u32, f32)>] {
        &self.likely.get_or_init(|| self.both.likely())[stage as usize]
    }
}
