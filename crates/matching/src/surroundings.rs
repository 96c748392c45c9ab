//! Collects the evidence from the matches around a statement of the second version.

use crate::both::Both;
use crate::features::Feature;
use crate::rounds::{Affinity, RELATED};
use crate::set::Set;
use crate::{Class, Match};

/// The maximum distance at which surrounding statements are examined.
const NEAR: u32 = 4;
/// The maximum distance at which to search for statements with the same counterpart.
const SHARING: u32 = 8;
/// The maximum distance that counts as shortly before or after a neighbour's counterpart.
const SHORTLY: u32 = 12;
/// The maximum distance between the counterparts of nearby statements. An unoptimised version has
/// several statements for each optimised statement.
const APART: u32 = 24;
/// The number of the first version's statements that may share values without weakening the
/// evidence. If more statements share them, the evidence shrinks in proportion.
const COMMON: f32 = 4.0;

/// The numbers of surrounding statements that support a pair, each with the total number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    pub operands: (u32, u32),
    pub users: (u32, u32),
    pub neighbours: (u32, u32),
    pub name: bool,
}

/// A producer or user of the statement.
struct Related {
    /// The producer's or user's counterpart.
    found: Option<u32>,
    /// Whether the producer or user is the statement itself.
    is_itself: bool,
    /// The class of the producer's or user's values.
    class: u32,
    /// The class of the counterpart's values.
    class_of_match: Option<u32>,
}

/// A match of a nearby statement.
struct Nearby {
    a: u32,
    /// The function of the counterpart in the first version.
    function: u32,
    /// Whether the nearby statement is before this statement.
    before: bool,
}

/// The data around a statement of the second version, looked up once for all candidates.
pub(crate) struct Surroundings<'m> {
    both: &'m Both<'m>,
    affinity: &'m Affinity,
    pub b: u32,
    function: u32,
    /// The function of the first version with the same name.
    same_name: Option<u32>,
    makers: Vec<Related>,
    users: Vec<Related>,
    neighbours: Vec<Nearby>,
    /// The counterparts of the stores that wrote a load's data, or of the loads that read a store's
    /// data. They are ascending, with the number of occurrences of each.
    written: Vec<(u32, u32)>,
    /// The matches of the statements just before and after.
    next: [Option<Nearby>; 2],
    /// Matches of surrounding statements that were executed equally often, with their scores.
    shared: Vec<(u32, f32)>,
    own: Option<(u32, f32)>,
}

impl<'m> Surroundings<'m> {
    /// Looks up the data. O(producers and users).
    pub fn new(
        both: &'m Both<'m>,
        b: u32,
        known: &[Option<Match>],
        affinity: &'m Affinity,
    ) -> Self {
        let statement = &both.b.statements[b as usize];
        let function = statement.function;
        let of = |at: u32| known[at as usize].as_ref();
        let related = |at: &u32| {
            let found = of(*at).map(|found| found.a);
            Related {
                found,
                is_itself: *at == b,
                class: both.classes.b[*at as usize],
                class_of_match: found.map(|a| both.classes.a[a as usize]),
            }
        };
        let users = &both.of_b.users[b as usize];
        // Returns the match of a statement in the same function.
        let here = |at: u32| {
            let there = both.b.statements.get(at as usize)?;
            of(at).filter(|_| there.function == function)
        };
        let nearby = |at: u32| {
            here(at).map(|found| Nearby {
                a: found.a,
                function: both.a.statements[found.a as usize].function,
                before: at < b,
            })
        };
        let around = |far: u32| (b.saturating_sub(far)..b).chain(b + 1..=b.saturating_add(far));
        let shared = around(SHARING).filter_map(|at| {
            let found = here(at)?;
            let as_often = both.b.statements[at as usize].values.count == statement.values.count;
            as_often.then_some((found.a, found.score))
        });
        Self {
            both,
            affinity,
            b,
            function,
            same_name: both
                .names
                .and_then(|names| names.same.get(&function).copied()),
            makers: both.of_b.makers[b as usize].iter().map(related).collect(),
            users: users.iter().take(RELATED).map(related).collect(),
            neighbours: around(NEAR).filter_map(nearby).collect(),
            written: written(both, b, known),
            next: [b.checked_sub(1), b.checked_add(1)].map(|at| at.and_then(nearby)),
            shared: shared.collect(),
            own: of(b).map(|found| (found.a, found.score)),
        }
    }

