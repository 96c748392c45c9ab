//! Finds the k-th mark of a run. The marks of an execution depend on its node and on the previous
//! node in the same activation.

mod tally;

use std::sync::{Arc, Mutex, PoisonError};

use afterimage_ids::NodeId;
use thiserror::Error;

use self::tally::Tally;
use crate::measures::Measured;
use crate::rank::SHARE;
use crate::whole_path::Recent;
use crate::{PathError, Segments, WholePath};

/// Defines the number of marks that each executed block has.
pub trait Marking {
    /// Returns the positions of the node's blocks that have marks regardless of what was executed
    /// before, ascending. The position of a block with several marks is repeated.
    fn inside(&self, node: NodeId) -> &[u64];

    /// Returns the number of additional marks on the node's first block if the same activation
    /// executed `before` just before it. `None` means that the activation begins with the block.
    fn joining(&self, before: Option<NodeId>, node: NodeId) -> u64;
}

/// All marks of a run, in order of time.
///
/// Marks are like [`Occurrences`](crate::Occurrences), but may depend on the activation's previous
/// execution. Construction counts the marks of all segments.
pub struct Marks<'a, S, M> {
    path: &'a WholePath<S>,
    marking: M,
    /// The number of marks before each segment, and in total.
    before: Vec<u64>,
    /// For each segment and each activation that is open at its beginning, the node that the
    /// activation executed last.
    open: Vec<Vec<Option<NodeId>>>,
    /// The counts of recently queried segments.
    cache: Mutex<Recent<usize, Tally>>,
}

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
    /// Counts marks. Time: linear in the size of all grammars.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read, or there are 2^64 - 1 marks or more.
    pub fn marks<M: Marking>(&self, marking: M) -> Result<Marks<'_, S, M>, MarksError<S::Error>> {
        let mut marks = Marks {
            path: self,
            marking,
            before: vec![0],
            open: Vec::new(),
            cache: Mutex::new(Recent::new(self.room() / SHARE)),
        };
        let mut sum: u64 = 0;
        let mut open = Vec::new();
        for segment in 0..self.segments().summaries().len() {
            let measured = self.open(segment)?;
            marks.open.push(open.clone());
            let tally = Tally::new(&measured, &marks.marking, &mut open);
            sum = sum.saturating_add(tally.count());
            if sum == u64::MAX {
                return Err(MarksError::Uncountable);
            }
            marks.before.push(sum);
        }
        Ok(marks)
    }
}

impl<S: Segments, M: Marking> Marks<'_, S, M> {
    /// Returns the number of marks.
    pub fn count(&self) -> u64 {
        self.before[self.before.len() - 1]
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
        let segment = self.before.partition_point(|&before| before < number) - 1;
        let measured = self.path.open(segment)?;
        let tally = self.tally(segment, &measured);
        let others = number - self.before[segment] - 1;
        let offset = tally.select(&measured, &self.marking, others);
        Ok(Some(measured.segment.before + offset + 1))
    }

    /// Returns the counts for each rule of a segment.
    fn tally(&self, segment: usize, measured: &Measured) -> Arc<Tally> {
        let cache = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = cache().get(&segment) {
            return tally;
        }
        let open = &mut self.open[segment].clone();
        let tally = Arc::new(Tally::new(measured, &self.marking, open));
        cache().insert(segment, &tally, tally.bytes());
        tally
    }
}
