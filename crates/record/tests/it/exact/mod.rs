//! Recording, re-execution and counting, on executions of every kind.
//!
//! The law: whatever counters were placed, and however the run ended, every edge of every function
//! has the count that [`afterimage_testkit::naive_trace`] finds step by step.

mod asynchronous;
mod endings;
mod generated;
mod imports;
mod long;
mod wasi;
pub mod words;