    /// Reports the evidence of the surroundings for a candidate.
    pub fn tell(&self, a: u32, told: &mut impl FnMut(Feature, f32)) -> Around {
        let function = self.both.a.statements[a as usize].function;
        let constants = &self.both.of_a.constants[a as usize];
        let same_constants = in_common(&self.both.of_b.constants[self.b as usize], constants);
        let (operands, by_operands) = self.operands(a, same_constants);
        let (users, by_users) = self.users(a);
        let (neighbours, near) = self.neighbours(a, function);
        told(Feature::Operands, by_operands);
        told(Feature::Users, by_users);
        if operands.0 == operands.1 && operands.1 > 0 {
            told(Feature::OperandsAll, 1.0);
        }
        if users.0 == users.1 && users.1 > 0 {
            told(Feature::UsersAll, 1.0);
        }
        // An optimiser moves a decision that depends on a constant to the place where the constant
        // is chosen.
        if same_constants < constants.len() {
            told(Feature::ConstantsMore, 1.0);
        }
        told(Feature::Neighbours, near);
        let share = self.affinity.get(&(self.function, function));
        let share = share.copied().unwrap_or(0.0);
        told(Feature::Affinity, share);
        if share >= 1.0 {
            told(Feature::AffinityMost, 1.0);
        }
        let name = self.same_name == Some(function);
        if name {
            told(Feature::Name, 1.0);
        }
        if let Some(written) = self.by_writing(a) {
            told(Feature::Written, written);
            if written == 0.0 {
                told(Feature::WrittenByOthers, 1.0);
            }
        }
        self.tell_order(a, function, told);
        Around {
            operands,
            users,
            neighbours,
            name,
        }
    }

    /// Returns the number of producers with a counterpart among the producers of `a`, and the
    /// strength of that evidence, from 0 to 1. Counterparts are common constants, statements with
    /// the same values, and matches.
    fn operands(&self, a: u32, constants: usize) -> ((u32, u32), f32) {
        let makers = &self.both.of_a.makers[a as usize];
        let classes = &self.both.maker_classes[a as usize];
        let (found, sum) = self.corresponding(
            (constants as u32, constants as f32),
            &self.makers,
            (a, makers, classes),
        );
        let all = self.both.of_b.constants[self.b as usize].len() + self.makers.len();
        ((found, all as u32), sum / all.max(1) as f32)
    }

    fn users(&self, a: u32) -> ((u32, u32), f32) {
        let users = &self.both.of_a.users[a as usize];
        let classes = &self.both.user_classes[a as usize];
        let (found, sum) = self.corresponding((0, 0.0), &self.users, (a, users, classes));
        let all = self.users.len();
        ((found, all as u32), sum / all.max(1) as f32)
    }

    /// Returns the number of producers or users with a counterpart among the producers or users of
    /// `a`, and the strength of that evidence.
    fn corresponding(
        &self,
        (mut found, mut sum): (u32, f32),
        related: &[Related],
        of_a: (u32, &Set, &Set),
    ) -> (u32, f32) {
        for related in related {
            let weight = self.corresponds(related, of_a);
            found += u32::from(weight > 0.0);
            sum += weight;
        }
        (found, sum)
    }

    /// Returns the strength, from 0 to 1, of the evidence that a producer or user has a counterpart
    /// among `statements`. These are the producers or users of statement `a`. The more statements
    /// share a common class of values, the less the class counts.
    fn corresponds(&self, related: &Related, (a, statements, classes): (u32, &Set, &Set)) -> f32 {
        // A value that is computed from itself, such as a counter, is no evidence here.
        let found = related
            .found
            .filter(|found| *found != a || related.is_itself);
        if found.is_some_and(|found| statements.holds(found)) {
            return 1.0;
        }
        let of_match = related.class_of_match.filter(|_| found.is_some());
        for class in [Some(related.class), of_match].into_iter().flatten() {
            if classes.holds(class) {
                return (COMMON / self.both.classes.size[class as usize] as f32).min(1.0);
            }
        }
        0.0
    }

