//! Finds the values of statements and their origins, by execution, in a file's whole execution
//! trace.
//!
//! ```no_run
//! use afterimage_ids::{FuncId, OpId};
//! use afterimage_program::Program;
//! use afterimage_replay::whole_path::recorded_path;
//! use afterimage_replay::values::{Executions, Types, dependences, recorded_epochs, recorded_values};
//! use afterimage_trace::TraceFile;
//!
//! let file = TraceFile::open("app.aft".as_ref())?;
//! let module = file.module()?;
//! let program = Program::parse(&module)?;
//! let path = recorded_path(&file, &program)?.ok_or("the recording has no path yet")?;
//! let epochs = recorded_epochs(&file, &path)?.ok_or("the recording has no values yet")?;
//! let values = recorded_values(&program, &module, &path, &epochs)?;
//!
//! // The third execution of an operator: its results, and the origins of its operands.
//! let (function, op) = (FuncId::from_u32(7), OpId::from_u32(12));
//! let all = Executions::of(&values, &program, function, op)?;
//! let types = Types::new(&program, &module);
//! if let Some(third) = all.get(&values, 3)? {
//!     println!("of {}: {:?}", all.count(), types.results_of(&values, &third, op)?);
//!     for dependence in dependences(&values, &third)? {
//!         println!("{}: {:?}", dependence.role, dependence.origin);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod control;
mod controlled;
mod dependences;
mod executions;
mod host;
mod original;
mod results;
mod statement;
mod stretches;
mod uses;
mod verify;

use afterimage_program::Program;
use afterimage_trace::TraceFile;
pub use afterimage_wet::LeftOut;
use afterimage_wet::{EpochFileError, FileEpochs, TraceError, WholeTrace, fingerprint};

pub use afterimage_machine::Accesses;
pub use afterimage_wet::{Bits, Definition, Instance};
pub use control::{Controller, Controllers};
pub use controlled::{Controlled, ControlledBlocks};
pub use dependences::{Dependence, Origin, dependences, moves, of_statement, operands, reads};
pub use dependences::{end_of, moves_of, origin_of};
use dependences::{role_of_place, role_of_read};
pub use executions::{Execution, Executions, block_at, block_executions};
pub use host::{HostPart, HostReads, HostReadsError};
pub use original::{ControlOf, Original};
pub use results::{Effect, TypedValue, Types};
pub use statement::{Kind, Operand, Statement};
pub use stretches::epochs_of_stretches;
pub use uses::{Use, Uses, definition};
pub use verify::{ValuesReport, verify_values};

use crate::whole_path::{FileSegments, PathFileError, RecordedPath};

/// The whole execution trace of a file, open for questions.
pub type RecordedValues<'a> = WholeTrace<'a, FileSegments, FileEpochs>;

/// The reason why a question about values cannot be answered.
pub type ValuesError = TraceError<PathFileError, EpochFileError>;

/// Returns the epochs of a file's whole execution trace, or `None` if the file has none.
///
/// # Errors
/// Returns an error if the trace is damaged, or does not belong to the file's path.
pub fn recorded_epochs(
    file: &TraceFile,
    path: &RecordedPath,
) -> Result<Option<FileEpochs>, EpochFileError> {
    let continuations = &path.segments().directory().continuations;
    FileEpochs::open(file, fingerprint(path.nodes(), continuations))
}

/// Opens the whole execution trace in `epochs`. `module` contains the bytes from which the program
/// was parsed.
///
/// # Errors
/// Returns an error if the module cannot be read.
pub fn recorded_values<'a>(
    program: &'a Program,
    module: &'a [u8],
    path: &'a RecordedPath,
    epochs: &'a FileEpochs,
) -> Result<RecordedValues<'a>, ValuesError> {
    let continuations = &path.segments().directory().continuations;
    WholeTrace::new(program, module, path, continuations, epochs)
}
