//! Profile-limited data flow analysis of recorded runs (Zhang and Gupta 2001, section 4).

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

pub use calls::{LastStep, RunCalls};
pub use computations::path_expressions;
pub(crate) use expressions::expression_numbers;
pub use facts::{EventPlace, Fact, FactAnswer, FactError, Facts, PathAnswer};
pub use instances::{FactInstance, InstanceRun, Instances};
pub use loads::{PathRedundancy, path_redundancy};
pub use memory::Decider;
