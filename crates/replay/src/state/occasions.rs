//! Lists all times at which the run was at a place.

use afterimage_ids::OpId;
use afterimage_wpp::Occurrences;

use super::StateError;
use crate::values::{Executions, RecordedValues};
use crate::whole_path::{ArrivalTimes, At, FileSegments, Prologue};

/// All times at which the run was at a place, in order.
pub enum Occasions<'a> {
    /// Arrivals at a line.
    Line(ArrivalTimes<'a, FileSegments>),
    /// Executions of an operator's block, the operator, and the number of executions that reached
    /// the operator.
    Operator(Executions<'a>, OpId, u64),
    /// Calls to a function, after its prologue.
    Calls(Occurrences<'a, FileSegments>, Prologue),
}

/// A single time at which the run was at the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occasion {
    /// The number of the occasion, from 1.
    pub number: u64,
    /// The time of the block.
    pub time: u64,
    /// The operator that is executed next, or `None` for the start of the block.
    pub op: Option<OpId>,
}

impl<'a> Occasions<'a> {
    /// Returns the number of occasions.
    pub fn count(&self) -> u64 {
        match self {
            Self::Line(all) => all.count(),
            Self::Operator(_, _, count) => *count,
            Self::Calls(all, _) => all.count(),
        }
    }

    /// Returns the number of occasions up to and including the block at `time`.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn by(&self, time: u64) -> Result<u64, StateError> {
        Ok(match self {
            Self::Line(all) => all.by(time)?,
            Self::Operator(all, _, count) => all.by(time)?.min(*count),
            Self::Calls(all, _) => all.rank(time)?,
        })
    }

    /// Returns an occasion by its number, from 1, or `None` if there are fewer occasions.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn get(
        &self,
        values: &RecordedValues<'a>,
        number: u64,
    ) -> Result<Option<Occasion>, StateError> {
        if number == 0 || number > self.count() {
            return Ok(None);
        }
        let found = match self {
            Self::Line(all) => all.get(number)?.map(|found| (found.time, found.op)),
            Self::Operator(all, op, _) => {
                let found = all.get(values, number)?;
                found.map(|found| (found.time, Some(*op)))
            }
            Self::Calls(all, prologue) => all.select(number)?.map(|found| {
                let At { time, op } = prologue.behind(found.time);
                (time, op)
            }),
        };
        Ok(found.map(|(time, op)| Occasion { number, time, op }))
    }
}
