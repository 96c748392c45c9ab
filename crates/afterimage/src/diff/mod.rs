//! Recordings compared: of the same program, of two versions of it, of executions that failed and others that passed.

mod counts;
pub mod rank;
pub mod same;
pub mod versions;
