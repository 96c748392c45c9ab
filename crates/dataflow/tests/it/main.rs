//! Integration tests of questions about path traces.

mod figure_11;
mod figures;
mod naive_calls;
mod naive_slices;
mod naive_walk;
