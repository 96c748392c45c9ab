//! Tests of the questions about path traces from outside.

mod figure_11;
mod figures;
mod naive_calls;
mod naive_slices;
mod naive_walk;
