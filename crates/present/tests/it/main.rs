//! Tests of reports from outside the crate.

mod common;
mod documents;
mod golden;
mod tools;
