//! Rounds of matching, to a fixed point.

use std::cmp::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::candidates::{Index, Structure};
use crate::classes::Classes;
use crate::evidence::{compare, weight_of_addresses, weight_of_operators, weight_of_values};
use crate::order::Order;
use crate::region::Region;
use crate::votes::Votes;
use crate::{Evidence, Names, Statement, Values, Version};

/// Most rounds. Few matches change after the third.
const ROUNDS: u32 = 5;
/// How many are enough to know anchors.
const FIRST_ROUNDS: u32 = 3;
/// Most users or makers of matched statements that become candidates.
const RELATED: usize = 24;
/// How far statements around one are looked at.
const NEAR: u32 = 4;
/// How far apart their counterparts may be. An unoptimised version has several statements for each.
const APART: u32 = 24;
/// How many candidates are kept for what they did.
const LIKELY: usize = 40;
/// So many statements of the first version may have the same values, and it still tells who is who.
const COMMON: f32 = 4.0;
/// What must speak for a match.
const ENOUGH: f32 = 2.6;

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
}

/// Finds for each statement of the second version, the optimised one, a counterpart in the first. Several may have the same.
///
/// O(statements) a round, times the candidates of each, of which there is a bounded number.
pub fn match_versions(a: &Version, b: &Version, names: Option<&Names>) -> Matching {
    let none = vec![None; b.statements.len()];
    matched(&Rounds::new(a, b, names, None), none, ROUNDS)
}

/// As [`match_versions`], but only as well as is needed to find [`anchors`](crate::anchors) in it.
pub fn match_before_regions(a: &Version, b: &Version, names: Option<&Names>) -> Matching {
    let none = vec![None; b.statements.len()];
    matched(&Rounds::new(a, b, names, None), none, FIRST_ROUNDS)
}

/// As [`match_versions`], with what stretches of both runs say that correspond; `before` is what they were found with.
pub fn match_after_regions(
    a: &Version,
    b: &Version,
    names: Option<&Names>,
    regions: &[Region],
    before: &Matching,
) -> Matching {
    let votes = Votes::new(a, b, regions, &before.of_b);
    let rounds = Rounds::new(a, b, names, Some(votes));
    matched(&rounds, before.of_b.clone(), ROUNDS)
}

fn matched(rounds: &Rounds<'_>, known: Vec<Option<Match>>, most: u32) -> Matching {
    let mut affinity = rounds.affinity(&known);
    let mut found = Matching {
        of_b: known,
        rounds: 0,
    };
    for round in 1..=most {
        let next = rounds.next(&found.of_b, &affinity);
        let which = |found: &[Option<Match>]| -> Vec<Option<u32>> {
            found.iter().map(|m| m.as_ref().map(|m| m.a)).collect()
        };
        let settled = which(&next) == which(&found.of_b);
        found = Matching {
            of_b: next,
            rounds: round,
        };
        if settled {
            break;
        }
        affinity = rounds.affinity(&found.of_b);
    }
    found
}

/// What does not change from round to round.
struct Rounds<'v> {
    a: &'v Version,
    b: &'v Version,
    names: Option<&'v Names>,
    classes: Classes,
    order: Order,
    index: Index,
    of_a: Structure,
    of_b: Structure,
    /// For statements of functions that have the same code: the counterpart.
    certain: Vec<Option<u32>>,
    /// Statements of the first version that are such counterparts.
    taken: Vec<bool>,
    /// By statement of the second version, the most likely candidates by what they did, and how much speaks for each whatever else is matched.
    likely: Vec<Vec<(u32, f32)>>,
    /// The classes of the makers and users of the first version's statements, ascending.
    maker_classes: Vec<Vec<u32>>,
    user_classes: Vec<Vec<u32>>,
    /// What stretches of both runs say that correspond.
    votes: Option<Votes>,
}

/// By functions of the second and the first version: which part of the second's statements have their counterparts there.
type Affinity = FxHashMap<(u32, u32), f32>;

