//! The path trace of a call, which is the sequence of blocks that the call itself executed.

use afterimage_ids::BlockId;

use super::path_builder::PathBuilder;
use super::steps::Steps;
use super::timestamped::TimestampedTrace;

/// Traces with more blocks than this are stored as series, in which a loop of a billion iterations
/// takes a few bytes.
pub(super) const FLAT: usize = 1 << 14;

/// The blocks that one call executed, without the blocks of its callees (Zhang and Gupta 2001,
/// section 2).
///
/// Short traces are sequences of blocks. Long traces are stored in timestamped form, which is small
/// for regular loops.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathTrace(pub(super) Form);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// At most [`FLAT`] blocks.
    Flat(Box<[BlockId]>),
    /// More than [`FLAT`] blocks.
    Series(TimestampedTrace),
}

impl PathTrace {
    /// Returns the number of blocks.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Form::Flat(blocks) => blocks.len() as u64,
            Form::Series(trace) => trace.len(),
        }
    }

    /// Whether no block was executed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the blocks, in the order of execution.
    pub fn blocks(&self) -> Blocks<'_> {
        Blocks(match &self.0 {
            Form::Flat(blocks) => Inner::Flat(blocks.iter()),
            Form::Series(trace) => Inner::Series(trace.steps()),
        })
    }

    /// Returns the blocks, if they are stored as a sequence and not as series.
    pub fn as_slice(&self) -> Option<&[BlockId]> {
        match &self.0 {
            Form::Flat(blocks) => Some(blocks),
            Form::Series(_) => None,
        }
    }

    /// Returns the memory use of the blocks in bytes.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Form::Flat(blocks) => size_of_val(&blocks[..]),
            Form::Series(trace) => trace.as_bytes().len(),
        }
    }
}

impl FromIterator<BlockId> for PathTrace {
    fn from_iter<I: IntoIterator<Item = BlockId>>(blocks: I) -> Self {
        let mut builder = PathBuilder::default();
        blocks.into_iter().for_each(|block| builder.push(block));
        builder.complete().into_trace()
    }
}

/// The blocks of a [`PathTrace`] in the order of execution.
#[derive(Clone, Debug)]
pub struct Blocks<'a>(Inner<'a>);

#[derive(Clone, Debug)]
enum Inner<'a> {
    Flat(std::slice::Iter<'a, BlockId>),
    Series(Steps<'a>),
}

impl Iterator for Blocks<'_> {
    type Item = BlockId;

    fn next(&mut self) -> Option<BlockId> {
        match &mut self.0 {
            Inner::Flat(blocks) => blocks.next().copied(),
            Inner::Series(steps) => steps.next(),
        }
    }
}
