//! Finds the number of an occurrence (rank), and the time of the k-th occurrence (select).

mod error;
mod sparse;
mod sums;
mod tally;

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use afterimage_ids::{EntityRef, FuncId, NodeId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

pub use self::error::TargetError;
use self::tally::Tally;
use crate::measures::Measured;
use crate::whole_path::Recent;
use crate::{PathError, Segments, Summary, WholePath};

/// The memory limit for counts is the limit for open segments, divided by this number.
pub(crate) const SHARE: usize = 4;

/// One of the [`Occurrences`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Occurrence {
    /// The number of the occurrence, from 1.
    pub number: u64,
    /// The time of the block, or of the activation's first block.
    pub time: u64,
}

/// The counts for each rule of a segment, by target and segment.
pub(crate) type Tallies = Recent<(Arc<Target>, usize), Tally>;

/// The kind of occurrence that is counted.
#[derive(PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// Blocks of nodes.
    Nodes(Positions),
    /// Activations of this function.
    Calls(FuncId),
}

/// Positions of blocks in nodes, from 0, ascending. A position that counts several times is
/// repeated.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Positions {
    /// The range of each node's positions.
    of: HashMap<NodeId, (u32, u32), FxBuildHasher>,
    all: Vec<u64>,
}

/// All executions of a block or of some nodes, or all activations of a function, in order of time.
///
/// Nothing is stored in the file for these queries. The occurrences in each rule are counted
/// bottom-up, once for each segment queried. Nodes that occur in few rules are counted only in
/// those rules. Otherwise, the time is linear in the segment's grammar. After that, a query takes
/// O(log n) for each rule on the way down to the answer. Segments without occurrences are not
/// opened.
pub struct Occurrences<'a, S> {
    path: &'a WholePath<S>,
    target: Arc<Target>,
    /// The number of occurrences before each segment, and in total.
    before: Vec<u64>,
    /// The counts of recently queried segments.
    cache: Mutex<Recent<usize, Tally>>,
}

impl<S: Segments> WholePath<S> {
    /// Finds the executions of nodes. For each node, the caller gives the position of one of its
    /// blocks, from 0. The time of an execution is the time of that block. To find the executions
    /// of a block, pass all nodes that contain it, each with the block's position. Position 0 gives
    /// the executions of the nodes themselves.
    ///
    /// # Errors
    /// Returns an error if a node is unknown, is given twice, or does not have the block, or if
    /// there are 2^64 occurrences or more.
    pub fn executions(
        &self,
        nodes: impl IntoIterator<Item = (NodeId, u64)>,
    ) -> Result<Occurrences<'_, S>, TargetError> {
        let mut positions = Positions::default();
        for (node, position) in nodes {
            let known = self.nodes().get(node);
            if position >= known.ok_or(TargetError::Unknown(node))?.length() {
                return Err(TargetError::Position(node));
            }
            positions.add(node, &[position])?;
        }
        Occurrences::new(self, Target::Nodes(positions))
    }

    /// Works like [`executions`](Self::executions), for any number of positions per node. Positions
    /// must be in ascending order, and may be repeated. The position after the node's last block
    /// means the next block executed after the node, in any node.
    ///
    /// # Errors
    /// Returns an error if a node is unknown or given twice, if its positions do not ascend or do
    /// not exist, or if there are 2^64 occurrences or more.
    pub fn executions_of_each<P: AsRef<[u64]>>(
        &self,
        nodes: impl IntoIterator<Item = (NodeId, P)>,
    ) -> Result<Occurrences<'_, S>, TargetError> {
        let mut all = Positions::default();
        for (node, positions) in nodes {
            let positions = positions.as_ref();
            let known = self.nodes().get(node);
            let length = known.ok_or(TargetError::Unknown(node))?.length();
            if !positions.is_sorted() || positions.last().is_some_and(|last| *last > length) {
                return Err(TargetError::Position(node));
            }
            all.add(node, positions)?;
        }
        Occurrences::new(self, Target::Nodes(all))
    }

    /// Returns the activations of a function, each at the time of its first block.
    ///
    /// # Errors
    /// Returns an error if there are 2^64 activations or more.
    pub fn activations(&self, function: FuncId) -> Result<Occurrences<'_, S>, TargetError> {
        Occurrences::new(self, Target::Calls(function))
    }
}

impl<'a, S: Segments> Occurrences<'a, S> {
    fn new(path: &'a WholePath<S>, target: Target) -> Result<Self, TargetError> {
        let counts = target.counts(path).ok_or(TargetError::Uncountable)?;
        let mut sum: u64 = 0;
        let mut before = vec![0];
        for count in counts {
            sum = sum.checked_add(count).ok_or(TargetError::Uncountable)?;
            before.push(sum);
        }
        Ok(Self {
            path,
            target: Arc::new(target),
            before,
            cache: Mutex::new(Recent::new(path.room() / SHARE)),
        })
    }

