//! Compares answers with a naive walk over the expanded path.

use afterimage_dataflow::{
    Direction, Effect, Outcome, Question, Site, TimestampedGraph, solve_within,
};
use afterimage_wpp::twpp::Series;
use proptest::prelude::*;

/// Generates paths of loops with patterns, and random paths.
fn paths() -> impl Strategy<Value = Vec<usize>> {
    let random = proptest::collection::vec(0usize..6, 1..80);
    let body = proptest::collection::vec(0usize..5, 1..6);
    let bodies = proptest::collection::vec((body, 1usize..9), 1..6);
    let loops = (bodies, 1usize..4).prop_map(|(bodies, times)| {
        let round: Vec<usize> = bodies
            .into_iter()
            .flat_map(|(body, times)| body.repeat(times))
            .collect();
        round.repeat(times)
    });
    prop_oneof![random, loops]
}

/// The behaviour of a node at each of its executions, as one of a few patterns.
#[derive(Clone, Debug)]
enum Does {
    Nothing,
    Always(u32),
    /// By the execution's number, modulo the length.
    Some(Vec<Option<u32>>),
}

fn does() -> impl Strategy<Value = Does> {
    let some = proptest::collection::vec(proptest::option::of(0u32..3), 1..5);
    prop_oneof![
        4 => Just(Does::Nothing),
        2 => (0u32..3).prop_map(Does::Always),
        1 => some.prop_map(Does::Some),
    ]
}

impl Does {
    fn at(&self, k: usize) -> Option<u32> {
        match self {
            Self::Nothing => None,
            Self::Always(site) => Some(*site),
            Self::Some(sites) => sites[k % sites.len()],
        }
    }

    fn effect(&self, timestamps: &Series) -> Effect {
        match self {
            Self::Nothing => Effect::Transparent,
            Self::Always(site) => Effect::Decides(Site(*site)),
            Self::Some(_) => {
                let of = |wanted: Option<u32>| {
                    let all = timestamps.iter().enumerate();
                    let here = all.filter(|&(k, _)| self.at(k) == wanted);
                    Series::compact(here.map(|(_, t)| t))
                };
                Effect::Differs {
                    decided: (0..3).map(|site| (of(Some(site)), Site(site))).collect(),
                    rest: of(None),
                }
            }
        }
    }
}

/// Finds the decision before or after step `t`, step by step.
fn naive(path: &[usize], does: &[Does], direction: Direction, t: usize) -> Outcome {
    let at = |t: usize| {
        let node = path[t - 1];
        let k = path[..t - 1].iter().filter(|&&other| other == node).count();
        does[node].at(k).map(|site| Outcome::Decided(Site(site)))
    };
    let found = match direction {
        Direction::Backward => (1..t).rev().find_map(at),
        Direction::Forward => (t + 1..=path.len()).find_map(at),
    };
    found.unwrap_or(Outcome::Open)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn answers_are_those_of_a_naive_walk(
        path in paths(),
        does in proptest::collection::vec(does(), 6),
        which in any::<prop::sample::Index>(),
        forward in any::<bool>(),
        keep in proptest::option::of((1usize..5, 0usize..5)),
        own in proptest::option::of(7u32..8),
        most in prop_oneof![Just(u64::MAX), Just(0), 0u64..40],
    ) {
        let direction = if forward { Direction::Forward } else { Direction::Backward };
        let graph = TimestampedGraph::of_path(&path);
        let node = path[which.index(path.len())];
        let all = graph.timestamps(node);
        let kept = all.iter().enumerate().filter(|(k, _)| keep.is_none_or(|(n, r)| k % n == r % n));
        let times = Series::compact(kept.map(|(_, t)| t));
        let question = Question {
            direction,
            node,
            times: &times,
            own: own.map_or(Effect::Transparent, |site| Effect::Decides(Site(site))),
        };
        let mut asked_for = vec![0; graph.len()];
        let solution = solve_within(&graph, &question, most, |node| {
            asked_for[node] += 1;
            does[node].effect(graph.timestamps(node))
        });
        prop_assert!(asked_for.iter().all(|&times| times <= 1));
        prop_assert_eq!(solution.count(), times.count());
        for t in times.iter() {
            let expected = match own {
                Some(site) => Outcome::Decided(Site(site)),
                None => naive(&path, &does, direction, t as usize),
            };
            prop_assert_eq!(solution.at(t), Some(expected), "at {}", t);
        }
        for part in &solution.parts {
            prop_assert!(!part.times.is_empty());
            let outcome = |other: Outcome| other == part.outcome;
            prop_assert_eq!(solution.count_where(outcome), part.times.count());
            prop_assert_eq!(solution.times_where(outcome), part.times.to_series());
        }
        prop_assert!(solution.scanned == 0 || solution.scanned == path.len() as u64 && most < u64::MAX);
        // No step is visited twice in any case.
        prop_assert!(solution.queries <= 1 + path.len() as u64);
    }
}
