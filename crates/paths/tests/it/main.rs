//! Integration tests of path plans.

mod numbering;
mod witness_figures;
mod witness_graphs;
mod witness_runs;
mod witness_scale;
mod witness_walk;
