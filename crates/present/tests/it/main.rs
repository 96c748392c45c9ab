//! Tests of what is presented from outside.

mod common;
mod documents;
mod golden;
mod tools;
