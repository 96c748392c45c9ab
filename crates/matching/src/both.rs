//! Holds both versions, and data that does not depend on the matches.

use std::cmp::Ordering;

use afterimage_parallel as parallel;

use crate::candidates::{Index, Structure};
use crate::classes::Classes;
use crate::evidence::{tell_addresses, tell_operators, tell_values};
use crate::features::{Column, Feature, Stage, Weights};
use crate::order::Order;
use crate::same_code::same_code;
use crate::set::Set;
use crate::{Names, Statement, Version};

/// The number of candidates to keep because of their actions alone.
const LIKELY: usize = 40;

/// For each statement of the second version, its candidates with their scores.
pub(crate) type Weighed = Vec<Vec<(u32, f32)>>;

/// Both versions, and data that does not depend on the matches.
pub(crate) struct Both<'v> {
    pub a: &'v Version,
    pub b: &'v Version,
    pub names: Option<&'v Names>,
    pub weights: Weights,
    pub classes: Classes,
    pub order: Order,
    pub index: Index,
    pub of_a: Structure,
    pub of_b: Structure,
    /// For each statement of the second version, its counterpart, if the statement's function was
    /// paired by its code.
    pub certain: Vec<Option<u32>>,
    /// Whether each statement of the first version is a counterpart in `certain`.
    pub taken: Vec<bool>,
    /// The classes of the producers and users of the first version's statements.
    pub maker_classes: Vec<Set>,
    pub user_classes: Vec<Set>,
}

impl<'v> Both<'v> {
    /// Prepares to match two versions. O(statements × log statements).
    pub fn new(a: &'v Version, b: &'v Version, names: Option<&'v Names>, weights: Weights) -> Self {
        let classes = Classes::new(a, b);
        let order = Order::new(a, b);
        let of_a = Structure::new(a);
        let class_of = |all: &[Set]| -> Vec<Set> {
            let classes = |of: &Set| of.iter().map(|&at| classes.a[at as usize]).collect();
            all.iter().map(classes).collect()
        };
        let certain = same_code(a, b);
        let mut taken = vec![false; a.statements.len()];
        for &at in certain.iter().flatten() {
            taken[at as usize] = true;
        }
        Self {
            a,
            b,
            names,
            weights,
            certain,
            taken,
            index: Index::new(a, &order),
            order,
            maker_classes: class_of(&of_a.makers),
            user_classes: class_of(&of_a.users),
            of_b: Structure::new(b),
            of_a,
            classes,
        }
    }

    /// Returns, for each statement of the second version, the candidates with the best scores for
    /// their actions as a whole. There is one result for each stage. Each candidate's actions are
    /// examined only once.
    pub fn likely(&self) -> [Weighed; 2] {
        let all = parallel::map(self.b.statements.len(), |at| {
            if self.certain[at].is_some() {
                return Default::default();
            }
            let stages = [Stage::Wholes, Stage::Regions];
            let candidates = Candidates::new(self, at as u32, Stage::Wholes);
            let weights = stages.map(|stage| self.weights.of(stage, candidates.statement.class));
            let mut all = Vec::new();
            candidates.by_index(&mut all);
            let mut weighed = [const { Vec::new() }; 2];
            for a in all {
                let mut sums = [0.0; 2];
                candidates.tell(a, &mut |feature, x| {
                    for (sum, weights) in sums.iter_mut().zip(weights) {
                        *sum += weights.of(feature) * x;
                    }
                });
                for (weighed, sum) in weighed.iter_mut().zip(sums) {
                    weighed.push((a, sum));
                }
            }
            weighed.iter_mut().for_each(strongest);
            weighed
        });
        let mut stages = [const { Vec::new() }; 2];
        for weighed in all {
            for (stage, weighed) in stages.iter_mut().zip(weighed) {
                stage.push(weighed);
            }
        }
        stages
    }

    /// Whether a statement of the first version may be the counterpart of a statement of the
    /// second.
    pub fn may_match(&self, a: u32, of_b: &Statement) -> bool {
        let of_a = &self.a.statements[a as usize];
        of_a.class.group() == of_b.class.group() && !self.taken[a as usize]
    }
}

