//! Tests recording, re-execution and counting on executions of every kind.
//!
//! The law is that every edge of every function has the count that
//! [`afterimage_testkit::naive_trace`] finds step by step. It holds whatever counters were placed,
//! and however the run ended.

mod asynchronous;
mod endings;
mod generated;
mod imports;
mod long;
mod wasi;
pub mod words;
