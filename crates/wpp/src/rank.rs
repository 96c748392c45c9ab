//! Rank and select: which one it is, and where the k-th is.

mod error;
mod sparse;
mod sums;
mod tally;

use std::sync::{Arc, Mutex, PoisonError};

use afterimage_ids::{FuncId, NodeId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

pub use self::error::TargetError;
use self::tally::Tally;
use crate::measures::Measured;
use crate::whole_path::Recent;
use crate::{PathError, Segments, Summary, WholePath};

/// The counts may take this fraction of the room that open segments may take.
const SHARE: usize = 4;

/// One of the [`Occurrences`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Occurrence {
    /// The how many-th it is, from 1.
    pub number: u64,
    /// When: the time of the block, or of the activation's first.
    pub time: u64,
}

/// What is looked for.
enum Target {
    /// These nodes, and which of their blocks, from 0.
    Nodes(HashMap<NodeId, u64, FxBuildHasher>),
    /// Activations of this function.
    Calls(FuncId),
}

/// All executions of a block, or of some nodes, or all activations of a function, in the order of time.
///
/// Nothing is stored for this. How many there are in each rule is counted, the children before the parents, once for each segment that is
/// asked: of nodes that stand in few rules only there, otherwise in time linear in the segment's grammar; after that a question takes O(log n) for each rule on the way down to the
/// answer. Segments without any are not opened.
pub struct Occurrences<'a, S> {
    path: &'a WholePath<S>,
    target: Target,
    /// How many there are before each segment, and in all.
    before: Vec<u64>,
    /// The counts of segments.
    cache: Mutex<Recent<Tally>>,
}

impl<S: Segments> WholePath<S> {
    /// The executions of nodes, each standing for the time of one of its blocks: its position in the node, from 0. With all nodes that contain a
    /// block, and where, these are the executions of the block; with 0, those of the nodes.
    ///
    /// # Errors
    /// If a node is not known, has no such block, or is given twice.
    pub fn executions(
        &self,
        nodes: impl IntoIterator<Item = (NodeId, u64)>,
    ) -> Result<Occurrences<'_, S>, TargetError> {
        let mut positions = HashMap::default();
        for (node, position) in nodes {
            let known = self.nodes().get(node);
            if position >= known.ok_or(TargetError::Unknown(node))?.length() {
                return Err(TargetError::Position(node));
            }
            if positions.insert(node, position).is_some() {
                return Err(TargetError::Twice(node));
            }
        }
        Occurrences::new(self, Target::Nodes(positions))
    }

    /// The activations of a function, each at the time of its first block.
    ///
    /// # Errors
    /// If there are 2^64 or more.
    pub fn activations(&self, function: FuncId) -> Result<Occurrences<'_, S>, TargetError> {
        Occurrences::new(self, Target::Calls(function))
    }
}

impl<'a, S: Segments> Occurrences<'a, S> {
    fn new(path: &'a WholePath<S>, target: Target) -> Result<Self, TargetError> {
        let mut sum: u64 = 0;
        let mut before = vec![0];
        for summary in path.segments().summaries() {
            sum = target
                .count(summary)
                .and_then(|count| sum.checked_add(count))
                .ok_or(TargetError::Uncountable)?;
            before.push(sum);
        }
        Ok(Self {
            path,
            target,
            before,
            cache: Mutex::new(Recent::new(path.room() / SHARE)),
        })
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.before[self.before.len() - 1]
    }

    /// How many there are at block T and before.
    ///
    /// # Errors
    /// If the segment cannot be read.
    pub fn rank(&self, time: u64) -> Result<u64, PathError<S::Error>> {
        if time == 0 {
            return Ok(0);
        }
        if time > self.path.length() {
            return Ok(self.count());
        }
        let segment = self.path.segment_of(time);
        let before = self.before[segment];
        if before == self.before[segment + 1] {
            return Ok(before);
        }
        let measured = self.path.open(segment)?;
        let tally = self.tally(segment, &measured);
        let offset = time - measured.segment.before - 1;
        Ok(before + tally.rank(&measured, &self.target, offset))
    }

    /// The k-th, counted from 1, if there are so many.
    ///
    /// # Errors
    /// If the segment cannot be read.
    pub fn select(&self, number: u64) -> Result<Option<Occurrence>, PathError<S::Error>> {
        if number == 0 || number > self.count() {
            return Ok(None);
        }
        let segment = self.before.partition_point(|&before| before < number) - 1;
        let measured = self.path.open(segment)?;
        let tally = self.tally(segment, &measured);
        let offset = tally.select(&measured, &self.target, number - self.before[segment] - 1);
        let time = measured.segment.before + offset + 1;
        Ok(Some(Occurrence { number, time }))
    }

    /// The first after block T.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn next_after(&self, time: u64) -> Result<Option<Occurrence>, PathError<S::Error>> {
        let rank = self.rank(time)?;
        rank.checked_add(1)
            .map_or(Ok(None), |next| self.select(next))
    }

    /// The last before block T.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn previous_before(&self, time: u64) -> Result<Option<Occurrence>, PathError<S::Error>> {
        self.select(self.rank(time.saturating_sub(1))?)
    }

    /// How many there are in each rule of a segment.
    fn tally(&self, segment: usize, measured: &Measured) -> Arc<Tally> {
        let cache = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = cache().get(segment) {
            return tally;
        }
        let count = self.before[segment + 1] - self.before[segment];
        let tally = Arc::new(Tally::new(measured, &self.target, count));
        cache().insert(segment, &tally, tally.bytes());
        tally
    }
}

impl Target {
    /// How many there are in a segment. `None` if that cannot be counted.
    fn count(&self, summary: &Summary) -> Option<u64> {
        match self {
            Self::Calls(function) => {
                let counts = &summary.call_counts;
                let at = counts.binary_search_by_key(function, |&(function, _)| function);
                Some(at.map_or(0, |at| counts[at].1))
            }
            Self::Nodes(positions) => {
                let counts = &summary.node_counts;
                let mut sum: u64 = 0;
                for node in positions.keys() {
                    if let Ok(at) = counts.binary_search_by_key(node, |&(node, _)| node) {
                        sum = sum.checked_add(counts[at].1)?;
                    }
                }
                Some(sum)
            }
        }
    }
}
