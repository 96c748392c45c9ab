//! What variables hold at a moment of a run: those of the source language, and the locals, globals and memories that they are in.
//!
//! Locals are computed from the whole execution trace. Globals and memory are known once the run was followed up to the moment
//! ([`follow_to`]), so this is done only when something that is asked about is in them; and of memory only what is asked about is
//! brought in from a checkpoint.

mod activation;
mod error;
mod follow;
mod frames;
mod moment;
mod occasions;
mod report;
mod shown;
mod watch;
mod written;

pub use activation::{Activation, Bodies};
pub use afterimage_variables::{
    DebugError, FunctionScopes, Limits, Machine, Nothing, Number, Object, Path, PathError, Piece,
    Place, Rank, Rendered, Shape, Unavailable, VariableKind, Variables, Word,
};
pub use error::StateError;
pub use follow::{Halt, follow_to};
pub use frames::{Call, calls};
pub use moment::{Contents, Ended, Followed, Moment, Recorded};
pub use occasions::{Occasion, Occasions};
pub use report::{Frame, Globals, Local, StateReport};
pub use shown::{Shown, globals, locals, variables, wasm_globals};
pub use watch::{Evaluated, Watch, WatchError, Watched, Worth};
pub use written::Written;
