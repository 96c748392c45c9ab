//! Recording, re-execution and counting, on executions of every kind.
//!
//! One law is behind all of it: whatever counters were placed, and however the run ended, every edge of
//! every function has the count that [`afterimage_testkit::naive_trace`] writes down step by step.

mod asynchronous;
mod endings;
mod generated;
mod imports;
mod long;
mod wasi;
pub mod words;
