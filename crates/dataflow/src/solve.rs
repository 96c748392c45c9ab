//! Propagates queries (Zhang and Gupta 2001, section 4.2).

use std::collections::BTreeMap;

use afterimage_wpp::twpp::Series;

use crate::effect::Effect;
use crate::graph::{Direction, TimestampedGraph};
use crate::links;
use crate::scan::scan;
use crate::solution::{Outcome, Part, Solution};
use crate::times::Times;

/// A question ⟨timestamps, node⟩ about a fact. It asks for the site that decides the fact before
/// (or after) these executions of the node.
#[derive(Clone, Debug)]
pub struct Question<'q> {
    /// The direction of the query.
    pub direction: Direction,
    /// The node whose executions are queried.
    pub node: usize,
    /// The queried executions.
    pub times: &'q Series,
    /// The effect of the part of the node before the queried point or, if the query goes forward,
    /// of the part after this point.
    pub own: Effect,
}

/// Answers a question about a fact. `effect` returns the effect of a node. It is called at most
/// once per node.
///
/// Works like [`solve_within`], and lets queries do as much work as a scan of the path would take.
///
/// # Panics
/// Panics if the timestamps do not belong to the node, or there is no such node.
pub fn solve(
    graph: &TimestampedGraph,
    question: &Question<'_>,
    effect: impl FnMut(usize) -> Effect,
) -> Solution {
    solve_within(graph, question, graph.length() / 8 + 1024, effect)
}

/// Answers a question by queries, as long as their work stays within `most`. Each moved series
/// counts once, and once more for each neighbour at which it is looked up. If the timestamps are
/// too irregular for that limit, scans the path step by step instead.
///
/// In each step, all timestamps move by one. Each timestamp continues at the neighbour that
/// contains the moved timestamp. It stops if this neighbour decides the fact. It also stops if the
/// execution with the moved timestamp is itself queried, because both executions then share one
/// answer. So each step of the path is visited at most once. This takes O(steps log series) in the
/// worst case. If a series stays whole, it takes O(1) for all of its timestamps together.
///
/// # Panics
/// Panics if the timestamps do not belong to the node, or there is no such node.
pub fn solve_within(
    graph: &TimestampedGraph,
    question: &Question<'_>,
    most: u64,
    effect: impl FnMut(usize) -> Effect,
) -> Solution {
    let mut search = Search {
        graph,
        question,
        asked: Times::from(question.times),
        effects: BTreeMap::new(),
        effect,
        parts: BTreeMap::new(),
        any_linked: false,
        distance: 0,
        queries: 1,
        left: most,
    };
    let scanned = !search.run();
    let mut parts = search.parts;
    if scanned {
        let (mut effects, mut effect) = (search.effects, search.effect);
        parts = scan(graph, question, |node| {
            effects.remove(&node).unwrap_or_else(|| effect(node))
        });
    } else if search.any_linked {
        parts = links::resolve(question.direction, question.times, &parts);
    }
    let parts = parts.into_iter();
    Solution {
        parts: parts
            .map(|(outcome, times)| Part { outcome, times })
            .collect(),
        queries: search.queries,
        scanned: if scanned { graph.length() } else { 0 },
    }
}

struct Search<'q, F> {
    graph: &'q TimestampedGraph,
    question: &'q Question<'q>,
    asked: Times,
    effects: BTreeMap<usize, Effect>,
    effect: F,
    parts: BTreeMap<Outcome, Times>,
    /// Whether some executions share the answer of the previous execution, or of the next.
    any_linked: bool,
    /// The distance in steps from the queried executions.
    distance: u64,
    queries: u64,
    /// The work that is still permitted, counted as for [`solve_within`].
    left: u64,
}

impl<F: FnMut(usize) -> Effect> Search<'_, F> {
    /// Runs the queries. Returns whether all executions have an answer.
    fn run(&mut self) -> bool {
        let Question {
            direction,
            node,
            times,
            ..
        } = *self.question;
        let known = Times::from(times).of_series(self.graph.timestamps(node));
        assert_eq!(known.count(), times.count(), "not timestamps of the node");
        let own = self.question.own.clone();
        let first = self.apply(self.asked.clone(), &own);
        let mut frontier = BTreeMap::from([(node, first)]);
        while !frontier.is_empty() {
            self.distance += 1;
            let mut next: BTreeMap<usize, Times> = BTreeMap::new();
            for (from, times) in frontier {
                let work = times.entries().len() as u64;
                let ways = self.graph.towards(direction, from).len() as u64;
                match self.left.checked_sub(work * (1 + ways)) {
                    Some(left) => self.left = left,
                    None => return false,
                }
                let Some(moved) = self.moved(times) else {
                    continue;
                };
                for &to in self.graph.towards(direction, from) {
                    let here = moved.of_series(self.graph.timestamps(to));
                    let left = self.arrive(to, here);
                    if !left.is_empty() {
                        next.entry(to).or_default().join(left);
                    }
                }
            }
            self.queries += next.len() as u64;
            frontier = next;
        }
        true
    }

    /// Moves all timestamps by one step. Timestamps that leave the path stay undecided.
    fn moved(&mut self, mut times: Times) -> Option<Times> {
        let backward = self.question.direction == Direction::Backward;
        let edge = if backward { 1 } else { self.graph.length() };
        if times.take(edge) {
            let outside = if backward { 0 } else { edge + 1 };
            self.decide(Outcome::Open, Times::single(outside));
        }
        let moved = if backward {
            times.earlier(1)
        } else {
            times.later(1)
        };
        (!moved.is_empty()).then_some(moved)
    }

    /// Returns the timestamps that continue after a node.
    fn arrive(&mut self, node: usize, times: Times) -> Times {
        if times.is_empty() {
            return times;
        }
        let effect = match self.effects.remove(&node) {
            Some(known) => known,
            None => (self.effect)(node),
        };
        let left = self.apply(times, &effect);
        self.effects.insert(node, effect);
        if node != self.question.node || left.is_empty() {
            return left;
        }
        let (linked, rest) = left.split(self.question.times);
        self.any_linked |= !linked.is_empty();
        rest
    }

    /// Returns the timestamps that an effect leaves undecided.
    fn apply(&mut self, times: Times, effect: &Effect) -> Times {
        match effect {
            Effect::Transparent => times,
            Effect::Decides(site) => {
                self.decide(Outcome::Decided(*site), times);
                Times::new()
            }
            Effect::Differs { decided, rest } => {
                for (series, site) in decided {
                    self.decide(Outcome::Decided(*site), times.of_series(series));
                }
                times.of_series(rest)
            }
        }
    }

    fn decide(&mut self, outcome: Outcome, times: Times) {
        if !times.is_empty() {
            let origins = self.origins(&times);
            // Combining the series every time would take time proportional to all earlier
            // decisions.
            self.parts.entry(outcome).or_default().append(origins);
        }
    }

    /// Returns the queried executions whose queries have reached these timestamps.
    fn origins(&self, times: &Times) -> Times {
        match self.question.direction {
            Direction::Backward => times.later(self.distance),
            Direction::Forward => times.earlier(self.distance),
        }
    }
}