/// A statement of the second version, with its candidates.
pub(crate) struct Candidates<'m, 'v> {
    both: &'m Both<'v>,
    pub statement: &'v Statement,
    /// The class of the statement's values.
    class: u32,
    /// The statement's predicted place in the order of the first version.
    place: usize,
    /// The predicted number of statements of the first version that end earlier than the statement.
    end: usize,
    /// For each part in which the statement was executed, the first and the last corresponding part
    /// of the first run.
    parts: Vec<(usize, usize)>,
    weights: &'m Column,
}

impl<'m, 'v> Candidates<'m, 'v> {
    pub fn new(both: &'m Both<'v>, at: u32, stage: Stage) -> Self {
        let statement = &both.b.statements[at as usize];
        Self {
            both,
            statement,
            class: both.classes.b[at as usize],
            place: both.order.predicted(statement.first),
            end: both.order.ended(both.order.expected(statement.last)),
            parts: both.order.parts(&statement.active),
            weights: both.weights.of(stage, statement.class),
        }
    }

    /// Adds the candidates in the index, ascending.
    fn by_index(&self, all: &mut Vec<u32>) {
        let both = self.both;
        both.index
            .candidates(self.statement, &both.order, self.place, all);
        all.sort_unstable();
        all.dedup();
        all.retain(|&a| both.may_match(a, self.statement));
    }

    /// Returns a candidate's score, computed from the actions of both statements over the whole
    /// runs.
    pub fn weigh(&self, a: u32) -> f32 {
        let mut sum = 0.0;
        self.tell(a, &mut |feature, x| sum += self.weights.of(feature) * x);
        sum
    }

    /// Reports a candidate's features, computed from the actions of both statements over the whole
    /// runs.
    pub fn tell(&self, a: u32, told: &mut impl FnMut(Feature, f32)) {
        let (both, of_b) = (self.both, self.statement);
        let of_a = &both.a.statements[a as usize];
        if both.classes.a[a as usize] == self.class {
            told(
                Feature::SameRare,
                1.0 / both.classes.size[self.class as usize] as f32,
            );
        }
        tell_values(of_a, of_b, told);
        tell_addresses(of_a, of_b, told);
        let lies = (both.a.lies(of_a), both.b.lies(of_b));
        if matches!(lies, (Some(x), Some(y)) if x != y) {
            told(Feature::AddressElsewhere, 1.0);
        }
        tell_operators(of_a, of_b, told);
        if of_a.depth > 0 {
            told(Feature::Inlined, 1.0);
            told(Feature::Depth, (of_a.depth.min(8) as f32) / 8.0);
        }
        let distance = (both.order.place[a as usize] as usize).abs_diff(self.place) as f32;
        let ends = both.order.ended_before[a as usize] as usize;
        let ends = ends.abs_diff(self.end) as f32;
        let together = self
            .parts
            .iter()
            .filter(|part| of_a.active.any(part.0, part.1));
        let together = together.count() as f32 / self.parts.len().max(1) as f32;
        told(Feature::Together, together - 1.0);
        // An optimiser duplicates statements and omits executions, but hardly ever adds executions.
        match of_b.values.count.cmp(&of_a.values.count) {
            Ordering::Equal => told(Feature::CountEqual, 1.0),
            Ordering::Less => {
                told(Feature::CountLess, 1.0);
                told(
                    Feature::CountPart,
                    of_b.values.count as f32 / of_a.values.count as f32,
                );
            }
            Ordering::Greater => told(Feature::CountMore, 1.0),
        }
        told(Feature::Near2, 1.0 / (1.0 + distance / 2.0));
        told(Feature::Near16, 1.0 / (1.0 + distance / 16.0));
        told(Feature::Near128, 1.0 / (1.0 + distance / 128.0));
        told(Feature::EndsNear, 1.0 / (1.0 + ends / 8.0));
    }
}

/// Keeps the candidates with the best scores, the best first.
pub(crate) fn strongest(all: &mut Vec<(u32, f32)>) {
    let order = |x: &(u32, f32), y: &(u32, f32)| y.1.total_cmp(&x.1).then(x.0.cmp(&y.0));
    if all.len() > LIKELY {
        all.select_nth_unstable_by(LIKELY, order);
        all.truncate(LIKELY);
    }
    all.sort_unstable_by(order);
}
