//! Tests of what is presented from outside.

mod common;
mod golden;
mod tools;