    /// Returns the path.
    pub fn path(&self) -> &'a WholePath<S> {
        self.path
    }

    /// Returns the number of occurrences.
    pub fn count(&self) -> u64 {
        self.before[self.before.len() - 1]
    }

    /// Returns the number of occurrences at or before block `time`.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be read.
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

    /// Returns the k-th occurrence, counted from 1, if there is one.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be read.
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

    /// Returns the first occurrence after block `time`.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub fn next_after(&self, time: u64) -> Result<Option<Occurrence>, PathError<S::Error>> {
        let rank = self.rank(time)?;
        rank.checked_add(1)
            .map_or(Ok(None), |next| self.select(next))
    }

    /// Returns the last occurrence before block `time`.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub fn previous_before(&self, time: u64) -> Result<Option<Occurrence>, PathError<S::Error>> {
        self.select(self.rank(time.saturating_sub(1))?)
    }

    /// Returns the counts for each rule of a segment.
    fn tally(&self, segment: usize, measured: &Measured) -> Arc<Tally> {
        let cache = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = cache().get(&segment) {
            return tally;
        }
        let shared = || {
            let shared = self.path.tallies.lock();
            shared.unwrap_or_else(PoisonError::into_inner)
        };
        let key = (Arc::clone(&self.target), segment);
        let known = shared().get(&key);
        let tally = known.unwrap_or_else(|| {
            let count = self.before[segment + 1] - self.before[segment];
            let tally = Arc::new(Tally::new(measured, &self.target, count));
            shared().insert(key, &tally, tally.bytes() + self.target.bytes());
            tally
        });
        cache().insert(segment, &tally, tally.bytes());
        tally
    }
}

impl Target {
    /// Counts the occurrences in each segment. Returns `None` if a count exceeds 64 bits. Time:
    /// O(segments + occurrences of its nodes in summaries).
    fn counts<S: Segments>(&self, path: &WholePath<S>) -> Option<Vec<u64>> {
        let summaries = path.segments().summaries();
        match self {
            Self::Calls(function) => {
                let count = |summary: &Summary| {
                    let counts = &summary.call_counts;
                    let at = counts.binary_search_by_key(function, |&(function, _)| function);
                    at.map_or(0, |at| counts[at].1)
                };
                Some(summaries.iter().map(count).collect())
            }
            Self::Nodes(positions) => {
                let mut counts = vec![0u64; summaries.len()];
                for (&node, &(_, each)) in &positions.of {
                    for &(segment, count) in path.segments_with(node) {
                        let sum = &mut counts[segment as usize];
                        *sum = sum.checked_add(count.checked_mul(each.into())?)?;
                    }
                }
                Some(counts)
            }
        }
    }

    /// Returns the approximate memory use, in bytes.
    fn bytes(&self) -> usize {
        let positions = match self {
            Self::Nodes(positions) => {
                let of = positions.of.capacity() * size_of::<(NodeId, (u32, u32))>();
                of + positions.all.capacity() * size_of::<u64>()
            }
            Self::Calls(_) => 0,
        };
        size_of::<Self>() + positions
    }

    /// Returns the counted positions in a node.
    fn positions(&self, node: NodeId) -> &[u64] {
        match self {
            Self::Nodes(positions) => positions.get(node),
            Self::Calls(_) => &[],
        }
    }
}

impl Hash for Positions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The order of a hash map's nodes is arbitrary, so hash their sum.
        let nodes = self.of.keys().map(|node| node.index() as u64);
        nodes.fold(0, u64::wrapping_add).hash(state);
        self.all.hash(state);
    }
}

impl Positions {
    fn add(&mut self, node: NodeId, positions: &[u64]) -> Result<(), TargetError> {
        let number = |len: usize| u32::try_from(len).map_err(|_| TargetError::Uncountable);
        let own = (number(self.all.len())?, number(positions.len())?);
        if self.of.insert(node, own).is_some() {
            return Err(TargetError::Twice(node));
        }
        self.all.extend_from_slice(positions);
        Ok(())
    }

    fn get(&self, node: NodeId) -> &[u64] {
        let own = self.of.get(&node);
        own.map_or(&[], |&(start, len)| {
            &self.all[start as usize..][..len as usize]
        })
    }

    /// Returns the nodes, and the number of positions of each.
    fn weights(&self) -> impl Iterator<Item = (NodeId, u64)> {
        self.of
            .iter()
            .map(|(&node, &(_, each))| (node, each.into()))
    }
}

/// Returns the number of positions up to a block.
fn up_to(positions: &[u64], within: u64) -> u64 {
    positions.partition_point(|&position| position <= within) as u64
}
