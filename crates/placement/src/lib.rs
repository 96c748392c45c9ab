//! Decides which edges to count, and derives all counts from the counters. The crate's functions
//! have no side effects. They compute a [`Plan`] and, from the counters of a run, exact
//! [`Counts`](afterimage_ids::Counts).
//!
//! The core is Ball and Larus, "Optimally Profiling and Tracing Programs" (1992). The counts of the
//! chords of a maximum spanning tree determine all counts. [`Mode::Program`] goes further and lets
//! the calls between functions replace counters.

mod block_counts;
mod call_frequency;
mod calls;
mod coupling;
mod edge_placement;
mod effect;
mod elimination;
mod facts;
mod field;
mod flow;
mod function_flow;
mod interprocedural;
mod plan;
mod planner;
mod solve;
mod solve_error;
mod split_cost;
mod vertex_placement;
mod weights;

pub use block_counts::{block_counts, measured_blocks};
pub use edge_placement::{cost, determines_edges, optimal_edges};
pub use facts::{OpenFrame, RunFacts};
pub use plan::{FunctionPlan, Mode, Plan, PlanError, PlanOptions, Probe, Site};
pub use planner::{function_weights, plan};
pub use solve::solve;
pub use solve_error::{Counted, SolveError};
pub use split_cost::SplitCost;
pub use vertex_placement::{determines_vertices, optimal_vertices};
pub use weights::{Likelihood, Weights};
