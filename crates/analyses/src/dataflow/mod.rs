//! Profile-limited data flow analysis of recorded runs (Zhang and Gupta 2001, section 4).
//!
//! ```no_run
//! use afterimage_ids::{FuncId, OpId};
//! use afterimage_program::Program;
//! use afterimage_analyses::dataflow::{Fact, Facts, LastStep, RunCalls};
//! use afterimage_replay::whole_path::recorded_path;
//! use afterimage_trace::TraceFile;
//!
//! let file = TraceFile::open("app.aft".as_ref())?;
//! let module = file.module()?;
//! let program = Program::parse(&module)?;
//! let path = recorded_path(&file, &program)?.ok_or("the recording has no path yet")?;
//! let end = file.end()?.ok_or("how the run ended is not known")?;
//! let calls = RunCalls::of(&path, LastStep::of(&program, &module, &end)?, &|_| {})?;
//!
//! // How often an operator's result is already available, why, and in which executions.
//! let facts = Facts::new(&calls, &program, &module);
//! let (function, op) = (FuncId::from_u32(7), OpId::from_u32(12));
//! let (answer, each) = facts.answer_each(function, op, &Fact::Available, 0)?;
//! println!("{} of {} times", answer.holds, answer.executions);
//! for &(decider, times) in &answer.decided {
//!     let (first, all) = each.decided_by(decider, 3);
//!     println!("{times} times by {decider:?}: {first:?}{}", if all { "" } else { ", …" });
//! }
//! // And what decided the third one.
//! println!("{:?}", each.get(3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accesses;
mod calls;
mod computations;
mod expressions;
mod facts;
mod instances;
mod listing;
mod loads;
mod memory;
mod question;
mod scan;

pub use calls::{LastStep, RunCalls};
pub use computations::path_expressions;
pub(crate) use expressions::expression_numbers;
pub use facts::{EventPlace, Fact, FactAnswer, FactError, Facts, PathAnswer};
pub use instances::{FactInstance, InstanceRun, Instances};
pub use loads::{PathRedundancy, path_redundancy};
pub use memory::Decider;