    /// Returns the number of surrounding statements with counterparts around `a`, and their
    /// proximity, from 0 to 1.
    fn neighbours(&self, a: u32, function: u32) -> ((u32, u32), f32) {
        let (mut found, mut sum) = (0, 0.0);
        for near in &self.neighbours {
            // A shared counterpart is not evidence for the pair.
            let ordered = near.a != a && near.before == (near.a < a);
            let apart = near.a.abs_diff(a);
            if near.function == function && ordered && apart <= APART {
                found += 1;
                sum += 1.0 / (1.0 + apart as f32 / 12.0);
            }
        }
        let all = self.neighbours.len();
        ((found, all as u32), sum / all.max(1) as f32)
    }

    /// For a load, examines the stores that directly wrote its data, and for a store, the loads
    /// that read its data. Returns the share of these statements with a counterpart that writes or
    /// reads the candidate's data. Links through copies count less. Returns `None` if no
    /// counterpart is known.
    fn by_writing(&self, a: u32) -> Option<f32> {
        let of_a = match self.both.b.statements[self.b as usize].class {
            Class::Load => &self.both.a.statements[a as usize].writers[..],
            _ => &self.both.of_a.readers[a as usize][..],
        };
        let filter = self.both.of_a.written[a as usize];
        let (mut sum, mut all) = (0.0, 0);
        for &(found, often) in &self.written {
            all += often;
            if !filter.may_hold(found) {
                continue;
            }
            let there = of_a.binary_search_by_key(&found, |(other, _)| *other);
            sum += there.map_or(0.0, |at| often as f32 * of_a[at].1);
        }
        (all > 0).then(|| sum / all as f32)
    }

    /// Reports whether the candidate is between the counterparts of the previous and next
    /// statements, and whether it is one of these counterparts. Also reports whether it is the
    /// counterpart of another nearby statement.
    fn tell_order(&self, a: u32, function: u32, told: &mut impl FnMut(Feature, f32)) {
        let [before, behind] = [0, 1].map(|side| {
            let next = self.next[side].as_ref();
            let next = next.filter(|next| next.function == function);
            if next.is_some_and(|next| next.a == a) {
                told(Feature::SameMatchNext, 1.0);
            }
            let ordered = next.filter(|next| next.a != a && next.before == (next.a < a));
            ordered.is_some_and(|next| next.a.abs_diff(a) <= SHORTLY)
        });
        if before {
            told(Feature::Before, 1.0);
        }
        if behind {
            told(Feature::After, 1.0);
        }
        if before && behind {
            told(Feature::Between, 1.0);
        }
        let mine = self.own.filter(|own| own.0 == a).map(|own| own.1);
        let (mut taken, mut better) = (false, false);
        for &(_, score) in self.shared.iter().filter(|shared| shared.0 == a) {
            taken = true;
            better |= mine.is_none_or(|mine| score > mine);
        }
        if taken {
            told(Feature::Taken, 1.0);
        }
        if better {
            told(Feature::TakenBetter, 1.0);
        }
    }
}

/// Returns the number of common numbers in two ascending lists without repetition.
fn in_common(x: &[u64], y: &[u64]) -> usize {
    let (mut common, mut next) = (0, 0);
    for number in x {
        while next < y.len() && y[next] < *number {
            next += 1;
        }
        common += usize::from(y.get(next) == Some(number));
    }
    common
}

