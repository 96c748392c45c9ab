//! What a run did at a line.

use afterimage_ids::{FuncId, OpId};

/// An arrival at the line, where a debugger would stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The time of the block with the line's first operator.
    pub time: u64,
    /// That operator.
    pub op: OpId,
    /// In which function's code.
    pub function: FuncId,
    /// When its activation began.
    pub entered: u64,
}

/// What is counted of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// The code of a column in a block, however much that is.
    Column(u32),
    /// A single operator of a column, by a number for what it is called: of a loop that was unrolled a block has several.
    Operator(u32, u32),
    /// A statement that was matched with others, by the number of the unoptimised version's one.
    Matched(u32),
    /// An arrival at the line.
    Arrival,
}

impl Unit {
    /// The column, if it is of one.
    pub fn column(self) -> Option<u32> {
        match self {
            Self::Column(column) | Self::Operator(column, _) => Some(column),
            Self::Matched(_) | Self::Arrival => None,
        }
    }
}

/// An execution of a part of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub unit: Unit,
    /// How many calls that both runs make were made before.
    pub segment: u64,
    /// The innermost activation that both runs have: the segment that began with its call.
    pub activation: u64,
    /// The stop with its first operator.
    pub stop: u32,
    /// The time of its block.
    pub time: u64,
    /// Its first operator.
    pub op: OpId,
    /// That is a test: what it gives says little, and its opposite may be computed instead.
    pub is_test: bool,
}

/// What a run did at a line, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    /// The arrivals: the k-th of the run is the one at k - 1.
    pub stops: Vec<Stop>,
    /// The parts.
    pub parts: Vec<Part>,
    /// Which parts are executed from which stop on: pairs of a stop and a part. A part whose code the compiler mixed with that of other lines may belong to several stops.
    pub of_stops: Vec<(u32, u32)>,
    /// The activations that had not ended when the walk did, if it did not come to the run's end.
    pub open: Vec<u64>,
    /// The walk did not come to the run's end.
    pub is_cut: bool,
}

impl Trail {
    /// How much there is.
    pub(super) fn size(&self) -> usize {
        self.stops.len().max(self.of_stops.len())
    }
}
