//! Builds the tree above the intervals.

use super::CHILDREN;
use super::group::{self, Sets};
use super::recorder::Intervals;

/// A vertex of the tree, ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// The vertex's level above the intervals, at least 1.
    pub(super) level: u32,
    /// The vertex's number on its level.
    pub(super) number: u64,
    /// The number of the vertex's first child on the level below.
    pub(super) first: u64,
    /// The number of the vertex's children.
    pub(super) children: u32,
    /// The number of blocks executed before the vertex.
    pub(super) before: u64,
    /// The number of blocks executed up to the vertex's end.
    pub(super) after: u64,
    /// The data about all children of the vertex.
    pub(super) bytes: Vec<u8>,
    /// For a group, the data about its children's words, in units of about 1 MiB.
    pub(super) units: Vec<Vec<u8>>,
    /// For a group, the concatenated bytes of the words that its intervals wrote, except words that
    /// the host wrote last.
    pub(super) words: Vec<u8>,
}

impl Vertex {
    /// Returns the vertex's position in the tree: its level, and its number on that level.
    pub fn place(&self) -> (u32, u64) {
        (self.level, self.number)
    }

    /// Returns the number of blocks executed up to the vertex's end.
    pub fn end(&self) -> u64 {
        self.after
    }
}

/// The incomplete vertex of a level.
#[derive(Default)]
struct Open {
    /// The vertex's number on its level.
    number: u64,
    first: u64,
    before: u64,
    children: Vec<Sets>,
}

/// Makes vertices from groups, which must be passed in order.
#[derive(Default)]
pub(crate) struct Vertices {
    /// The incomplete vertices, from the level above the intervals upwards.
    open: Vec<Open>,
    /// The number of blocks executed by the end of the last group.
    now: u64,
}

impl Vertices {
    /// Adds a group. Returns the vertices that it completes.
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

    /// Ends the run. Returns the vertices that this completes.
    pub fn end(&mut self) -> Vec<Vertex> {
        let mut done = Vec::new();
        let mut level = 0;
        while level < self.open.len() {
            self.close(level, &mut done);
            level += 1;
        }
        done
    }

    /// Adds a completed vertex of the level below.
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

    /// Completes the open vertex of a level, if it has more than one child or is not the first
    /// vertex of the level.
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
