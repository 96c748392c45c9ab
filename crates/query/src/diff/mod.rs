//! Two executions of one program compared: where they first differ.
//!
//! Both are followed side by side by the machine, block by block. As long as control goes the same way in both, the k-th value, address or host call of
//! one has a counterpart in the other, so the first difference is exact; where control parts, the comparison of values ends, and what the two
//! put out is compared byte by byte.

mod control;
mod error;
mod first;
mod fold;
mod output;
mod place;
mod predicates;
mod ranges;
mod rank;

use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

pub use control::{Parting, parting};
pub use error::DiffError;
pub use first::{Difference, HostBytes, first_difference};
pub use output::{OutputDifference, Written, output_differences};
pub use place::{CallPlace, calls_around, executed_by};
pub use predicates::{Predicate, RankedValue, rank_values};
pub use ranges::{Number, Range, ranges};
pub use rank::{RankedLine, rank_lines};

use crate::steps::Run;

/// One of the two executions.
pub struct Side<'a, S: Segments> {
    /// Its run.
    pub run: Run<'a, S>,
    /// Opens its log from the beginning.
    pub log: &'a dyn Fn() -> Result<LogReader, afterimage_trace::TraceError>,
}

impl<S: Segments> Clone for Side<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Segments> Copy for Side<'_, S> {}
