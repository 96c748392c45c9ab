//! Matches statements in rounds up to a fixed point. Each round uses the matches of the previous
//! round.

use afterimage_parallel as parallel;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::both::{Both, Candidates, Weighed, strongest};
use crate::chain::Chain;
use crate::evidence::compare;
use crate::features::{Feature, Stage, column};
use crate::matching::likeliest_first;
use crate::stage_record::{Candidate, StageRecord};
use crate::surroundings::{Around, Surroundings};
use crate::votes::Votes;
use crate::{Evidence, Match, Matcher, Matching, Values, Version};

/// The maximum number of rounds, by stage. Few matches change after the third round. The stage with
/// stretches starts from the matches of the first stage.
const ROUNDS: [u32; 2] = [3, 1];
/// The maximum number of users or producers of matched statements that become candidates.
pub(crate) const RELATED: usize = 24;
/// A candidate must be executed with the same value, or near its expected place, for at least this
/// share of a statement's executions in stretches.
const OFTEN: f32 = 0.2;
/// The minimum score of a match.
const ENOUGH: f32 = 2.6;
/// A pair likelier than this is a match even if its values differ and nothing nearby corresponds,
/// because the place of its execution may be enough evidence.
const LIKELY_ENOUGH: f32 = 0.5;
/// The likelihoods, and so the alignments, leave out candidates with at most this likelihood. The
/// best candidate always stays.
const UNLIKELY: f32 = 0.02;

/// Continues from known matches until nothing changes or the limit of rounds is reached, for each
/// statement separately.
pub(crate) fn converge(rounds: &Rounds<'_>, known: Vec<Option<Match>>) -> (Matching, Affinity) {
    let mut affinity = rounds.affinity(&known);
    let mut found = Matching {
        of_b: known,
        rounds: 0,
        likely: Vec::new(),
    };
    for round in 1..=ROUNDS[rounds.stage as usize] {
        let next = rounds.next(&found.of_b, &affinity);
        let which = |found: &[Option<Match>]| -> Vec<Option<u32>> {
            found.iter().map(|m| m.as_ref().map(|m| m.a)).collect()
        };
        let settled = which(&next) == which(&found.of_b);
        found = Matching {
            of_b: next,
            rounds: round,
            likely: Vec::new(),
        };
        if settled {
            break;
        }
        affinity = rounds.affinity(&found.of_b);
    }
    (found, affinity)
}

/// Continues from known matches as [`converge`] does. Then chooses the matches of each function
/// together, once, and runs another round. Finally determines the likelihoods.
pub(crate) fn matched(rounds: &Rounds<'_>, known: Vec<Option<Match>>) -> Matching {
    let (mut found, mut affinity) = converge(rounds, known);
    found.of_b = rounds.together(&found.of_b, &affinity);
    affinity = rounds.affinity(&found.of_b);
    found.of_b = rounds.next(&found.of_b, &affinity);
    affinity = rounds.affinity(&found.of_b);
    (found.likely, found.of_b) = rounds.likelihoods(&found.of_b, &affinity);
    found
}

/// A candidate with its score. Values are compared only for the chosen candidate, because comparing
/// them for all candidates took a sixth of the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub a: u32,
    pub score: f32,
    pub around: Around,
}

/// Returns the candidate with the best score. Ties are in program order.
fn strongest_of(judged: &[Judged]) -> Option<Judged> {
    let order = |x: &&Judged, y: &&Judged| {
        let order = x.score.total_cmp(&y.score);
        order.then(y.a.cmp(&x.a))
    };
    judged.iter().max_by(order).copied()
}

/// Data that does not change from round to round.
pub(crate) struct Rounds<'m> {
    matcher: &'m Matcher<'m>,
    both: &'m Both<'m>,
    a: &'m Version,
    b: &'m Version,
    /// The evidence from stretches of both runs.
    votes: Option<Votes>,
    stage: Stage,
    /// For each statement of the second version, the likeliest candidates with their scores. The
    /// scores come from both statements' actions, as a whole and in the stretches.
    likely: Vec<Vec<(u32, f32)>>,
}

