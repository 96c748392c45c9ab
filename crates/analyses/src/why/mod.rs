//! Explains why a value is what it is, by following the run back to the value's origin, one
//! execution at a time.
//!
//! [`Walk`] goes back one link at a time. At each link, a value was moved, was computed, or has no
//! earlier origin. [`Chain`] groups links into steps and follows one operand of each computation,
//! so it is a chain and not a slice. A chain follows values, not the addresses from which they were
//! read (Sridharan, Fink and Bodík 2007, "Thin slicing"). Reads from constant tables are an
//! exception. [`Folder`] folds repetitions.
//!
//! [`Walk`] and [`Chain`] answer from the stored trace, in a fraction of a millisecond per link,
//! without following the run. They may follow the run from a checkpoint only to find the bytes that
//! the host read, such as output and paths.
//!
//! ```no_run
//! use afterimage_ids::{FuncId, OpId};
//! use afterimage_program::Program;
//! use afterimage_replay::whole_path::recorded_path;
//! use afterimage_replay::values::{Controllers, Executions, recorded_epochs, recorded_values};
//! use afterimage_analyses::why::{Chain, Walk};
//! use afterimage_trace::TraceFile;
//!
//! let file = TraceFile::open("app.aft".as_ref())?;
//! let module = file.module()?;
//! let program = Program::parse(&module)?;
//! let path = recorded_path(&file, &program)?.ok_or("the recording has no path yet")?;
//! let epochs = recorded_epochs(&file, &path)?.ok_or("the recording has no values yet")?;
//! let values = recorded_values(&program, &module, &path, &epochs)?;
//!
//! // Where the value of the third execution of an operator came from.
//! let all = Executions::of(&values, &program, FuncId::from_u32(7), OpId::from_u32(12))?;
//! let third = all.get(&values, 3)?.ok_or("it was executed fewer than 3 times")?;
//! let statement = third.statement.ok_or("it only moves a value")?;
//! let walk = Walk { values: &values, program: &program };
//! let start = walk.start(third.instance, statement)?.ok_or("it has no value")?;
//! let controllers = Controllers::new(&program);
//! let mut chain = Chain::new(walk, &controllers, start);
//! while let Some(step) = chain.next()? {
//!     println!("{:?}", step.link);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod absent;
mod bits;
mod chain;
mod data;
mod digits;
mod error;
mod files;
mod fold;
mod got;
mod input;
mod lanes;
mod link;
mod nearest;
mod number;
mod operands;
mod printed;
mod start;
mod traffic;
mod walk;

pub use absent::{Absence, Absent, BranchOutcome, Cause, CodeBlock, Hop};
pub use afterimage_machine::{Code, Register, State};
pub use chain::{Chain, Link, Made, Moved, Operand, Room, Spot, Step};
pub use data::{DataPart, data_in, data_of};
pub use digits::Digits;
pub use error::WhyError;
pub use fold::{Entry, Folder};
pub use got::Got;
pub use input::{InputSource, Stream};
pub use link::{At, Bytes, Computed, End, Move, StepBack};
pub use number::{NumberSearch, Printed as PrintedValue};
pub use printed::{Printed, Put, PutBytes, written_before, written_until};
pub use traffic::{Traffic, traffic};
pub use walk::Walk;
pub use wasmparser::ValType;
