//! Generates two versions of a program for which the corresponding operators are known by
//! construction.
//!
//! A random program is written as WebAssembly twice. One version has every variable in memory, like
//! code from a compiler without optimisation, and the other is [transformed](Transformations).
//! Every operation of the program has a number. The operators that implement it carry this number
//! in both versions, even after copying.

mod emit;
mod program;

use std::collections::HashMap;

pub use emit::Transformations;

/// One version of a program.
#[derive(Clone, Debug)]
pub struct Version {
    /// The module, as text.
    pub text: String,
    /// The operation of each operator, by function and operator index.
    pub operations: HashMap<(u32, u32), u32>,
}

/// Generates a program from a seed and returns it unoptimised and transformed. Both versions end
/// with the same exit code.
pub fn versions(seed: u64, transformations: Transformations) -> [Version; 2] {
    let program = program::generate(seed);
    [
        emit::unoptimised(&program),
        emit::optimised(&program, transformations),
    ]
}
