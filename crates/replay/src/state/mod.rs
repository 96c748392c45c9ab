//! Finds the values of source variables at a moment of a run. Also finds the values of the locals,
//! globals and memories that hold them.
//!
//! Locals are computed from the whole execution trace. Globals and memory are known only after the
//! run has been followed to the moment ([`follow_to`]), which happens only if the question needs
//! them. Only the memory in question is restored from a checkpoint.
//!
//! ```no_run
//! use afterimage_program::{Names, Program, SourceMap};
//! use afterimage_replay::whole_path::recorded_path;
//! use afterimage_replay::state::{
//!     Activation, Bodies, Contents, Limits, Moment, Recorded, Variables, calls, variables,
//! };
//! use afterimage_replay::values::{recorded_epochs, recorded_values};
//! use afterimage_trace::TraceFile;
//!
//! let file = TraceFile::open("app.aft".as_ref())?;
//! let module = file.module()?;
//! let program = Program::parse(&module)?;
//! let source = SourceMap::build(&module);
//! let names = Names::build(&program, &module, &source);
//! let path = recorded_path(&file, &program)?.ok_or("the recording has no path yet")?;
//! let epochs = recorded_epochs(&file, &path)?.ok_or("the recording has no values yet")?;
//! let values = recorded_values(&program, &module, &path, &epochs)?;
//!
//! // The call stack when block 4711 is executed, and the innermost call's variables in locals.
//! let (open, _) = calls(&values, 4711, 10)?;
//! for call in &open {
//!     println!("{}, since t={}", names.function(call.function), call.entered);
//! }
//! let bodies = Bodies::new(&program, &module);
//! let activation = Activation::at_block(&values, &bodies, 4711)?;
//! let contents = Recorded::new(&values);
//! let moment = Moment {
//!     activation: &activation,
//!     contents: &contents,
//!     entry: None,
//!     program: &program,
//!     name: &|function| names.function(function).to_owned(),
//! };
//! for variable in variables(&Variables::open(&module)?, &moment, &Limits::default(), |_|
//! Ok(None))?? {
//!     println!("{} = {:?}", variable.name, variable.value);
//! }
//! // If memory was needed, too, follow the run to this moment with `follow_to`, and ask again.
//! println!("that is all: {}", contents.is_enough());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod activation;
mod begun;
mod error;
mod follow;
mod frames;
mod moment;
mod occasions;
mod report;
mod shown;
mod standing;
mod watch;
mod written;

pub use activation::{Activation, Bodies, Stands};
pub use afterimage_variables::{
    BitField, Condition, ConditionError, ConditionNumber, DebugError, FunctionScopes, Global, Held,
    Limits, Located, Machine, Nothing, Number, NumberType, Object, Part, Parts, Path, PathError,
    Piece, Rank, Rendered, Shape, Truth, TypeKind, TypeRef, Unavailable, Variable, VariableKind,
    VariableLocation, Variables, Word, quoted,
};
pub use begun::Begun;
pub use error::StateError;
pub use follow::{Halt, follow_to};
pub use frames::{Call, calls};
pub use moment::{Contents, Ended, Followed, Guess, Moment, Recorded};
pub use occasions::{Occasion, Occasions};
pub use report::{Frame, Globals, InlinedCall, Local, StateReport};
pub use shown::{
    InScope, Shown, ShownObject, global_object, global_objects, globals, locals, objects,
    variables, wasm_globals,
};
pub use standing::{OnMachine, Standing, follow_standing};
pub use watch::{Evaluated, Watch, WatchError, Watched, Worth};
pub use written::{Writer, Written, locals_of};
