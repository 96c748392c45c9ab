//! Integration tests of graph algorithms.

mod dominance;
mod forests;
mod loops;
