//! Builds the path trace of a call while the call executes.

use std::hash::{Hash, Hasher};

use afterimage_ids::BlockId;
use rustc_hash::FxHasher;

use super::path_trace::{FLAT, Form, PathTrace};
use super::timestamped::TimestampedTrace;
use super::timestamped_builder::TimestampedBuilder;

/// The capacity in blocks that a builder keeps between calls. The number of builders is the
/// greatest depth of nested calls so far.
const KEPT: usize = 1 << 8;

/// The trace of a call in progress. It keeps some memory for the next call.
#[derive(Clone, Debug, Default)]
pub(super) struct PathBuilder {
    /// The latest blocks, at most [`FLAT`].
    latest: Vec<BlockId>,
    /// The blocks before the latest blocks, if there are any.
    earlier: Option<Box<TimestampedBuilder>>,
}

impl PathBuilder {
    pub(super) fn push(&mut self, block: BlockId) {
        if self.latest.len() == FLAT {
            self.put_aside();
        }
        self.latest.push(block);
    }

    pub(super) fn extend(&mut self, mut blocks: &[BlockId]) {
        while blocks.len() > FLAT - self.latest.len() {
            let (now, later) = blocks.split_at(FLAT - self.latest.len());
            self.latest.extend_from_slice(now);
            self.put_aside();
            blocks = later;
        }
        self.latest.extend_from_slice(blocks);
    }

    /// Returns the number of blocks executed.
    pub(super) fn len(&self) -> u64 {
        self.latest.len() as u64 + self.earlier.as_ref().map_or(0, |e| e.steps())
    }

    /// Returns the trace. The caller must clear the builder afterwards.
    pub(super) fn complete(&mut self) -> Completed<'_> {
        if self.earlier.is_some() {
            self.put_aside();
        }
        match &mut self.earlier {
            Some(earlier) => Completed::Series(earlier.finish()),
            None => Completed::Flat(&self.latest),
        }
    }

    pub(super) fn clear(&mut self) {
        self.latest.clear();
        self.latest.shrink_to(KEPT);
        self.earlier = None;
    }

    fn put_aside(&mut self) {
        let earlier = self.earlier.get_or_insert_default();
        self.latest.drain(..).for_each(|block| earlier.push(block));
    }
}

/// A complete trace, which may equal a trace that is already known.
#[derive(Debug)]
pub(super) enum Completed<'a> {
    Flat(&'a [BlockId]),
    Series(TimestampedTrace),
}

impl Completed<'_> {
    /// Returns the hash of the trace. It equals the hash of the corresponding [`PathTrace`].
    pub(super) fn hash(&self) -> u64 {
        match self {
            Self::Flat(blocks) => hash(blocks),
            Self::Series(trace) => hash(trace),
        }
    }

    pub(super) fn is(&self, trace: &PathTrace) -> bool {
        match (self, &trace.0) {
            (Self::Flat(a), Form::Flat(b)) => *a == &b[..],
            (Self::Series(a), Form::Series(b)) => a == b,
            _ => false,
        }
    }

    pub(super) fn into_trace(self) -> PathTrace {
        PathTrace(match self {
            Self::Flat(blocks) => Form::Flat(blocks.into()),
            Self::Series(trace) => Form::Series(trace),
        })
    }
}

impl PathTrace {
    pub(super) fn hash(&self) -> u64 {
        match &self.0 {
            Form::Flat(blocks) => hash(&blocks[..]),
            Form::Series(trace) => hash(trace),
        }
    }
}

fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}
