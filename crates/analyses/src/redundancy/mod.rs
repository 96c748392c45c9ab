//! Finds loads and expressions that are redundant because their results are already available
//! (Zhang and Gupta 2001, section 4.3.1, "degree of redundancy").
//!
//! ```no_run
//! use afterimage_program::Program;
//! use afterimage_replay::whole_path::recorded_path;
//! use afterimage_analyses::redundancy::load_redundancy;
//! use afterimage_replay::steps::{Run, stopped_before};
//! use afterimage_trace::TraceFile;
//!
//! let file = TraceFile::open("app.aft".as_ref())?;
//! let module = file.module()?;
//! let program = Program::parse(&module)?;
//! let path = recorded_path(&file, &program)?.ok_or("the recording has no path yet")?;
//! let run = Run {
//!     program: &program,
//!     module: &module,
//!     path: &path,
//!     continuations: &path.segments().directory().continuations,
//!     stopped: file.end()?.and_then(|end| stopped_before(&program, &module, &end)),
//!     checkpoints: None,
//!     snapshots: None,
//!     progress: &|_| {},
//! };
//! // The most redundant loads. `expression_redundancy` does the same for pure operators.
//! let mut loads = load_redundancy(run, file.log()?)?.operators;
//! loads.sort_by_key(|load| std::cmp::Reverse(load.redundant));
//! for load in loads.iter().take(10) {
//!     println!("{:?}: {} of {}", load.site, load.redundant, load.executions);
//!     if let Some(way) = load.ways.first() {
//!         // The most frequent source, with the Ball–Larus paths of source and load.
//!         println!("  from {:?} in {:?}, in {:?}", way.source, way.from, way.path);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod expressions;
mod latest;
mod loads;
mod places;
mod shadow;
mod tracker;
mod ways;

pub use answer::{InPath, OperatorRedundancy, OperatorSource, Redundancy, Way};
pub use expressions::expression_redundancy;
pub use loads::load_redundancy;