impl<'v> Rounds<'v> {
    fn new(a: &'v Version, b: &'v Version, names: Option<&'v Names>, votes: Option<Votes>) -> Self {
        let classes = Classes::new(a, b);
        let order = Order::new(a, b);
        let of_a = Structure::new(a);
        let class_of = |all: &[Vec<u32>]| -> Vec<Vec<u32>> {
            let sorted = all.iter().map(|list| {
                let of_list = list.iter().map(|&at| classes.a[at as usize]);
                let mut of_list: Vec<u32> = of_list.collect();
                of_list.sort_unstable();
                of_list
            });
            sorted.collect()
        };
        let certain = same_code(a, b);
        let mut taken = vec![false; a.statements.len()];
        for &at in certain.iter().flatten() {
            taken[at as usize] = true;
        }
        let mut rounds = Self {
            a,
            b,
            names,
            votes,
            likely: Vec::new(),
            certain,
            taken,
            index: Index::new(a, &order),
            order,
            maker_classes: class_of(&of_a.makers),
            user_classes: class_of(&of_a.users),
            of_b: Structure::new(b),
            of_a,
            classes,
        };
        let statements = 0..b.statements.len() as u32;
        rounds.likely = statements.map(|at| rounds.likely(at)).collect();
        rounds
    }

    fn next(&self, known: &[Option<Match>], affinity: &Affinity) -> Vec<Option<Match>> {
        let mut candidates: Vec<(u32, f32)> = Vec::new();
        let mut related = Vec::new();
        let statements = (0..).zip(&self.b.statements);
        let found = statements.map(|(at, statement)| {
            if let Some(a) = self.certain[at as usize] {
                return Some(self.of_same_code(a, at));
            }
            candidates.clear();
            candidates.extend(&self.likely[at as usize]);
            related.clear();
            self.related(at, known, &mut related);
            related.sort_unstable();
            related.dedup();
            related.retain(|&a| self.may_match(a, statement));
            related.retain(|a| candidates.iter().all(|(known, _)| known != a));
            let place = self.order.predicted(statement.first);
            let more = related.iter().map(|&a| (a, self.apart(a, at, place)));
            candidates.extend(more);
            let pairs = candidates.iter();
            let pairs = pairs.map(|&(a, apart)| self.judge(a, at, apart, known, affinity));
            let best = pairs.max_by(|x, y| {
                // Of equal ones the first in the program.
                let order = x.score.total_cmp(&y.score);
                order.then(y.a.cmp(&x.a))
            });
            best.filter(|best| {
                let by_structure = best.evidence.operands.0 + best.evidence.users.0 > 0;
                best.score >= ENOUGH
                    && (best.evidence.values > Values::Different
                        || by_structure
                        || statement.operands.is_some())
            })
        });
        found.collect()
    }

    fn may_match(&self, a: u32, of_b: &Statement) -> bool {
        let of_a = &self.a.statements[a as usize];
        of_a.class.group() == of_b.class.group() && !self.taken[a as usize]
    }

    /// What speaks for a pair whatever else is matched: values, addresses, operators, times.
    fn apart(&self, a: u32, b: u32, place: usize) -> f32 {
        let of_b = &self.b.statements[b as usize];
        let of_a = &self.a.statements[a as usize];
        let values = compare(of_a.telling(), of_b.telling());
        let distance = (self.order.place[a as usize] as usize).abs_diff(place) as f32;
        let ends = self.order.between_ends(of_a.last, of_b.last) as f32;
        let together = self.order.active_together(&of_a.active, &of_b.active);
        // An optimiser makes several statements of one, and leaves out executions, but hardly ever adds some.
        let part = of_b.values.count as f32 / of_a.values.count as f32;
        let counts = match of_b.values.count.cmp(&of_a.values.count) {
            Ordering::Equal => 0.6,
            Ordering::Less => 0.5 * part,
            Ordering::Greater => -0.6,
        };
        let mut of_values = weight_of_values(values, of_a, of_b);
        if of_b.operands.is_some() {
            // What is compared may have been computed otherwise, or lie elsewhere.
            let decided = weight_of_values(compare(&of_a.values, &of_b.values), of_a, of_b);
            of_values = of_values.max(0.5 * decided);
        }
        let (of_values, of_votes) = self.of_votes(a, b, of_values, values);
        of_values
            + of_votes
            + weight_of_operators(of_a, of_b)
            + weight_of_addresses(of_a, of_b)
            + counts
            + 2.0 * (together - 1.0)
            + 0.4 / (1.0 + distance / 2.0)
            + 0.4 / (1.0 + distance / 16.0)
            + 0.3 / (1.0 + ends / 8.0)
    }

