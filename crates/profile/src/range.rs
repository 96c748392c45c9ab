//! Derives the profile of a range of a run from the counts of its blocks.
//!
//! A range begins and ends inside of activations, so its edge counts do not add up to its block
//! counts. For this reason, the profile of a range has no edges, and its lines need the arrivals in
//! the range, which only the path shows.

use std::collections::HashMap;

use afterimage_ids::{BlockId, OpId, SecondaryMap};

use crate::body::decode;
use crate::frequency::executed_blocks;
use crate::{FunctionProfile, Line, Profile, ProfileError, Totals, walk};

/// The counts of a range of a run.
#[derive(Clone, Debug, Default)]
pub struct RangeCounts {
    /// The times of the range's first and last block.
    pub times: (u64, u64),
    /// Whether the run ended in the range.
    pub is_end: bool,
    /// The counts of each function that the module defines, in order.
    pub functions: Vec<FunctionRange>,
    /// The number of arrivals at each line that has any, in the functions whose lines will be
    /// asked for. `None` if lines are not counted.
    pub arrivals: Option<HashMap<Line, u64>>,
}

/// The counts of a function in a range of a run.
#[derive(Clone, Debug, Default)]
pub struct FunctionRange {
    /// The number of activations that begin in the range.
    pub entries: u64,
    /// The number of executions of each vertex of the function's graph.
    pub blocks: SecondaryMap<BlockId, u64>,
    /// The block in which the run stopped and its first operator that was not executed, if the run
    /// ended in the range.
    pub stop: Option<(BlockId, OpId)>,
}

impl<'a> Profile<'a> {
    /// Returns the profile of a range of the same run. O(size of the bodies that the range
    /// executes).
    ///
    /// # Errors
    /// Returns an error if a sum does not fit into 64 bits, or the counts do not cover the same
    /// functions.
    pub fn in_range(&self, range: RangeCounts) -> Result<Self, ProfileError> {
        let program = self.program;
        if range.functions.len() != program.functions.len() {
            return Err(ProfileError::Functions {
                expected: program.functions.len(),
                got: range.functions.len(),
            });
        }
        let mut totals = Totals {
            range: Some(range.times),
            runs: 1,
            functions: program.functions.len() as u64,
            open: if range.is_end { self.totals.open } else { 0 },
            ..Totals::default()
        };
        let mut functions = Vec::with_capacity(program.functions.len());
        let mut body = Vec::new();
        for (function, own) in program.functions.iter().zip(range.functions) {
            let overflow = || ProfileError::Overflow {
                function: function.id,
            };
            let stops = Vec::from_iter(own.stop);
            let executed = executed_blocks(function, &own.blocks).ok_or_else(overflow)?;
            let mut instructions = 0;
            if executed > 0 {
                decode(program, self.module, function, &mut body)?;
                instructions = walk::instructions(function, &body, &own.blocks, &stops)?;
            }
            let of = FunctionProfile {
                entries: own.entries,
                blocks: own.blocks,
                stops,
                executed_blocks: executed,
                instructions,
            };
            totals.add(&of).ok_or_else(overflow)?;
            functions.push(of);
        }
        Ok(Self {
            functions,
            totals,
            arrivals: range.arrivals,
            ..*self
        })
    }

    /// Refuses counts that the profile of a range does not have.
    pub(crate) fn refuse_range(&self, what: &'static str) -> Result<(), ProfileError> {
        match self.totals.range {
            Some(_) => Err(ProfileError::NotInRange { what }),
            None => Ok(()),
        }
    }
}