/// Maps a function of the second version and a function of the first version to a share. It is the
/// share of the first-named function's matches that are in the other function, weighted by their
/// evidence. A share of one third already counts as 1.
pub(crate) type Affinity = FxHashMap<(u32, u32), f32>;

impl<'m> Rounds<'m> {
    pub fn new(matcher: &'m Matcher<'m>, votes: Option<Votes>) -> Self {
        let both = &matcher.both;
        let stage = match votes {
            None => Stage::Wholes,
            Some(_) => Stage::Regions,
        };
        let known = matcher.likely(stage);
        let mut rounds = Self {
            matcher,
            both,
            a: both.a,
            b: both.b,
            votes,
            stage,
            likely: Vec::new(),
        };
        rounds.likely = parallel::map(known.len(), |at| rounds.with_votes(at as u32, &known[at]));
        rounds
    }

    /// Returns the likeliest candidates, including the evidence from stretches.
    fn with_votes(&self, at: u32, known: &[(u32, f32)]) -> Vec<(u32, f32)> {
        let mut all = known.to_vec();
        let Some(votes) = &self.votes else {
            return all;
        };
        if self.both.certain[at as usize].is_some() {
            return all;
        }
        let side = Candidates::new(self.both, at, self.stage);
        let mut seen: FxHashSet<u32> = known.iter().map(|k| k.0).collect();
        for (&a, tally) in &votes.with[at as usize] {
            let often = (tally.together as f32).max(tally.near.value());
            let often = often >= OFTEN * votes.executions[at as usize] as f32;
            if often && self.both.may_match(a, side.statement) && seen.insert(a) {
                all.push((a, side.weigh(a)));
            }
        }
        for (a, sum) in &mut all {
            *sum += self.by_votes(*a, at);
        }
        strongest(&mut all);
        all
    }

    fn by_votes(&self, a: u32, b: u32) -> f32 {
        let class = self.b.statements[b as usize].class;
        let weights = self.both.weights.of(self.stage, class);
        let mut sum = 0.0;
        self.tell_votes(a, b, &mut |feature, x| sum += weights.of(feature) * x);
        sum
    }

    fn next(&self, known: &[Option<Match>], affinity: &Affinity) -> Vec<Option<Match>> {
        parallel::map(self.b.statements.len(), |at| {
            let statement = &self.b.statements[at];
            let at = at as u32;
            if let Some(a) = self.both.certain[at as usize] {
                return Some(self.of_same_code(a, at));
            }
            let candidates = self.candidates(at, known);
            let around = Surroundings::new(self.both, at, known, affinity);
            let pairs = candidates.iter();
            let pairs = pairs.map(|&(a, apart)| self.judge(&around, a, apart));
            let pairs = Vec::from_iter(pairs);
            let best = strongest_of(&pairs)?;
            let likely = || {
                let all = pairs.iter().map(|other| (other.score - best.score).exp());
                all.sum::<f32>() < 1.0 / LIKELY_ENOUGH
            };
            let best = self.as_match(best, at);
            let evidence = &best.evidence;
            let is_evident = evidence.values > Values::Different
                || evidence.operands.0 + evidence.users.0 > 0
                || evidence.neighbours.0 > 1
                || statement.operands.is_some();
            (best.score >= ENOUGH && (is_evident || likely())).then_some(best)
        })
    }

