//! Tests of graph algorithms from outside.

mod dominance;
mod forests;
mod loops;
