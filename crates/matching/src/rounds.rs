//! Rounds of matching, to a fixed point: each takes what the one before found into account.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::both::{Both, Candidates, strongest};
use crate::chain::Chain;
use crate::evidence::compare;
use crate::features::{Feature, Stage, column};
use crate::told::{Candidate, Told};
use crate::votes::Votes;
use crate::{Class, Evidence, Match, Matcher, Matching, Values, Version, parallel};

/// Most rounds, by stage: few matches change after the third; with stretches what is known comes from rounds before.
const ROUNDS: [u32; 2] = [3, 1];
/// How often the matches of a function are chosen together when rounds change little, by stage, each time followed by a round.
const TOGETHER: [u32; 2] = [2, 1];
/// Most users or makers of matched statements that become candidates.
const RELATED: usize = 24;
/// How far statements around one are looked at.
const NEAR: u32 = 4;
/// How far statements around one are looked at for who has the same counterpart.
const SHARING: u32 = 8;
/// How far before or after the counterpart of a neighbour is shortly before or after.
const SHORTLY: u32 = 12;
/// How far apart their counterparts may be. An unoptimised version has several statements for each.
const APART: u32 = 24;
/// What was executed in this part of the stretches at least, near to where it is expected, becomes a candidate.
const OFTEN: f32 = 0.2;
/// So many statements of the first version may have the same values, and it still tells who is who.
const COMMON: f32 = 4.0;
/// What must speak for a match.
const ENOUGH: f32 = 2.6;
/// What is less likely is no candidate for an alignment.
const UNLIKELY: f32 = 0.02;

/// Goes on from what is known until nothing changes.
pub(crate) fn matched(rounds: &Rounds<'_>, known: Vec<Option<Match>>) -> Matching {
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
    for _ in 0..TOGETHER[rounds.stage as usize] {
        found.of_b = rounds.together(&found.of_b, &affinity);
        affinity = rounds.affinity(&found.of_b);
        found.of_b = rounds.next(&found.of_b, &affinity);
        affinity = rounds.affinity(&found.of_b);
    }
    found.likely = rounds.likelihoods(&found.of_b, &affinity);
    found
}

/// How many of those around a pair speak for it, and of how many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    operands: (u32, u32),
    users: (u32, u32),
    neighbours: (u32, u32),
    name: bool,
}

/// A candidate, and how much speaks for it. How its values compare is told of the one that is chosen only: told of all, that was a sixth of the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub a: u32,
    pub score: f32,
    pub around: Around,
}

/// What does not change from round to round.
pub(crate) struct Rounds<'m> {
    matcher: &'m Matcher<'m>,
    both: &'m Both<'m>,
    a: &'m Version,
    b: &'m Version,
    /// What stretches of both runs say that correspond.
    votes: Option<Votes>,
    stage: Stage,
    /// By statement of the second version, the most likely candidates, and for how much counts what both did, as a whole and in the stretches.
    likely: Vec<Vec<(u32, f32)>>,
}

