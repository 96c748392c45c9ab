//! Finds the k-th mark of a run. The marks of an execution depend on its node and on the previous
//! node in the same activation.

mod tally;

use std::sync::{Arc, PoisonError};

use afterimage_ids::NodeId;
use thiserror::Error;

pub(crate) use self::tally::Tally;
use crate::measures::Measured;
use crate::whole_path::Recent;
use crate::{PathError, Segments, WholePath};

/// Defines the number of marks that each executed block has.
pub trait Marking {
    /// Returns the positions of the node's blocks that have marks regardless of what was executed
    /// before, ascending. The position of a block with several marks is repeated.
    fn inside(&self, node: NodeId) -> &[u64];

    /// Returns a key, so that later queries for the same marks need not count again. Markings of a
    /// path that have the same key must define the same marks.
    fn key(&self) -> Box<[u32]>;

    /// Whether the node may have marks, whatever was executed before.
    fn may_mark(&self, node: NodeId) -> bool;

    /// Returns the number of additional marks on the node's first block if the same activation
    /// executed `before` just before it. `None` means that the activation begins with the block.
    fn joining(&self, before: Option<NodeId>, node: NodeId) -> u64;
}

/// All marks of a run, in order of time.
///
/// Marks are like [`Occurrences`](crate::Occurrences), but may depend on the activation's previous
/// execution. Construction counts the marks of all segments with nodes that may have marks.
pub struct Marks<'a, S, M> {
    path: &'a WholePath<S>,
    marking: M,
    key: Arc<[u32]>,
    counted: Arc<Counted>,
}

/// The numbers of marks in segments.
pub(crate) struct Counted {
    /// The number of marks before each segment, and in total.
    before: Vec<u64>,
    /// For each segment with nodes that may have marks, and each activation that is open at its
    /// beginning, the node that the activation executed last. An entry is arbitrary if the
    /// activation's nodes cannot have marks.
    open: Vec<Vec<Option<NodeId>>>,
}

/// The counts of recently requested marks, by key.
pub(crate) type Known = Recent<Arc<[u32]>, Counted>;

/// The counts in recently queried segments, by the key of the marks and the segment.
pub(crate) type MarkTallies = Recent<(Arc<[u32]>, usize), Tally>;

/// The reason why marks cannot be counted. `E` is the error of loading a segment.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MarksError<E> {
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
    /// There are 2^64 - 1 marks or more.
    #[error("there are more marks than can be counted")]
    Uncountable,
}

impl<S: Segments> WholePath<S> {
    /// Counts marks. Time: linear in the grammars of the segments with nodes that may have marks.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read, or there are 2^64 - 1 marks or more.
    pub fn marks<M: Marking>(&self, marking: M) -> Result<Marks<'_, S, M>, MarksError<S::Error>> {
        let known = || self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let key = Arc::from(marking.key());
        let kept = known().get(&key);
        let counted = match kept {
            Some(counted) => counted,
            None => {
                let counted = Arc::new(self.count_marks(&marking, &key)?);
                known().insert(Arc::clone(&key), &counted, counted.bytes());
                counted
            }
        };
        Ok(Marks {
            path: self,
            marking,
            key,
            counted,
        })
    }

    fn count_marks(
        &self,
        marking: &impl Marking,
        key: &Arc<[u32]>,
    ) -> Result<Counted, MarksError<S::Error>> {
        let mut counted = Counted {
            before: vec![0],
            open: Vec::new(),
        };
        let mut sum: u64 = 0;
        let mut open = Vec::new();
        for (segment, summary) in self.segments().summaries().iter().enumerate() {
            let mut executed = summary.node_counts.iter();
            if !executed.any(|&(node, _)| marking.may_mark(node)) {
                open.truncate(summary.kept as usize);
                open.resize((summary.kept + summary.begun) as usize, None);
                counted.open.push(Vec::new());
                counted.before.push(sum);
                continue;
            }
            let measured = self.open(segment)?;
            counted.open.push(open.clone());
            let tally = Arc::new(Tally::new(&measured, marking, &mut open));
            self.keep_marks(key, segment, &tally);
            sum = sum.saturating_add(tally.count());
            if sum == u64::MAX {
                return Err(MarksError::Uncountable);
            }
            counted.before.push(sum);
        }
        Ok(counted)
    }

    fn keep_marks(&self, key: &Arc<[u32]>, segment: usize, tally: &Arc<Tally>) {
        let kept = self.mark_tallies.lock();
        let mut kept = kept.unwrap_or_else(PoisonError::into_inner);
        kept.insert((Arc::clone(key), segment), tally, tally.bytes());
    }
}

impl Counted {
    /// Returns the approximate memory use, in bytes.
    fn bytes(&self) -> usize {
        let open: usize = self.open.iter().map(|open| size_of_val(&open[..])).sum();
        size_of_val(&self.before[..]) + size_of_val(&self.open[..]) + open
    }
}

impl<S: Segments, M: Marking> Marks<'_, S, M> {
    /// Returns the number of marks.
    pub fn count(&self) -> u64 {
        self.counted.before[self.counted.before.len() - 1]
    }

    /// Returns the time of the k-th mark, counted from 1, if there is one. Time: linear in the
    /// grammar of the mark's segment the first time, and then O(log n) for each rule on the way
    /// down to the mark.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be read.
    pub fn select(&self, number: u64) -> Result<Option<u64>, PathError<S::Error>> {
        if number == 0 || number > self.count() {
            return Ok(None);
        }
        let segment = self
            .counted
            .before
            .partition_point(|&before| before < number)
            - 1;
        let measured = self.path.open(segment)?;
        let tally = self.tally(segment, &measured);
        let others = number - self.counted.before[segment] - 1;
        let offset = tally.select(&measured, &self.marking, others);
        Ok(Some(measured.segment.before + offset + 1))
    }

    /// Returns the counts for each rule of a segment.
    fn tally(&self, segment: usize, measured: &Measured) -> Arc<Tally> {
        let kept = &self.path.mark_tallies;
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = kept.get(&(Arc::clone(&self.key), segment)) {
            return tally;
        }
        drop(kept);
        let open = &mut self.counted.open[segment].clone();
        let tally = Arc::new(Tally::new(measured, &self.marking, open));
        self.path.keep_marks(&self.key, segment, &tally);
        tally
    }
}
