//! Scans a path step by step, for timestamps that queries would move almost one by one.

use std::collections::BTreeMap;

use afterimage_wpp::twpp::Series;

use crate::effect::{Effect, Site};
use crate::graph::{Direction, TimestampedGraph};
use crate::solution::Outcome;
use crate::solve::Question;
use crate::times::Times;

/// The number of steps in a chunk.
const CHUNK: u64 = 1 << 18;
/// The number of executions gathered at a time.
const GATHERED: usize = 1 << 12;

/// Answers a question by scanning the whole path once, against the query's direction. Keeps track
/// of the last decision. O(steps), plus O(sites log series) for each step with an
/// [`Effect::Differs`].
pub(crate) fn scan(
    graph: &TimestampedGraph,
    question: &Question<'_>,
    mut effect: impl FnMut(usize) -> Effect,
) -> BTreeMap<Outcome, Times> {
    let backward = question.direction == Direction::Backward;
    let mut effects: Vec<Option<Effect>> = vec![None; graph.len()];
    let mut last = Outcome::Open;
    let mut found: BTreeMap<Outcome, Gathered> = BTreeMap::new();
    let mut nodes = Vec::new();
    let chunks = graph.length().div_ceil(CHUNK);
    for k in 0..chunks {
        let chunk = if backward { k } else { chunks - 1 - k };
        let first = chunk * CHUNK + 1;
        lay_out(graph, first, &mut nodes);
        for i in 0..nodes.len() {
            let i = if backward { i } else { nodes.len() - 1 - i };
            let (t, node) = (first + i as u64, nodes[i] as usize);
            if node == question.node && question.times.contains(t) {
                let own = decided(&question.own, t);
                let outcome = own.map_or(last, Outcome::Decided);
                found.entry(outcome).or_default().push(t, backward);
            }
            let effect = effects[node].get_or_insert_with(|| effect(node));
            if let Some(site) = decided(effect, t) {
                last = Outcome::Decided(site);
            }
        }
    }
    let parts = found.into_iter();
    parts
        .map(|(outcome, gathered)| (outcome, gathered.finish(backward)))
        .collect()
}

/// Lists the nodes that execute from a timestamp on, for one chunk.
fn lay_out(graph: &TimestampedGraph, first: u64, nodes: &mut Vec<u32>) {
    let last = graph.length().min(first + CHUNK - 1);
    nodes.clear();
    nodes.resize((last + 1 - first) as usize, 0);
    for node in 0..graph.len() {
        let entries = graph.timestamps(node).entries();
        let begin = entries.partition_point(|entry| entry.last < first);
        for entry in entries[begin..].iter().take_while(|e| e.first <= last) {
            let skipped = first.saturating_sub(entry.first).div_ceil(entry.step);
            let mut t = entry.first + skipped * entry.step;
            let end = entry.last.min(last);
            while t <= end {
                nodes[(t - first) as usize] = node as u32;
                t += entry.step;
            }
        }
    }
}

/// Returns the site that decides an execution at this time.
#[inline]
fn decided(effect: &Effect, t: u64) -> Option<Site> {
    match effect {
        Effect::Transparent => None,
        Effect::Decides(site) => Some(*site),
        Effect::Differs { decided, .. } => {
            let mut decided = decided.iter();
            decided.find_map(|(series, site)| series.contains(t).then_some(*site))
        }
    }
}

/// Timestamps, ascending or descending, that are combined into series.
#[derive(Default)]
struct Gathered {
    times: Times,
    next: Vec<u64>,
}

impl Gathered {
    fn push(&mut self, t: u64, ascending: bool) {
        self.next.push(t);
        if self.next.len() == GATHERED {
            self.compact(ascending);
        }
    }

    fn compact(&mut self, ascending: bool) {
        if !ascending {
            self.next.reverse();
        }
        let series = Series::compact(self.next.drain(..));
        series.entries().iter().for_each(|&e| self.times.add(e));
    }

    fn finish(mut self, ascending: bool) -> Times {
        self.compact(ascending);
        self.times
    }
}
