//! Provides generators, oracles and naive references to the tests of the other crates.

pub mod graphs;
pub mod modules;
pub mod naive_trace;
pub mod ssa;
pub mod tools;
pub mod versions;