/// By functions of the second and the first version: which part of the second's statements have their counterparts there.
type Affinity = FxHashMap<(u32, u32), f32>;

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

    /// The most likely candidates, with what stretches say.
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
            let often = (tally.together as f32).max(tally.near);
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
            let pairs = candidates.iter();
            let pairs = pairs.map(|&(a, apart)| self.judge(a, at, apart, known, affinity));
            let best = pairs.max_by(|x, y| {
                // Of equal ones the first in the program.
                let order = x.score.total_cmp(&y.score);
                order.then(y.a.cmp(&x.a))
            });
            let best = best.map(|best| self.as_match(best, at));
            best.filter(|best| {
                let by_structure = best.evidence.operands.0 + best.evidence.users.0 > 0;
                best.score >= ENOUGH
                    && (best.evidence.values > Values::Different
                        || by_structure
                        || best.evidence.neighbours.0 > 1
                        || statement.operands.is_some())
            })
        })
    }

    /// The matches of each function's statements, chosen together. What has none, or a certain one, stays as it is.
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
                let candidates = self.candidates(of_b, known).into_iter();
                let pairs =
                    candidates.map(|(a, apart)| self.judge(a, of_b, apart, known, affinity));
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

    /// The candidates of each statement that are left, and how likely each is.
    fn likelihoods(&self, known: &[Option<Match>], affinity: &Affinity) -> Vec<Vec<(u32, f32)>> {
        parallel::map(self.b.statements.len(), |at| {
            if let Some(a) = self.both.certain[at] {
                return vec![(a, 1.0)];
            }
            let at = at as u32;
            let all = self.candidates(at, known);
            let judged = all.into_iter();
            let judged =
                judged.map(|(a, apart)| (a, self.judge(a, at, apart, known, affinity).score));
            let mut scores: Vec<(u32, f32)> = judged.collect();
            let most = scores.iter().map(|s| s.1).fold(f32::MIN, f32::max);
            for score in &mut scores {
                score.1 = (score.1 - most).exp();
            }
            let sum: f32 = scores.iter().map(|s| s.1).sum();
            scores.retain_mut(|score| {
                score.1 /= sum;
                score.1 > UNLIKELY
            });
            scores
        })
    }

    /// The likely candidates, and those that what is matched already suggests.
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

    /// What stretches of both runs say.
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
        told(Feature::StretchNear, tally.near / executions);
        told(Feature::StretchTogether, together);
        told(Feature::StretchEarliest, tally.earliest as f32 / executions);
        told(Feature::StretchLatest, tally.latest as f32 / executions);
        told(Feature::StretchTelling, together * telling);
        told(Feature::StretchAligned, tally.aligned as f32 / executions);
        if tally.aligned * 2 > votes.executions[b as usize] {
            told(Feature::StretchAlignedMost, 1.0);
        }
        if of_b.addresses.is_some() {
            told(Feature::StretchPlaced, tally.placed / executions);
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

    /// Counterparts' users of makers, and makers of users.
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

    fn judge(
        &self,
        a: u32,
        b: u32,
        apart: f32,
        known: &[Option<Match>],
        affinity: &Affinity,
    ) -> Judged {
        let class = self.b.statements[b as usize].class;
        let weights = self.both.weights.of(self.stage, class);
        let mut score = apart;
        let around = self.tell_structure(a, b, known, affinity, &mut |feature, x| {
            score += weights.of(feature) * x;
        });
        Judged { a, score, around }
    }

    /// The match that a candidate of `b` would be.
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

    /// What the matches around a pair say of it.
    fn tell_structure(
        &self,
        a: u32,
        b: u32,
        known: &[Option<Match>],
        affinity: &Affinity,
        told: &mut impl FnMut(Feature, f32),
    ) -> Around {
        let of_a = &self.a.statements[a as usize];
        let of_b = &self.b.statements[b as usize];
        let (operands, by_operands) = self.operands(a, b, known);
        let (users, by_users) = self.users(a, b, known);
        let (neighbours, near) = self.neighbours(a, b, known);
        let functions = (of_b.function, of_a.function);
        let name = self
            .both
            .names
            .is_some_and(|names| names.same.get(&functions.0) == Some(&functions.1));
        told(Feature::Operands, by_operands);
        told(Feature::Users, by_users);
        if operands.0 == operands.1 && operands.1 > 0 {
            told(Feature::OperandsAll, 1.0);
        }
        if users.0 == users.1 && users.1 > 0 {
            told(Feature::UsersAll, 1.0);
        }
        if self.has_more_constants(a, b) {
            told(Feature::ConstantsMore, 1.0);
        }
        told(Feature::Neighbours, near);
        let share = affinity.get(&functions).copied().unwrap_or(0.0);
        told(Feature::Affinity, share);
        if share >= 1.0 {
            told(Feature::AffinityMost, 1.0);
        }
        if name {
            told(Feature::Name, 1.0);
        }
        if let Some(written) = self.written(a, b, known) {
            told(Feature::Written, written);
            if written == 0.0 {
                told(Feature::WrittenByOthers, 1.0);
            }
        }
        self.tell_order(a, b, known, told);
        Around {
            operands,
            users,
            neighbours,
            name,
        }
    }

    /// All that speaks for or against each candidate of each statement of the second version that has several.
    pub fn tell(&self, known: &[Option<Match>], to: &mut dyn FnMut(Told)) {
        let affinity = self.affinity(known);
        for (at, statement) in (0..).zip(&self.b.statements) {
            let candidates = self.candidates(at, known);
            if self.both.certain[at as usize].is_some() || candidates.len() < 2 {
                continue;
            }
            let side = Candidates::new(self.both, at, self.stage);
            let candidates = candidates.into_iter().map(|(a, _)| {
                let mut features = Vec::new();
                let mut told = |feature, x: f32| features.push((feature, x));
                side.tell(a, &mut told);
                self.tell_votes(a, at, &mut told);
                self.tell_structure(a, at, known, &affinity, &mut told);
                Candidate { a, features }
            });
            to(Told {
                b: at,
                column: column(self.stage, statement.class),
                candidates: candidates.collect(),
            });
        }
    }

    /// Of how many makers of `b` there is a counterpart among those of `a`: the same constant, the same values, or a match; and for how much that counts, 0 to 1.
    fn operands(&self, a: u32, b: u32, known: &[Option<Match>]) -> ((u32, u32), f32) {
        let (a, b) = (a as usize, b as usize);
        let constants = &self.both.of_b.constants[b];
        let same = constants
            .iter()
            .filter(|value| self.both.of_a.constants[a].binary_search(value).is_ok());
        let same = same.count();
        let makers = &self.both.of_b.makers[b];
        let (mut found, mut sum) = (same, same as f32);
        for &maker in makers {
            let weight = self.corresponds(
                (a, b),
                maker,
                &self.both.of_a.makers[a],
                &self.both.maker_classes[a],
                known,
            );
            found += usize::from(weight > 0.0);
            sum += weight;
        }
        let all = constants.len() + makers.len();
        ((found as u32, all as u32), sum / all.max(1) as f32)
    }

    fn users(&self, a: u32, b: u32, known: &[Option<Match>]) -> ((u32, u32), f32) {
        let (a, b) = (a as usize, b as usize);
        let users = &self.both.of_b.users[b];
        let users = &users[..users.len().min(RELATED)];
        let (mut found, mut sum) = (0, 0.0);
        for &user in users {
            let classes = &self.both.user_classes[a];
            let weight = self.corresponds((a, b), user, &self.both.of_a.users[a], classes, known);
            found += u32::from(weight > 0.0);
            sum += weight;
        }
        ((found, users.len() as u32), sum / users.len().max(1) as f32)
    }

    /// For how much it counts, 0 to 1, that a maker or user of the second of a pair has a counterpart among those of the first: that both have one with the same values counts the less
    /// the more statements have these.
    fn corresponds(
        &self,
        pair: (usize, usize),
        b: u32,
        statements: &[u32],
        classes: &[u32],
        known: &[Option<Match>],
    ) -> f32 {
        let found = known[b as usize].as_ref();
        // Of what is made from itself, as a counter is, that is no evidence.
        let found = found.filter(|m| m.a as usize != pair.0 || b as usize == pair.1);
        if found.is_some_and(|m| statements.binary_search(&m.a).is_ok()) {
            return 1.0;
        }
        let class = self.both.classes.b[b as usize];
        let of_match = found.map(|m| self.both.classes.a[m.a as usize]);
        for class in [Some(class), of_match].into_iter().flatten() {
            if classes.binary_search(&class).is_ok() {
                return (COMMON / self.both.classes.size[class as usize] as f32).min(1.0);
            }
        }
        0.0
    }

    /// Of how many statements around `b` the counterparts are around `a`, and how near they are: 0 to 1.
    fn neighbours(&self, a: u32, b: u32, known: &[Option<Match>]) -> ((u32, u32), f32) {
        let functions = (
            self.a.statements[a as usize].function,
            self.b.statements[b as usize].function,
        );
        let around = (b.saturating_sub(NEAR)..b).chain(b + 1..=b.saturating_add(NEAR));
        let (mut found, mut all, mut sum) = (0, 0, 0.0);
        for near in around {
            let Some(here) = self.b.statements.get(near as usize) else {
                continue;
            };
            if here.function != functions.1 {
                continue;
            }
            let Some(m) = &known[near as usize] else {
                continue;
            };
            all += 1;
            // That two have the same counterpart says nothing for it.
            if m.a == a {
                continue;
            }
            let same = self.a.statements[m.a as usize].function == functions.0;
            let ordered = (near < b) == (m.a < a);
            let apart = m.a.abs_diff(a);
            if same && ordered && apart <= APART {
                found += 1;
                sum += 1.0 / (1.0 + apart as f32 / 12.0);
            }
        }
        ((found, all), sum / all.max(1) as f32)
    }

    /// Whether operands of the first may be constants that those of the second never are: what is decided by a constant, an optimiser decides where that is chosen.
    fn has_more_constants(&self, a: u32, b: u32) -> bool {
        let of_b = &self.both.of_b.constants[b as usize];
        let of_a = &self.both.of_a.constants[a as usize];
        of_a.iter().any(|constant| of_b.binary_search(constant).is_err())
    }

    /// The part of the stores that wrote what a load reads directly, or of the loads that read what a store wrote, whose counterparts write or read what its own does; less if that is through copies. `None` if no counterpart is known.
    fn written(&self, a: u32, b: u32, known: &[Option<Match>]) -> Option<f32> {
        let (a, b) = (a as usize, b as usize);
        let (of_a, of_b) = match self.b.statements[b].class {
            Class::Load => (&self.a.statements[a].writers[..], &self.b.statements[b].writers[..]),
            Class::Store => (&self.both.of_a.readers[a][..], &self.both.of_b.readers[b][..]),
            _ => return None,
        };
        let (mut sum, mut all) = (0.0, 0);
        for &(other, _) in of_b.iter().filter(|(_, counts)| *counts == 1.0).take(RELATED) {
            if let Some(found) = &known[other as usize] {
                all += 1;
                let there = of_a.binary_search_by_key(&found.a, |(other, _)| *other);
                sum += there.map_or(0.0, |at| of_a[at].1);
            }
        }
        (all > 0).then(|| sum / all as f32)
    }

    /// Whether it lies between the counterparts of the statements before and after `b`, and whether it is theirs.
    fn tell_order(
        &self,
        a: u32,
        b: u32,
        known: &[Option<Match>],
        told: &mut impl FnMut(Feature, f32),
    ) {
        let function = self.b.statements[b as usize].function;
        let of_a = self.a.statements[a as usize].function;
        let here = |at: u32| {
            let there = self
                .b
                .statements
                .get(at as usize)
                .filter(|s| s.function == function)?;
            let m = known[at as usize].as_ref()?;
            (self.a.statements[m.a as usize].function == of_a).then_some((m, there))
        };
        let count = self.b.statements[b as usize].values.count;
        let (mut before, mut after) = (false, false);
        if let Some((m, _)) = b.checked_sub(1).and_then(here) {
            before = m.a < a && a - m.a <= SHORTLY;
            if m.a == a {
                told(Feature::SameMatchNext, 1.0);
            }
        }
        if let Some((m, _)) = here(b + 1) {
            after = m.a > a && m.a - a <= SHORTLY;
            if m.a == a {
                told(Feature::SameMatchNext, 1.0);
            }
        }
        if before {
            told(Feature::Before, 1.0);
        }
        if after {
            told(Feature::After, 1.0);
        }
        if before && after {
            told(Feature::Between, 1.0);
        }
        let own = known[b as usize].as_ref();
        let mine = own.filter(|m| m.a == a).map(|m| m.score);
        let (mut taken, mut better) = (false, false);
        for at in (b.saturating_sub(SHARING)..b).chain(b + 1..=b + SHARING) {
            let Some((m, there)) = here(at) else { continue };
            if m.a == a && there.values.count == count {
                taken = true;
                better |= mine.is_none_or(|score| m.score > score);
            }
        }
        if taken {
            told(Feature::Taken, 1.0);
        }
        if better {
            told(Feature::TakenBetter, 1.0);
        }
    }

    /// Where the counterparts of each function's statements are.
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
            // Code of several functions may have been inlined: a third of the votes is as good as all.
            *vote = (3.0 * *vote / all).min(1.0);
        }
        votes
    }
}