/// Returns the counterparts of the stores that directly wrote a load's data, or of the loads that
/// read a store's data. They are ascending, with the number of occurrences of each.
fn written(both: &Both<'_>, b: u32, known: &[Option<Match>]) -> Vec<(u32, u32)> {
    let statement = &both.b.statements[b as usize];
    let of_b = match statement.class {
        Class::Load => &statement.writers[..],
        Class::Store => &both.of_b.readers[b as usize][..],
        _ => return Vec::new(),
    };
    let direct = of_b.iter().filter(|(_, counts)| *counts == 1.0);
    let found = direct
        .take(RELATED)
        .filter_map(|(other, _)| known[*other as usize].as_ref());
    let mut found = Vec::from_iter(found.map(|found| found.a));
    found.sort_unstable();
    let same = found.chunk_by(|x, y| x == y);
    same.map(|same| (same[0], same.len() as u32)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Evidence, Producer, Sketch, Statement, Version, Weights};

    /// A statement, given as its function, its class, its only value, the producers of its
    /// operands, and the writers of its data.
    type Made = (u32, usize, u64, Vec<u32>, Vec<u32>);

    const CLASSES: [Class; 3] = [Class::Compute, Class::Load, Class::Store];

    fn version(made: &[Made]) -> Version {
        let count = made.len() as u32;
        let class = |at: u32| CLASSES[made[at as usize].1];
        let statement = |(function, at, value, makers, writers): &Made| {
            let mut values = Sketch::default();
            values.add(*value);
            let mut writers = Vec::from_iter(writers.iter().map(|writer| writer % count));
            writers.retain(|writer| CLASSES[*at] == Class::Load && class(*writer) == Class::Store);
            writers.sort_unstable();
            writers.dedup();
            let makers = makers.iter().map(|maker| match maker % 5 {
                0 => Producer::Constant(u64::from(maker / 5 % 3)),
                _ => Producer::Statement(maker % count),
            });
            let mut producers = Vec::from_iter(makers);
            producers.sort_unstable();
            producers.dedup();
            Statement {
                operator: *at as u64,
                values: Box::new(values),
                producers: producers.into(),
                writers: writers.into_iter().map(|at| (at, 1.0)).collect(),
                ..Statement::plain(*function, CLASSES[*at])
            }
        };
        let mut statements = Vec::from_iter(made.iter().map(statement));
        // Each function's statements are adjacent.
        statements.iter_mut().for_each(|of| of.function /= 4);
        Version {
            statements,
            length: 100,
            ..Version::default()
        }
    }

    fn made() -> impl Strategy<Value = Vec<Made>> {
        let numbers = || prop::collection::vec(0u32..300, 0..4);
        let one = (0usize..3, 0u64..3, numbers(), numbers());
        prop::collection::vec(one, 1..12).prop_map(|all| {
            let all = (0..).zip(all);
            all.map(|(at, (class, value, makers, writers))| (at, class, value, makers, writers))
                .collect()
        })
    }

    /// Computes the features from their definition, for features that are not sums of weights.
    fn expected(both: &Both<'_>, a: u32, b: u32, known: &[Option<Match>]) -> Vec<(Feature, f32)> {
        let (of_a, of_b) = (&both.a.statements, &both.b.statements);
        let mut told = Vec::new();
        let found = |at: u32| known.get(at as usize).and_then(|found| found.as_ref());
        let constants = |version: &Version, at: u32| {
            let producers = version.statements[at as usize].producers.iter();
            let constants = producers.filter(|producer| matches!(producer, Producer::Constant(_)));
            Vec::from_iter(constants.copied())
        };
        let of_second = constants(both.b, b);
        if constants(both.a, a)
            .iter()
            .any(|of| !of_second.contains(of))
        {
            told.push((Feature::ConstantsMore, 1.0));
        }
        let here = |at: u32| {
            let same = of_b.get(at as usize)?.function == of_b[b as usize].function;
            found(at).filter(|_| same && at != b)
        };
        let inside = |of: &&Match| of_a[of.a as usize].function == of_a[a as usize].function;
        let (mut near, mut all) = (0.0, 0);
        for at in b.saturating_sub(4)..=b + 4 {
            let Some(of) = here(at) else { continue };
            all += 1;
            let apart = of.a.abs_diff(a);
            if inside(&of) && apart > 0 && apart <= 24 && (of.a < a) == (at < b) {
                near += 1.0 / (1.0 + apart as f32 / 12.0);
            }
        }
        told.push((Feature::Neighbours, near / all.max(1) as f32));
        let before = b.checked_sub(1).and_then(here).filter(inside);
        let behind = here(b + 1).filter(inside);
        for of in [before, behind].into_iter().flatten() {
            if of.a == a {
                told.push((Feature::SameMatchNext, 1.0));
            }
        }
        let before = before.is_some_and(|of| of.a < a && a - of.a <= 12);
        let behind = behind.is_some_and(|of| of.a > a && of.a - a <= 12);
        for (is, feature) in [
            (before, Feature::Before),
            (behind, Feature::After),
            (before && behind, Feature::Between),
        ] {
            if is {
                told.push((feature, 1.0));
            }
        }
        let sharing = (b.saturating_sub(8)..=b + 8).filter_map(here);
        let sharing = Vec::from_iter(sharing.filter(|of| of.a == a));
        if !sharing.is_empty() {
            told.push((Feature::Taken, 1.0));
        }
        let mine = found(b)
            .filter(|of| of.a == a)
            .map_or(f32::MIN, |of| of.score);
        if sharing.iter().any(|of| of.score > mine) {
            told.push((Feature::TakenBetter, 1.0));
        }
        let wrote = |all: &[Statement], store: u32, load: u32| {
            all[load as usize].writers.iter().any(|of| of.0 == store)
        };
        let others = (0..of_b.len() as u32).filter(|&other| match of_b[b as usize].class {
            Class::Load => wrote(of_b, other, b),
            Class::Store => wrote(of_b, b, other),
            _ => false,
        });
        let others = Vec::from_iter(others.filter_map(found));
        let same = others.iter().filter(|of| match of_b[b as usize].class {
            Class::Load => wrote(of_a, of.a, a),
            _ => wrote(of_a, a, of.a),
        });
        let same = same.count();
        if !others.is_empty() {
            told.push((Feature::Written, same as f32 / others.len() as f32));
            if same == 0 {
                told.push((Feature::WrittenByOthers, 1.0));
            }
        }
        told
    }

    proptest! {
        #[test]
        fn what_surrounds_a_statement_is_told_by_definition(
            a in made(),
            b in made(),
            matches in prop::collection::vec(prop::option::weighted(0.8, (0u32..100, 0u32..3)), 12),
        ) {
            let (a, b) = (version(&a), version(&b));
            let both = Both::new(&a, &b, None, Weights::default());
            let count = a.statements.len() as u32;
            let evidence = Evidence::PLAIN;
            let known = matches.iter().take(b.statements.len()).map(|found| {
                let (a, score) = (*found)?;
                let (a, score) = (a % count, score as f32);
                Some(Match { a, evidence, score })
            });
            let known = Vec::from_iter(known);
            let affinity = Affinity::default();
            for of_b in 0..b.statements.len() as u32 {
                let surroundings = Surroundings::new(&both, of_b, &known, &affinity);
                for of_a in 0..count {
                    // Writers are examined only for statements of the same class.
                    if a.statements[of_a as usize].class != b.statements[of_b as usize].class {
                        continue;
                    }
                    let expected = expected(&both, of_a, of_b, &known);
                    let mut told = Vec::new();
                    surroundings.tell(of_a, &mut |feature, x| told.push((feature, x)));
                    // The classes of values also determine how producers and users count.
                    told.retain(|(feature, _)| {
                        ![
                            Feature::Operands,
                            Feature::OperandsAll,
                            Feature::Users,
                            Feature::UsersAll,
                            Feature::Affinity,
                        ]
                        .contains(feature)
                    });
                    let sorted = |mut all: Vec<(Feature, f32)>| {
                        all.sort_by_key(|(feature, _)| *feature as usize);
                        all
                    };
                    prop_assert_eq!(sorted(told), sorted(expected));
                }
            }
        }
    }
}
