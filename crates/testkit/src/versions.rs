//! Two versions of a generated program of which it is known by construction which operators correspond.
//!
//! A random program is written as WebAssembly twice: as a compiler without optimisation would, with every variable in memory, and [transformed](Transformations). Every operation
//! of the program has a number; an operator that does it carries that number in both, however often it was copied.

mod emit;
mod program;

use std::collections::HashMap;

pub use emit::Transformations;

/// A version.
#[derive(Clone, Debug)]
pub struct Version {
    /// The module, as text.
    pub text: String,
    /// By function and place among its operators, the operation.
    pub operations: HashMap<(u32, u32), u32>,
}

/// A program that a seed tells, as it is and transformed. Both end with the same exit code.
pub fn versions(seed: u64, transformations: Transformations) -> [Version; 2] {
    let program = program::generate(seed);
    [
        emit::unoptimised(&program),
        emit::optimised(&program, transformations),
    ]
}
