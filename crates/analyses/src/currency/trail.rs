//! Records the events at a line in a run.

use afterimage_ids::{FuncId, OpId};

/// An arrival at the line, where a debugger would stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The time of the block with the line's first operator.
    pub time: u64,
    /// The line's first operator.
    pub op: OpId,
    /// The function that contains the operator.
    pub function: FuncId,
    /// The time at which the function's activation began.
    pub entered: u64,
}

/// A unit in which the code of a line is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// All code that a block has for a column.
    Column(u32),
    /// A single operator of a column, identified by a number for its name. A block of an unrolled
    /// loop may contain the operator several times.
    Operator(u32, u32),
    /// A matched statement, by the number of its counterpart in the unoptimised version.
    Matched(u32),
    /// An arrival at the line.
    Arrival,
}

impl Unit {
    /// Returns the column, if the unit has one.
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
    /// The unit that was executed.
    pub unit: Unit,
    /// The number of preceding calls that both runs make.
    pub segment: u64,
    /// The innermost activation that exists in both runs, identified by the segment that began with
    /// its call.
    pub activation: u64,
    /// The stop to which the first operator belongs.
    pub stop: u32,
    /// The time of the block with the first operator.
    pub time: u64,
    /// The first operator of the part in this execution.
    pub op: OpId,
    /// Whether the first operator is a test. The value of a test carries little information and may
    /// be inverted.
    pub is_test: bool,
}

/// The events at a line in a run, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    /// The arrivals. The k-th arrival of the run is at index k - 1.
    pub stops: Vec<Stop>,
    /// The parts that were executed.
    pub parts: Vec<Part>,
    /// Pairs of a stop and a part that was executed after the stop. A part may belong to several
    /// stops if the compiler mixed its code with the code of other lines.
    pub of_stops: Vec<(u32, u32)>,
    /// The activations that were open when the walk ended, if it ended before the run did.
    pub open: Vec<u64>,
    /// Whether the walk ended before the run did.
    pub is_cut: bool,
}

impl Trail {
    /// Returns the number of stops, or of pairs of a stop and a part, whichever is larger.
    pub(super) fn size(&self) -> usize {
        self.stops.len().max(self.of_stops.len())
    }
}