    /// Returns the matches of each function's statements, chosen together. Statements without a
    /// match, or with a certain match, stay unchanged.
    fn together(&self, known: &[Option<Match>], affinity: &Affinity) -> Vec<Option<Match>> {
        let statements = &self.b.statements;
        let mut groups = Vec::new();
        let mut first = 0;
        for group in statements.chunk_by(|x, y| x.function == y.function) {
            groups.push(first..first + group.len());
            first += group.len();
        }
        let chosen = parallel::map(groups.len(), |group| {
            let is_open = |at: &usize| self.both.certain[*at].is_none() && known[*at].is_some();
            let (mut open, mut chain) = (Vec::new(), Chain::default());
            for at in groups[group].clone().filter(is_open) {
                let of_b = at as u32;
                let around = Surroundings::new(self.both, of_b, known, affinity);
                let candidates = self.candidates(of_b, known).into_iter();
                let pairs = candidates.map(|(a, apart)| self.judge(&around, a, apart));
                let pairs = Vec::from_iter(pairs);
                if !pairs.is_empty() {
                    chain.push(pairs, |a| self.a.statements[a as usize].function);
                    open.push(at);
                }
            }
            let chosen = open.into_iter().zip(chain.best());
            Vec::from_iter(chosen.map(|(at, best)| (at, self.as_match(best, at as u32))))
        });
        let mut found = known.to_vec();
        for (at, best) in chosen.into_iter().flatten() {
            found[at] = Some(best);
        }
        found
    }

    /// Returns the result of a round in which wrong matches are first replaced by the right
    /// candidates with the best scores. Statements without a right candidate stay unchanged.
    pub fn if_others_were_right(
        &self,
        known: &[Option<Match>],
        right: &(dyn Fn(u32, u32) -> bool + Sync),
    ) -> Vec<Option<Match>> {
        let affinity = self.affinity(known);
        let mended = parallel::map(known.len(), |at| {
            let found = known[at];
            let at = at as u32;
            let is_right = |a: u32| right(at, a);
            let certain = self.both.certain[at as usize].is_some();
            if certain || found.is_some_and(|found| is_right(found.a)) {
                return found;
            }
            let around = Surroundings::new(self.both, at, known, &affinity);
            let candidates = self.candidates(at, known).into_iter();
            let candidates = candidates.filter(|(a, _)| is_right(*a));
            let pairs = candidates.map(|(a, apart)| self.judge(&around, a, apart));
            let best = pairs.max_by(|x, y| x.score.total_cmp(&y.score));
            best.map(|best| self.as_match(best, at)).or(found)
        });
        let affinity = self.affinity(&mended);
        self.next(&mended, &affinity)
    }

    /// Returns the remaining candidates of each statement, with their likelihoods, and the
    /// likeliest candidate of each matched statement.
    fn likelihoods(
        &self,
        known: &[Option<Match>],
        affinity: &Affinity,
    ) -> (Weighed, Vec<Option<Match>>) {
        let judged = parallel::map(self.b.statements.len(), |at| {
            if let Some(a) = self.both.certain[at] {
                return (vec![(a, 1.0)], known[at]);
            }
            let at = at as u32;
            let all = self.candidates(at, known);
            let around = Surroundings::new(self.both, at, known, affinity);
            let judged = all.into_iter();
            let judged = judged.map(|(a, apart)| self.judge(&around, a, apart));
            let judged = Vec::from_iter(judged);
            let Some(best) = strongest_of(&judged) else {
                return Default::default();
            };
            let scores = judged.iter();
            let scores = scores.map(|other| (other.a, (other.score - best.score).exp()));
            let mut scores: Vec<(u32, f32)> = scores.collect();
            let sum: f32 = scores.iter().map(|s| s.1).sum();
            scores.retain_mut(|score| {
                score.1 /= sum;
                score.1 > UNLIKELY || best.a == score.0
            });
            likeliest_first(&mut scores);
            let found = known[at as usize];
            let found = found.map(|found| {
                if found.a == best.a {
                    found
                } else {
                    self.as_match(best, at)
                }
            });
            (scores, found)
        });
        judged.into_iter().unzip()
    }

