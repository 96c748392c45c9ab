//! Integration tests of reports.

mod common;
mod documents;
mod golden;
mod tools;
