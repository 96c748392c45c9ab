//! Finds which statements of two recorded versions of a program correspond.
//!
//! [`version`] follows a run once. For each executed statement, it collects the data that
//! [`afterimage_matching`] compares, namely sketches of its values and addresses, its times, and
//! the origins of its operands. It needs only the module, the path and the log, and keeps only
//! sketches.
//!
//! [`match_runs`] finds more counterparts, but follows both runs again. If the second version
//! inlined a function, it separates that function's statements by the calls through which they are
//! executed. Then it compares the statements executed in corresponding stretches of both runs.
//!
//! ```no_run
//! use afterimage_program::Program;
//! use afterimage_analyses::matching::{Sketched, match_versions, version};
//! use afterimage_replay::whole_path::recorded_path;
//! use afterimage_replay::steps::{Run, stopped_before};
//! use afterimage_trace::TraceFile;
//!
//! let sketched = |name: &str| -> Result<Sketched, Box<dyn std::error::Error>> {
//!     let file = TraceFile::open(name.as_ref())?;
//!     let module = file.module()?;
//!     let program = Program::parse(&module)?;
//!     let path = recorded_path(&file, &program)?.ok_or("the recording has no path yet")?;
//!     let run = Run {
//!         program: &program,
//!         module: &module,
//!         path: &path,
//!         continuations: &path.segments().directory().continuations,
//!         stopped: file.end()?.and_then(|end| stopped_before(&program, &module, &end)),
//!         checkpoints: None,
//!         snapshots: None,
//!         progress: &|_| {},
//!     };
//!     Ok(version(run, file.log()?)?)
//! };
//! // For each statement of the optimised version, its counterpart in the other.
//! let (a, b) = (sketched("unoptimised.aft")?, sketched("optimised.aft")?);
//! let matching = match_versions(&a.version, &b.version, None);
//! for (place, found) in b.places.iter().zip(&matching.of_b) {
//!     match found {
//!         Some(found) => println!("{place:?} is {:?}", a.places[found.a as usize]),
//!         None => println!("{place:?} has no counterpart"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batches;
mod code;
mod collect;
mod contexts;
mod diverge;
mod keeper;
mod names;
mod producers;
mod regions;
mod runs;
mod suspects;
mod take;
mod template;
mod truth;
mod walk;
mod written;

pub use afterimage_matching::{
    Candidate, Class, Evidence, Feature, KINDS, Match, Matching, Names, Sketch, StageRecord,
    Statement, Values, Version, Weights, match_versions,
};
pub use collect::{Sketched, version};
pub use diverge::{Divergence, OpenLog, Origin, divergences};
pub use names::same_names;
pub use runs::{Matched, Trial, match_runs, match_runs_by};
pub use suspects::{Suspect, suspects};
pub use take::StatementSite;
pub(crate) use take::{Collected, ComparedValue, Take, Taking};
pub use truth::{
    Accuracy, Frame, Judged, LIKELY, Position, Side as TruthSide, accuracy, copies, judge,
    recompiled,
};
pub(crate) use walk::Walk;
