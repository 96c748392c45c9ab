//! Implements the first approach, which uses timestamps only to find the executed nodes.

use rustc_hash::FxHashSet;

use super::program::{Slicing, Subject};
use super::slice::{Criterion, Row, Slice};

type Query = (usize, Subject);

pub(super) fn slice(
    slicing: &Slicing<'_>,
    criterion: &Criterion,
    mut observe: Option<&mut dyn FnMut(Row)>,
) -> Slice {
    let mut search = Search {
        slicing,
        asked: FxHashSet::default(),
        slice: Slice::default(),
        next: Vec::new(),
        new: FxHashSet::default(),
        row: Row::default(),
        observed: observe.is_some(),
    };
    search.slice.nodes.insert(criterion.node);
    for &variable in &criterion.variables {
        search.raise((criterion.node, Subject::Variable(variable)));
    }
    for subject in slicing.needs(criterion.node) {
        if let Subject::Control(_) = subject {
            search.raise((criterion.node, subject));
        }
    }
    loop {
        let row = std::mem::take(&mut search.row);
        if let Some(observe) = &mut observe {
            observe(row);
        }
        let frontier = std::mem::take(&mut search.next);
        search.new.clear();
        if frontier.is_empty() {
            return search.slice;
        }
        for (node, subject) in frontier {
            for &before in &slicing.before[node] {
                if slicing.is_executed(before) {
                    search.arrive(before, subject);
                }
            }
        }
    }
}

struct Search<'s> {
    slicing: &'s Slicing<'s>,
    asked: FxHashSet<Query>,
    slice: Slice,
    next: Vec<Query>,
    /// The queries in `next`, as a set for look-ups.
    new: FxHashSet<Query>,
    row: Row,
    observed: bool,
}

impl Search<'_> {
    fn arrive(&mut self, node: usize, subject: Subject) {
        let Some(kind) = self.slicing.answers(node, subject) else {
            self.raise((node, subject));
            return;
        };
        if self.slice.nodes.insert(node) {
            self.row.added.push((node, kind));
        }
        for subject in self.slicing.needs(node) {
            self.raise((node, subject));
        }
    }

    fn raise(&mut self, (node, subject): Query) {
        if self.asked.insert((node, subject)) {
            self.slice.queries += 1;
            self.next.push((node, subject));
            self.row.queries.push((None, node, subject));
            self.new.insert((node, subject));
        } else if self.observed && !self.new.contains(&(node, subject)) {
            self.row.solved.push((None, node, subject));
        }
    }
}
