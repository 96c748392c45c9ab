//! The statements and memory references of a run in their order, by following it on the machine: exact, and without an engine.
//!
//! A run is followed from its beginning, whatever part of it is asked about: time is linear in the blocks up to there. What is
//! kept is the guest's memory, the code of the path's nodes and what one node did, not the length of the run.

mod collect;
mod error;
mod follow;
mod name;
mod operators;
mod plan;
mod step;
mod stream;

pub use afterimage_machine::{Range, Trap, stopped_before};
pub use error::StepsError;
pub use follow::Run;
pub use operators::{FunctionOperators, OperatorPlace, Operators};
pub use step::{Step, Value, What};
pub use stream::{Level, Steps, Wanted, last_steps};