    /// How much speaks for a pair what they did at the same time, and how much their values as a whole, given that.
    fn of_votes(&self, a: u32, b: u32, of_values: f32, values: Values) -> (f32, f32) {
        let Some(votes) = &self.votes else {
            return (of_values, 0.0);
        };
        let executions = votes.executions[b as usize] as f32;
        if executions == 0.0 {
            return (of_values, 0.0);
        }
        let Some(tally) = votes.with[b as usize].get(&a) else {
            let of_b = &self.b.statements[b as usize];
            let against = match of_b.operands {
                // A long sequence is no coincidence, whatever the regions are.
                _ if values >= Values::Permuted && of_b.telling().sample.len() > 5 => 0.0,
                Some(_) => -0.5,
                None => -1.5,
            };
            return (of_values, against);
        };
        let of_b = &self.b.statements[b as usize];
        let together = tally.together as f32 / executions;
        let aligned = tally.aligned as f32 / executions;
        let telling = ((of_b.telling().sample.len() as f32 - 1.0) / 4.0).min(1.0);
        let as_part = together * (0.3 + 1.4 * (0.4 + 0.6 * telling));
        let placed = match of_b.addresses {
            Some(_) => 2.0 * tally.placed / executions,
            None => 0.0,
        };
        (
            of_values.max(as_part),
            2.0 * aligned + 1.5 * together + placed,
        )
    }

