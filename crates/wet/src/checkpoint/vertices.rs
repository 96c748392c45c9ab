//! The tree above the intervals.

use super::CHILDREN;
use super::group::{self, Sets};
use super::recorder::Intervals;

/// A vertex of the tree, to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// How far it is above the intervals, at least 1.
    pub(super) level: u32,
    /// Which one of its level.
    pub(super) number: u64,
    /// Its first child.
    pub(super) first: u64,
    /// How many it has.
    pub(super) children: u32,
    /// Blocks executed before.
    pub(super) before: u64,
    /// Blocks executed at its end.
    pub(super) after: u64,
    /// What is known of its children at once.
    pub(super) bytes: Vec<u8>,
    /// What is known of each, for those of a group.
    pub(super) units: Vec<Vec<u8>>,
    /// The bytes of the words that intervals wrote, one after the other.
    pub(super) words: Vec<u8>,
}

impl Vertex {
    /// Where it is in the tree: its level, and its number there.
    pub fn place(&self) -> (u32, u64) {
        (self.level, self.number)
    }

    /// How many blocks are executed at its end.
    pub fn end(&self) -> u64 {
        self.after
    }
}

/// The vertex of a level that is being made.
#[derive(Default)]
struct Open {
    /// Which one of its level.
    number: u64,
    first: u64,
    before: u64,
    children: Vec<Sets>,
}

/// Makes vertices of groups, which it is given in order.
#[derive(Default)]
pub(crate) struct Vertices {
    /// Those that are being made, from the level above the intervals on.
    open: Vec<Open>,
    /// Blocks executed at the end of the last group.
    now: u64,
}

impl Vertices {
    /// The vertices that a group completes.
    pub fn group(&mut self, group: Intervals) -> Vec<Vertex> {
        let Intervals {
            intervals,
            lists,
            words,
        } = group;
        let mut done = Vec::new();
        let Some(last) = intervals.last() else {
            return done;
        };
        self.now = last.after;
        if self.open.is_empty() {
            self.open.push(Open::default());
        }
        let mut all = Sets::default();
        for interval in &intervals {
            all.add(&interval.sets());
        }
        let open = &mut self.open[0];
        let before = open.before;
        let children = intervals.len() as u32;
        let (bytes, units) = group::encode(before, &intervals, &lists);
        done.push(Vertex {
            level: 1,
            number: open.number,
            first: open.first,
            children,
            before,
            after: self.now,
            bytes,
            units,
            words,
        });
        open.number += 1;
        open.first += u64::from(children);
        open.before = self.now;
        self.child(1, before, all, &mut done);
        done
    }

    /// The run has ended: the vertices that are complete with that.
    pub fn end(&mut self) -> Vec<Vertex> {
        let mut done = Vec::new();
        let mut level = 0;
        while level < self.open.len() {
            self.close(level, &mut done);
            level += 1;
        }
        done
    }

    /// A vertex of the level below was completed.
    fn child(&mut self, level: usize, before: u64, sets: Sets, done: &mut Vec<Vertex>) {
        if self.open.len() <= level {
            self.open.push(Open::default());
        }
        let open = &mut self.open[level];
        if open.children.is_empty() {
            open.before = before;
        }
        open.children.push(sets);
        if open.children.len() == CHILDREN {
            self.close(level, done);
        }
    }

    /// Completes the vertex of a level, if it has more than one child, or is not the first one.
    fn close(&mut self, level: usize, done: &mut Vec<Vertex>) {
        let open = &mut self.open[level];
        if level == 0 || open.children.is_empty() || open.number == 0 && open.children.len() == 1 {
            return;
        }
        let children = std::mem::take(&mut open.children);
        let mut bytes = Vec::new();
        let mut all = Sets::default();
        for sets in &children {
            sets.encode(&mut bytes);
            all.add(sets);
        }
        let (before, after) = (open.before, self.now);
        let vertex = Vertex {
            level: level as u32 + 1,
            number: open.number,
            first: open.first,
            children: children.len() as u32,
            before,
            after,
            bytes,
            units: Vec::new(),
            words: Vec::new(),
        };
        open.number += 1;
        open.first += children.len() as u64;
        done.push(vertex);
        self.child(level + 1, before, all, done);
    }
}
