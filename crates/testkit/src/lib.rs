//! Generators, oracles and naive references that the tests of the other crates share.

pub mod graphs;
pub mod modules;
pub mod naive_trace;
pub mod ssa;
pub mod tools;
pub mod versions;