    /// Returns the likely candidates, and the candidates that existing matches suggest.
    fn candidates(&self, at: u32, known: &[Option<Match>]) -> Vec<(u32, f32)> {
        let statement = &self.b.statements[at as usize];
        let mut candidates = self.likely[at as usize].clone();
        let mut likely = Vec::from_iter(candidates.iter().map(|(a, _)| *a));
        likely.sort_unstable();
        let mut related = Vec::new();
        self.related(at, known, &mut related);
        related.sort_unstable();
        related.dedup();
        related.retain(|&a| self.both.may_match(a, statement) && likely.binary_search(&a).is_err());
        self.matcher.weigh(self.stage, at, &related, |a, weight| {
            candidates.push((a, weight + self.by_votes(a, at)));
        });
        candidates
    }

    /// Reports the evidence from stretches of both runs.
    fn tell_votes(&self, a: u32, b: u32, told: &mut impl FnMut(Feature, f32)) {
        let Some(votes) = &self.votes else {
            return;
        };
        let of_b = &self.b.statements[b as usize];
        let executions = votes.executions[b as usize] as f32;
        if executions == 0.0 {
            return;
        }
        let telling = ((of_b.telling().sample.len() as f32 - 1.0) / 4.0).min(1.0);
        let Some(tally) = votes.with[b as usize].get(&a) else {
            told(Feature::NeverTogether, 1.0);
            if of_b.operands.is_some() {
                told(Feature::NeverTogetherTest, 1.0);
            }
            let of_a = &self.a.statements[a as usize];
            if of_b.telling().sample.len() > 5
                && compare(of_a.telling(), of_b.telling()) >= Values::Permuted
            {
                told(Feature::NeverTogetherLong, 1.0);
            }
            return;
        };
        let together = tally.together as f32 / executions;
        told(Feature::StretchWithin, tally.within as f32 / executions);
        told(
            Feature::StretchWithinSame,
            tally.within_same as f32 / executions,
        );
        told(Feature::StretchNear, tally.near.value() / executions);
        told(Feature::StretchTogether, together);
        told(Feature::StretchEarliest, tally.earliest as f32 / executions);
        told(Feature::StretchLatest, tally.latest as f32 / executions);
        told(Feature::StretchTelling, together * telling);
        told(Feature::StretchAligned, tally.aligned as f32 / executions);
        if tally.aligned * 2 > votes.executions[b as usize] {
            told(Feature::StretchAlignedMost, 1.0);
        }
        if of_b.addresses.is_some() {
            told(Feature::StretchPlaced, tally.placed.value() / executions);
        }
    }

    fn of_same_code(&self, a: u32, b: u32) -> Match {
        let (of_a, of_b) = (
            &self.a.statements[a as usize],
            &self.b.statements[b as usize],
        );
        Match {
            a,
            evidence: Evidence {
                values: compare(of_a.telling(), of_b.telling()),
                operator: of_a.operator == of_b.operator,
                operands: (0, 0),
                users: (0, 0),
                neighbours: (0, 0),
                name: false,
                same_code: true,
            },
            score: ENOUGH,
        }
    }