    /// The candidates for which most speaks whatever else is matched.
    fn likely(&self, at: u32) -> Vec<(u32, f32)> {
        let statement = &self.b.statements[at as usize];
        if self.certain[at as usize].is_some() {
            return Vec::new();
        }
        let place = self.order.predicted(statement.first);
        let mut all = Vec::new();
        self.index
            .candidates(statement, &self.order, place, &mut all);
        if let Some(votes) = &self.votes {
            all.extend(votes.with[at as usize].keys());
        }
        all.sort_unstable();
        all.dedup();
        all.retain(|&a| self.may_match(a, statement));
        let weighed = all.into_iter().map(|a| (a, self.apart(a, at, place)));
        let mut weighed: Vec<_> = weighed.collect();
        weighed.sort_by(|x, y| y.1.total_cmp(&x.1).then(x.0.cmp(&y.0)));
        weighed.truncate(LIKELY);
        weighed
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
        for &maker in self.of_b.makers[at as usize].iter().take(RELATED) {
            if let Some(a) = of(maker) {
                into.extend(self.of_a.users[a].iter().take(RELATED));
            }
        }
        for &user in self.of_b.users[at as usize].iter().take(RELATED) {
            if let Some(a) = of(user) {
                into.extend(self.of_a.makers[a].iter().take(RELATED));
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
    ) -> Match {
        let of_a = &self.a.statements[a as usize];
        let of_b = &self.b.statements[b as usize];
        let (operands, by_operands) = self.operands(a, b, known);
        let (users, by_users) = self.users(a, b, known);
        let (neighbours, near) = self.neighbours(a, b, known);
        let functions = (of_b.function, of_a.function);
        let name = self
            .names
            .is_some_and(|names| names.same.get(&functions.0) == Some(&functions.1));
        let mut score = apart
            + 2.0 * by_operands
            + 2.0 * by_users
            + 2.5 * near
            + 0.6 * affinity.get(&functions).copied().unwrap_or(0.0);
        if name {
            score += 0.6;
        }
        Match {
            a,
            evidence: Evidence {
                values: compare(of_a.telling(), of_b.telling()),
                operator: of_a.operator == of_b.operator,
                operands,
                users,
                neighbours,
                name,
                same_code: false,
            },
            score,
        }
    }

    /// Of how many makers of `b` there is a counterpart among those of `a`: the same constant, the same values, or a match; and for how much that counts, 0 to 1.
    fn operands(&self, a: u32, b: u32, known: &[Option<Match>]) -> ((u32, u32), f32) {
        let (a, b) = (a as usize, b as usize);
        let constants = &self.of_b.constants[b];
        let same = constants
            .iter()
            .filter(|value| self.of_a.constants[a].binary_search(value).is_ok());
        let same = same.count();
        let makers = &self.of_b.makers[b];
        let (mut found, mut sum) = (same, same as f32);
        for &maker in makers {
            let weight = self.corresponds(
                (a, b),
                maker,
                &self.of_a.makers[a],
                &self.maker_classes[a],
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
        let users = &self.of_b.users[b];
        let users = &users[..users.len().min(RELATED)];
        let (mut found, mut sum) = (0, 0.0);
        for &user in users {
            let classes = &self.user_classes[a];
            let weight = self.corresponds((a, b), user, &self.of_a.users[a], classes, known);
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
        let class = self.classes.b[b as usize];
        let of_match = found.map(|m| self.classes.a[m.a as usize]);
        for class in [Some(class), of_match].into_iter().flatten() {
            if classes.binary_search(&class).is_ok() {
                return (COMMON / self.classes.size[class as usize] as f32).min(1.0);
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

/// The counterparts of statements of functions that have the same code, of which there is one in each version.
fn same_code(a: &Version, b: &Version) -> Vec<Option<u32>> {
    let pairs = same_functions(&a.bodies, &b.bodies);
    let statements = (0..).zip(&a.statements);
    let places: FxHashMap<(u32, u32), u32> = statements
        .map(|(at, statement)| ((statement.function, statement.ordinal), at))
        .collect();
    let of_b = b.statements.iter();
    let found = of_b.map(|statement| {
        let function = pairs.get(&statement.function)?;
        places.get(&(*function, statement.ordinal)).copied()
    });
    found.collect()
}

type Bodies = FxHashMap<u32, Box<[u64]>>;

/// The functions of the second version that have the same code as one of the first, if only one has it in each. Of what is left, those that are equally long and have at
/// least nine of ten operators in common, place by place, count as well, if only one in each is so long: they were changed in a few places. O(operators).
fn same_functions(a: &Bodies, b: &Bodies) -> FxHashMap<u32, u32> {
    fn only<'b, K: std::hash::Hash + Eq>(
        bodies: &'b Bodies,
        left: impl Fn(u32) -> bool,
        key: impl Fn(&'b [u64]) -> K,
    ) -> FxHashMap<K, Option<u32>> {
        let mut only = FxHashMap::default();
        for (&function, body) in bodies.iter().filter(|(function, _)| left(**function)) {
            let known = only.entry(key(body)).or_insert(Some(function));
            if *known != Some(function) {
                *known = None;
            }
        }
        only
    }
    let of_a = only(a, |_| true, |body| body);
    let mut pairs: FxHashMap<u32, u32> = only(b, |_| true, |body| body)
        .into_iter()
        .filter_map(|(body, of_b)| Some((of_b?, (*of_a.get(body)?)?)))
        .collect();
    let taken: FxHashSet<u32> = pairs.values().copied().collect();
    let of_a = only(a, |function| !taken.contains(&function), <[u64]>::len);
    let of_b = only(b, |function| !pairs.contains_key(&function), <[u64]>::len);
    for (length, of_b) in of_b {
        let Some((of_b, of_a)) = of_b.zip(of_a.get(&length).copied().flatten()) else {
            continue;
        };
        let both = a[&of_a].iter().zip(&b[&of_b]);
        let same = both.filter(|(x, y)| x == y).count();
        if same * 10 >= length * 9 {
            pairs.insert(of_b, of_a);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::{Bodies, same_functions};

    fn bodies(all: &[(u32, &[u64])]) -> Bodies {
        all.iter()
            .map(|&(function, body)| (function, body.into()))
            .collect()
    }

    #[test]
    fn functions_that_are_the_same_or_nearly_so_are_pairs() {
        let long: Vec<u64> = (0..20).collect();
        let mut changed = long.clone();
        changed[7] = 99;
        let other: Vec<u64> = (50..68).collect();
        let mut too_different = other.clone();
        too_different[..2].fill(1);
        let a = bodies(&[
            (1, &[1, 2, 3]),
            (2, &[4, 4]),
            (3, &[4, 4]),
            (4, &long),
            (5, &other),
        ]);
        let b = bodies(&[
            (11, &[4, 4]),
            (12, &[1, 2, 3]),
            (13, &changed),
            (14, &too_different),
        ]);
        let mut pairs: Vec<_> = same_functions(&a, &b).into_iter().collect();
        pairs.sort_unstable();
        assert_eq!(pairs, [(12, 1), (13, 4)]);
    }
}
