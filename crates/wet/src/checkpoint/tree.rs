//! Finds the last interval before a moment, or the first interval after it, that read or wrote a
//! word.
//!
//! Level 0 contains the intervals. A vertex stores the union of all sets below each child.

use std::ops::Range;
use std::sync::Arc;

use super::group::Sets;
use super::set::Set;
use super::{CheckpointError, Key};

/// A forest of intervals. The vertices of a level are numbered from 0 in order of time. The last
/// vertices of a level may lack a parent.
pub(crate) trait Tree {
    /// Returns the number of vertices of a level.
    fn count(&self, level: usize) -> u64;

    /// Returns the children of a vertex, which are on the level below.
    fn children(&self, level: usize, number: u64) -> Range<u64>;

    /// Returns the vertex of a level with this child.
    fn parent(&self, level: usize, child: u64) -> Option<u64>;

    /// Returns the words written and read in a vertex.
    fn sets(&self, level: usize, number: u64) -> Result<Arc<Sets>, CheckpointError>;
}

/// The kind of access to search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Written,
    Read,
}

impl What {
    fn of(self, sets: &Sets) -> &Set {
        match self {
            What::Written => &sets.written,
            What::Read => &sets.read,
        }
    }
}

const DAMAGED: CheckpointError = CheckpointError::Damaged("a vertex contradicts its children");

/// Some words of a line.
pub(crate) type Words = (Key, u16);

/// Whether a vertex wrote, or read, one of these words.
fn has<T: Tree>(
    tree: &T,
    what: What,
    (key, mask): Words,
    level: usize,
    number: u64,
) -> Result<bool, CheckpointError> {
    let sets = tree.sets(level, number)?;
    Ok(what.of(&sets).get(key) & mask != 0)
}

/// Returns the first or last interval below a vertex that wrote, or read, one of these words. There
/// must be at least one.
fn below<T: Tree>(
    tree: &T,
    what: What,
    words: Words,
    (level, number): (usize, u64),
    last: bool,
) -> Result<u64, CheckpointError> {
    let (mut level, mut number) = (level, number);
    while level > 0 {
        let mut children = tree.children(level, number);
        level -= 1;
        number = loop {
            let child = if last {
                children.next_back()
            } else {
                children.next()
            };
            let child = child.ok_or(DAMAGED)?;
            if has(tree, what, words, level, child)? {
                break child;
            }
        };
    }
    Ok(number)
}

/// Returns the last interval before a given interval that wrote, or read, one of these words of a
/// line. Examines O(children · levels) sets.
pub(crate) fn last_before<T: Tree>(
    tree: &T,
    what: What,
    words: Words,
    before: u64,
) -> Result<Option<u64>, CheckpointError> {
    let (mut level, mut end) = (0, before);
    while let Some(last) = end.checked_sub(1) {
        let (start, parent) = before_siblings(tree, level, last);
        for number in (start..end).rev() {
            if has(tree, what, words, level, number)? {
                return below(tree, what, words, (level, number), true).map(Some);
            }
        }
        level += 1;
        end = parent;
    }
    Ok(None)
}

/// Returns the first sibling of a vertex, and the number of their parent. Vertices without a parent
/// count as siblings under the next parent.
fn before_siblings<T: Tree>(tree: &T, level: usize, number: u64) -> (u64, u64) {
    match tree.parent(level + 1, number) {
        Some(parent) => (tree.children(level + 1, parent).start, parent),
        None => {
            let parents = tree.count(level + 1);
            let last = parents.checked_sub(1);
            let start = last.map_or(0, |last| tree.children(level + 1, last).end);
            (start, parents)
        }
    }
}

/// Returns the first interval, from a given interval on, that wrote, or read, one of these words of
/// a line. Examines O(children · levels) sets.
pub(crate) fn first_from<T: Tree>(
    tree: &T,
    what: What,
    words: Words,
    from: u64,
) -> Result<Option<u64>, CheckpointError> {
    let (mut level, mut at) = (0, from);
    loop {
        // The walk has examined earlier vertices, so only the siblings from here on remain below
        // the parent.
        let parent = if at < tree.count(level) {
            tree.parent(level + 1, at)
        } else {
            return Ok(None);
        };
        let end = match parent {
            Some(parent) => tree.children(level + 1, parent).end,
            None => tree.count(level),
        };
        for number in at..end {
            if has(tree, what, words, level, number)? {
                return below(tree, what, words, (level, number), false).map(Some);
            }
        }
        (level, at) = match parent {
            Some(parent) => next_sibling(tree, level + 1, parent + 1),
            None => next_sibling(tree, level, end),
        };
    }
}

/// Returns the vertex at which to continue. The last vertex of a level is followed by vertices
/// without a parent on lower levels.
fn next_sibling<T: Tree>(tree: &T, level: usize, number: u64) -> (usize, u64) {
    let (mut level, mut number) = (level, number);
    while level > 0 && number >= tree.count(level) {
        number = match number.checked_sub(1) {
            Some(last) if last < tree.count(level) => tree.children(level, last).end,
            _ => 0,
        };
        level -= 1;
    }
    (level, number)
}

/// Returns, for each of these words, the last interval before a given interval that wrote the word.
/// The words of a line may have been written in different intervals. Unwritten words are listed
/// under `None`. Examines O(spans · children · levels) sets.
pub(crate) fn newest<T: Tree>(
    tree: &T,
    words: Set,
    before: u64,
) -> Result<Vec<(Option<u64>, Set)>, CheckpointError> {
    let mut found = Vec::new();
    let mut missing = words;
    let (mut level, mut end) = (0, before);
    while let Some(last) = end.checked_sub(1) {
        let (start, parent) = before_siblings(tree, level, last);
        for number in (start..end).rev() {
            if missing.is_empty() {
                return Ok(found);
            }
            let inside = missing.take(&tree.sets(level, number)?.written);
            descend(tree, inside, (level, number), &mut found)?;
        }
        level += 1;
        end = parent;
    }
    found.push((None, missing));
    Ok(found)
}

fn descend<T: Tree>(
    tree: &T,
    inside: Set,
    (level, number): (usize, u64),
    found: &mut Vec<(Option<u64>, Set)>,
) -> Result<(), CheckpointError> {
    let mut open = vec![(level, number, inside)];
    while let Some((level, number, mut inside)) = open.pop() {
        if inside.is_empty() {
            continue;
        }
        if level == 0 {
            found.push((Some(number), inside));
            continue;
        }
        for child in tree.children(level, number).rev() {
            if inside.is_empty() {
                break;
            }
            let below = inside.take(&tree.sets(level - 1, child)?.written);
            open.push((level - 1, child, below));
        }
        if !inside.is_empty() {
            return Err(DAMAGED);
        }
    }
    Ok(())
}