    /// Adds the users of the producers' counterparts, and the producers of the users' counterparts.
    /// Does the same with the stores and loads of the same data. Also adds the statements around
    /// the counterparts of the previous and the next statement.
    fn related(&self, at: u32, known: &[Option<Match>], into: &mut Vec<u32>) {
        let of = |b: u32| known[b as usize].as_ref().map(|m| m.a as usize);
        for &maker in self.both.of_b.makers[at as usize].iter().take(RELATED) {
            if let Some(a) = of(maker) {
                into.extend(self.both.of_a.users[a].iter().take(RELATED));
            }
        }
        for &user in self.both.of_b.users[at as usize].iter().take(RELATED) {
            if let Some(a) = of(user) {
                into.extend(self.both.of_a.makers[a].iter().take(RELATED));
            }
        }
        for &(store, _) in self.b.statements[at as usize].writers.iter().take(RELATED) {
            if let Some(a) = of(store) {
                let readers = self.both.of_a.readers[a].iter().take(RELATED);
                into.extend(readers.map(|(load, _)| load));
            }
        }
        for &(load, _) in self.both.of_b.readers[at as usize].iter().take(RELATED) {
            if let Some(a) = of(load) {
                into.extend(self.a.statements[a].writers.iter().map(|(store, _)| store));
            }
        }
        let function = self.b.statements[at as usize].function;
        for near in [at.checked_sub(1), at.checked_add(1)].into_iter().flatten() {
            let here = self.b.statements.get(near as usize);
            if here.is_some_and(|here| here.function == function)
                && let Some(a) = of(near)
            {
                let first = a.saturating_sub(8);
                into.extend(first as u32..(a + 9).min(self.a.statements.len()) as u32);
            }
        }
    }

    /// Judges candidate `a` of the statement with the surroundings `around`.
    fn judge(&self, around: &Surroundings<'_>, a: u32, apart: f32) -> Judged {
        let class = self.b.statements[around.b as usize].class;
        let weights = self.both.weights.of(self.stage, class);
        let mut score = apart;
        let around = around.tell(a, &mut |feature, x| score += weights.of(feature) * x);
        Judged { a, score, around }
    }

    /// Returns the match of a candidate with `b`.
    fn as_match(&self, judged: Judged, b: u32) -> Match {
        let of_a = &self.a.statements[judged.a as usize];
        let of_b = &self.b.statements[b as usize];
        let around = judged.around;
        Match {
            a: judged.a,
            evidence: Evidence {
                values: compare(of_a.telling(), of_b.telling()),
                operator: of_a.operator == of_b.operator,
                operands: around.operands,
                users: around.users,
                neighbours: around.neighbours,
                name: around.name,
                same_code: false,
            },
            score: judged.score,
        }
    }

    /// Reports all evidence for or against each candidate, for those statements of the second
    /// version that have several candidates and no certain counterpart.
    pub fn tell(&self, known: &[Option<Match>], to: &mut dyn FnMut(StageRecord)) {
        let affinity = self.affinity(known);
        for (at, statement) in (0..).zip(&self.b.statements) {
            let candidates = self.candidates(at, known);
            if self.both.certain[at as usize].is_some() || candidates.len() < 2 {
                continue;
            }
            let side = Candidates::new(self.both, at, self.stage);
            let around = Surroundings::new(self.both, at, known, &affinity);
            let candidates = candidates.into_iter().map(|(a, _)| {
                let mut features = Vec::new();
                let mut told = |feature, x: f32| features.push((feature, x));
                side.tell(a, &mut told);
                self.tell_votes(a, at, &mut told);
                around.tell(a, &mut told);
                Candidate { a, features }
            });
            to(StageRecord {
                b: at,
                column: column(self.stage, statement.class),
                candidates: candidates.collect(),
            });
        }
    }

    /// Returns how the counterparts of each function's statements are distributed over functions.
    fn affinity(&self, known: &[Option<Match>]) -> Affinity {
        let mut votes = Affinity::default();
        let mut all: FxHashMap<u32, f32> = FxHashMap::default();
        for (statement, found) in self.b.statements.iter().zip(known) {
            if let Some(found) = found {
                let a = &self.a.statements[found.a as usize];
                let telling = found.evidence.values >= Values::Prefix;
                let vote = if telling { 1.0 } else { 0.2 };
                *votes.entry((statement.function, a.function)).or_default() += vote;
                *all.entry(statement.function).or_default() += vote;
            }
        }
        for (&(function, _), vote) in &mut votes {
            let all = all.get(&function).copied().unwrap_or(1.0);
            // Code of several functions may have been inlined, so a third of the votes counts as
            // much as all votes.
            *vote = (3.0 * *vote / all).min(1.0);
        }
        votes
    }
}
