//! Computes slices, that is, the dependences or the dependents of an execution.
//!
//! A slice consists of executions, not of statements, and depends on this run alone (Agrawal and
//! Horgan 1990, the third approach; Zhang and Gupta 2005, section 6.1). To compute a slice, the
//! analysis follows the run from checkpoint to checkpoint, which needs the path and the log. Values
//! are needed only to find executions by number.
//!
//! ```no_run
//! use afterimage_ids::{FuncId, OpId};
//! use afterimage_program::Program;
//! use afterimage_replay::whole_path::recorded_path;
//! use afterimage_analyses::slices::{Follows, backward, criteria};
//! use afterimage_replay::steps::{Run, recorded_checkpoints, stopped_before};
//! use afterimage_replay::values::{Executions, recorded_epochs, recorded_values};
//! use afterimage_trace::TraceFile;
//!
//! let file = TraceFile::open("app.aft".as_ref())?;
//! let module = file.module()?;
//! let program = Program::parse(&module)?;
//! let path = recorded_path(&file, &program)?.ok_or("the recording has no path yet")?;
//! let epochs = recorded_epochs(&file, &path)?.ok_or("the recording has no values yet")?;
//! let values = recorded_values(&program, &module, &path, &epochs)?;
//!
//! // What the third execution of an operator depends on.
//! let all = Executions::of(&values, &program, FuncId::from_u32(7), OpId::from_u32(12))?;
//! let third = all.get(&values, 3)?.ok_or("it was executed fewer than 3 times")?;
//! let criterion = criteria::of_execution(&third).ok_or("it only moves a value")?;
//! let checkpoints = recorded_checkpoints(&file, &path)?;
//! let run = Run {
//!     program: &program,
//!     module: &module,
//!     path: &path,
//!     continuations: &path.segments().directory().continuations,
//!     stopped: file.end()?.and_then(|end| stopped_before(&program, &module, &end)),
//!     checkpoints: checkpoints.as_ref(),
//!     snapshots: None,
//!     progress: &|_| {},
//! };
//! let slice = backward(run, file.log()?, Follows::ALL, vec![criterion])?;
//! for ((function, op), executions) in &slice.operators {
//!     println!("{function} {op}: {executions} executions");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
mod backward;
mod chop;
pub mod criteria;
mod exercised;
mod forward;
mod near;
mod nearest;
mod query;
mod question;
mod report;
mod saved;
mod verify;

pub use afterimage_slice::{Criterion, Edge, Follows, HostTook, Operator, Reach, Slice, Want, Why};
pub use backward::backward;
pub use chop::chop;
pub use exercised::{Direction, exercised, grouped, is_followed, reachable};
pub use forward::{forward, influence};
pub use near::near;
pub use nearest::{Nearby, Nearest, Through, Visibility, nearest};
pub use query::{SliceAbout, SliceAlong, SliceQuery};
pub use question::{Algorithm, Origin, Question, answer, by_statements, exercised_of};
pub use report::{SliceCounts, SlicedLine, SlicedOperator};
pub use saved::{SavedError, SavedSlice, in_words, save, saved_slices};
pub use verify::{SlicesReport, verify_slices};
