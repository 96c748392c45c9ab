//! Implements the second and third approaches, in which queries follow the path.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::program::{Slicing, Subject};
use super::raised::RaisedTimestamps;
use super::slice::{Criterion, Row, Slice};
use crate::graph::Direction;
use crate::times::Times;

type Query = (usize, Subject);

pub(super) fn slice(
    slicing: &Slicing<'_>,
    criterion: &Criterion,
    instances: bool,
    mut observe: Option<&mut dyn FnMut(Row)>,
) -> Slice {
    let Criterion {
        node,
        time,
        ref variables,
    } = *criterion;
    let timestamps = slicing.graph.timestamps(node);
    assert!(timestamps.contains(time), "the node does not execute then");
    let mut search = Search {
        slicing,
        instances,
        asked: FxHashMap::default(),
        slice: Slice::default(),
        in_slice: BTreeMap::new(),
        arrived: BTreeMap::new(),
        whole: FxHashSet::default(),
        row: Row::default(),
        observed: observe.is_some(),
    };
    search.slice.nodes.insert(node);
    if instances {
        let known = search.in_slice.entry(node).or_default();
        known.add(Times::single(time));
    }
    for &variable in variables {
        search.arrive(node, Subject::Variable(variable), Times::single(time));
    }
    for subject in slicing.needs(node) {
        if let Subject::Control(_) = subject {
            search.arrive(node, subject, Times::single(time));
        }
    }
    loop {
        let frontier = search.raise();
        let row = std::mem::take(&mut search.row);
        if let Some(observe) = &mut observe {
            observe(row);
        }
        if frontier.is_empty() {
            break;
        }
        for ((node, subject), mut times) in frontier {
            // Nothing precedes the first step of the path.
            times.take(1);
            let moved = times.earlier(1);
            for &before in slicing.graph.towards(Direction::Backward, node) {
                let here = moved.of_series(slicing.graph.timestamps(before));
                if !here.is_empty() {
                    search.meet(before, subject, here);
                }
            }
        }
    }
    let found = search.in_slice.into_iter();
    search.slice.instances = found
        .map(|(node, asked)| (node, asked.into_series()))
        .collect();
    search.slice
}

struct Search<'s> {
    slicing: &'s Slicing<'s>,
    instances: bool,
    asked: FxHashMap<Query, RaisedTimestamps>,
    slice: Slice,
    /// The executions in the slice, if executions are distinguished.
    in_slice: BTreeMap<usize, RaisedTimestamps>,
    /// The queries that reached nodes in this step.
    arrived: BTreeMap<Query, Vec<Times>>,
    /// The nodes that have queries for all of their executions.
    whole: FxHashSet<usize>,
    row: Row,
    observed: bool,
}

impl Search<'_> {
    /// Handles a query that meets executions of a node.
    fn meet(&mut self, node: usize, subject: Subject, times: Times) {
        let Some(kind) = self.slicing.answers(node, subject) else {
            self.arrive(node, subject, times);
            return;
        };
        if self.slice.nodes.insert(node) {
            self.row.added.push((node, kind));
        }
        let raised = if self.instances {
            self.in_slice.entry(node).or_default().add(times).0
        } else if self.whole.insert(node) || self.observed {
            // One query covers all executions. The query is repeated only to report that it was
            // solved before.
            Times::from(self.slicing.graph.timestamps(node))
        } else {
            return;
        };
        if raised.is_empty() {
            return;
        }
        for subject in self.slicing.needs(node) {
            self.arrive(node, subject, raised.clone());
        }
    }

    fn arrive(&mut self, node: usize, subject: Subject, times: Times) {
        self.arrived.entry((node, subject)).or_default().push(times);
    }

    /// Raises the queries that arrived, unless they were raised before.
    fn raise(&mut self) -> BTreeMap<Query, Times> {
        let mut raised = BTreeMap::new();
        for ((node, subject), sets) in std::mem::take(&mut self.arrived) {
            let asked = self.asked.entry((node, subject)).or_default();
            let (mut new, mut known) = (Times::new(), Times::new());
            for times in sets {
                let (fresh, again) = asked.add(times);
                let (_, again) = again.split(&new.to_series());
                let (_, again) = again.split(&known.to_series());
                new.join(fresh);
                known.join(again);
            }
            if !known.is_empty() {
                self.row.solved.push((Some(known), node, subject));
            }
            if !new.is_empty() {
                self.slice.queries += 1;
                self.row.queries.push((Some(new.clone()), node, subject));
                raised.insert((node, subject), new);
            }
        }
        raised
    }
}
