//! Iterates over a window of a run, path by path, in either direction.

use std::collections::HashSet;
use std::ops::Range;

use afterimage_ids::{FuncId, NodeId};
use afterimage_wpp::{Cursor, Occurrences, PathError, Segments, TargetError, Visit, WholePath};

/// The number of paths of other functions to skip one by one before a search for the next path.
const STEPS: u32 = 32;

/// The blocks from one time to another, including both. Times count executed blocks from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The time of the first block.
    pub first: u64,
    /// The time of the last block.
    pub last: u64,
}

impl Window {
    /// Returns the blocks of an executed path that are in the window, as positions in the path.
    pub fn part(&self, visit: Visit) -> Range<u64> {
        let first = self.first.max(visit.start);
        let last = self.last.min(visit.last());
        first - visit.start..(last + 1).saturating_sub(visit.start)
    }

    fn overlaps(&self, visit: Visit) -> bool {
        visit.start <= self.last && self.first <= visit.last()
    }
}

/// Iterates over the paths executed in a window, forward or backward, for all functions or some of
/// them. Paths that the window cuts are included.
///
/// A step takes amortised O(1). If the functions are rarely executed, finding their next path takes
/// O(log n) for each rule on the way.
pub struct Visits<'a, S: Segments> {
    path: &'a WholePath<S>,
    window: Window,
    reverse: bool,
    filter: Option<Filter<'a, S>>,
    cursor: Cursor<'a, S>,
    state: State,
}

/// The paths to which an iteration is limited.
struct Filter<'a, S> {
    nodes: HashSet<NodeId>,
    occurrences: Occurrences<'a, S>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Fresh,
    Moving,
    Done,
}

impl<'a, S: Segments> Visits<'a, S> {
    /// Creates an iterator over the executed paths of a window, in order of time or backward. With
    /// `function`, returns only the paths of that function. The window must lie within the run.
    ///
    /// # Errors
    /// Returns an error if the function executed 2^64 paths or more.
    pub fn new(
        path: &'a WholePath<S>,
        window: Window,
        reverse: bool,
        function: Option<FuncId>,
    ) -> Result<Self, TargetError> {
        let mut visits = Self {
            path,
            window,
            reverse,
            filter: None,
            cursor: path.cursor(),
            state: State::Fresh,
        };
        if let Some(function) = function {
            visits.keep_only(HashSet::from([function]))?;
        }
        Ok(visits)
    }

    /// Limits the rest of the iteration to the paths of these functions.
    ///
    /// # Errors
    /// Returns the same errors as [`new`](Self::new).
    pub fn keep_only(&mut self, functions: HashSet<FuncId>) -> Result<(), TargetError> {
        let nodes = self.path.nodes().iter();
        let kept = nodes.filter(|(_, node)| functions.contains(&node.function));
        self.keep_nodes(kept.map(|(node, _)| node).collect())
    }

    /// Limits the rest of the iteration to these paths.
    ///
    /// # Errors
    /// Returns the same errors as [`new`](Self::new).
    pub fn keep_nodes(&mut self, nodes: HashSet<NodeId>) -> Result<(), TargetError> {
        let occurrences = self.path.executions(nodes.iter().map(|&node| (node, 0)))?;
        self.filter = Some(Filter { nodes, occurrences });
        Ok(())
    }

    /// Whether the iteration is limited to some paths.
    pub fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    /// Returns the window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Whether the iteration goes backward.
    pub fn is_reverse(&self) -> bool {
        self.reverse
    }

    /// Returns the number of activations that enclose the activation of the last path.
    pub fn depth(&self) -> usize {
        self.cursor.depth().saturating_sub(1)
    }

    /// Returns the next path, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn next_visit(&mut self) -> Result<Option<Visit>, PathError<S::Error>> {
        let mut visit = match self.state {
            State::Fresh if self.reverse => self.cursor.seek(self.window.last)?,
            State::Fresh => self.cursor.seek(self.window.first)?,
            State::Moving => self.step()?,
            State::Done => None,
        };
        self.state = State::Moving;
        let mut steps = 0;
        while let Some(at) = visit.filter(|&at| self.window.overlaps(at)) {
            if self.is_wanted(at.node) {
                return Ok(Some(at));
            }
            steps += 1;
            visit = if steps < STEPS {
                self.step()?
            } else {
                self.search(at)?
            };
        }
        self.state = State::Done;
        Ok(None)
    }

    /// Returns the number of paths that begin in the window.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read. If the paths cannot be counted, the result is
    /// `Ok(None)`.
    pub fn count(&self) -> Result<Option<u64>, PathError<S::Error>> {
        let all;
        let occurrences = match &self.filter {
            Some(filter) => &filter.occurrences,
            None => {
                let nodes = self.path.nodes().keys().map(|node| (node, 0));
                match self.path.executions(nodes) {
                    Ok(occurrences) => all = occurrences,
                    Err(_) => return Ok(None),
                }
                &all
            }
        };
        let before = occurrences.rank(self.window.first - 1)?;
        Ok(Some(occurrences.rank(self.window.last)? - before))
    }

    fn is_wanted(&self, node: NodeId) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|filter| filter.nodes.contains(&node))
    }

    #[inline]
    fn step(&mut self) -> Result<Option<Visit>, PathError<S::Error>> {
        if self.reverse {
            self.cursor.previous()
        } else {
            self.cursor.next()
        }
    }

    /// Returns the next path that the filter selects, or the next path without a filter.
    fn search(&mut self, from: Visit) -> Result<Option<Visit>, PathError<S::Error>> {
        let Some(filter) = &self.filter else {
            return self.step();
        };
        let found = if self.reverse {
            filter.occurrences.previous_before(from.start)?
        } else {
            filter.occurrences.next_after(from.last())?
        };
        match found {
            Some(found) => self.cursor.seek(found.time),
            None => Ok(None),
        }
    }
}

/// The unit in which the last entries of a window are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Entries are executed blocks.
    Block,
    /// Entries are executed paths.
    Path,
}

/// Returns the window that contains only the last `entries` entries of a window, for all functions
/// or some of them. For blocks of all functions, this takes O(1). Otherwise, the search goes
/// backward, and takes time linear in `entries`.
///
/// # Errors
/// Returns an error if the path cannot be read.
pub fn last<S: Segments>(
    path: &WholePath<S>,
    window: Window,
    functions: Option<HashSet<FuncId>>,
    unit: Unit,
    entries: u64,
) -> Result<Window, TraceError<S::Error>> {
    let mut first = window.last + 1;
    if (unit, &functions) == (Unit::Block, &None) {
        first = window.first.max(first.saturating_sub(entries));
        return Ok(Window { first, ..window });
    }
    let mut visits = Visits::new(path, window, true, None)?;
    if let Some(functions) = functions {
        visits.keep_only(functions)?;
    }
    let mut missing = entries;
    while missing > 0 {
        let Some(visit) = visits.next_visit()? else {
            break;
        };
        let part = window.part(visit);
        let more = match unit {
            Unit::Path => 1,
            Unit::Block => (part.end - part.start).min(missing),
        };
        missing -= more;
        first = match unit {
            Unit::Path => visit.start + part.start,
            Unit::Block => visit.start + part.end - more,
        };
    }
    Ok(Window { first, ..window })
}

/// The reason why a window of a run cannot be shown. `E` is the reason why a segment cannot be
/// loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError<E> {
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
    /// The paths cannot be counted.
    #[error(transparent)]
    Target(#[from] TargetError),
}
