//! Compares two runs of one program, or of two programs that are [`alike`], and finds where
//! they first differ.
//!
//! The machine follows both runs side by side, block by block. While both take the same path, the
//! k-th value, address or host call of one run corresponds to that of the other run. So the first
//! difference is exact. The comparison of values ends where the paths diverge. Output is compared
//! byte by byte.
//!
//! ```no_run
//! use afterimage_program::Program;
//! use afterimage_analyses::diff::{Side, first_difference};
//! use afterimage_replay::whole_path::recorded_path;
//! use afterimage_replay::steps::{Run, stopped_before};
//! use afterimage_trace::TraceFile;
//!
//! // Two recordings of the same module.
//! let files = [TraceFile::open("good.aft".as_ref())?, TraceFile::open("bad.aft".as_ref())?];
//! let module = files[0].module()?;
//! let program = Program::parse(&module)?;
//! let mut paths = Vec::new();
//! for file in &files {
//!     paths.push(recorded_path(file, &program)?.ok_or("the recording has no path yet")?);
//! }
//! let mut stopped = Vec::new();
//! for file in &files {
//!     stopped.push(file.end()?.and_then(|end| stopped_before(&program, &module, &end)));
//! }
//! let logs: [&dyn Fn() -> _; 2] = [&|| files[0].log(), &|| files[1].log()];
//! let side = |k: usize| Side {
//!     run: Run {
//!         program: &program,
//!         module: &module,
//!         path: &paths[k],
//!         continuations: &paths[k].segments().directory().continuations,
//!         stopped: stopped[k],
//!         checkpoints: None,
//!         snapshots: None,
//!         progress: &|_| {},
//!     },
//!     log: logs[k],
//! };
//! if let Some(found) = first_difference(side(0), side(1), &[])? {
//!     println!("one: {:?}, other: {:?}", found.a, found.b);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alike;
mod control;
mod error;
mod first;
mod fold;
mod output;
mod place;
mod predicates;
mod ranges;
mod rank;
mod replaced;

use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

pub use alike::{Alike, Module, OtherData, Replaced, alike};
pub use control::{Parting, parting};
pub use error::DiffError;
pub use first::{Difference, HostBytes, first_difference};
pub use output::{OutputDifference, Outputs, Written, output_differences};
pub use place::{CallPlace, calls_around, executed_by};
pub use predicates::{Predicate, RankedValue, rank_values};
pub use ranges::{Number, Range, ranges};
pub use rank::{RankedLine, rank_lines};
pub use replaced::{Effect, Otherwise, effects};

use afterimage_replay::steps::Run;

/// One of the two runs to compare.
pub struct Side<'a, S: Segments> {
    /// The run to follow.
    pub run: Run<'a, S>,
    /// Opens the run's log from the beginning.
    pub log: &'a dyn Fn() -> Result<LogReader, afterimage_trace::TraceError>,
}

impl<S: Segments> Clone for Side<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Segments> Copy for Side<'_, S> {}
