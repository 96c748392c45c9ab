//! Profile-limited data flow analysis (Zhang and Gupta, "Timestamped Whole Program Path
//! Representation and its Applications", 2001, section 4).
//!
//! A question ⟨timestamps, node⟩ asks about a fact of a GEN-KILL problem at executions of a node in
//! a [`TimestampedGraph`]. The answer is found on demand, by following the executed path backward
//! or forward. [`solve`] moves all timestamps of a query one step at a time, as arithmetic series
//! ([`Times`]). A timestamp moves to the neighbour that contains it, until it meets an execution
//! that decides the fact. The [`Solution`] contains the site that decided each execution, and the
//! number of queries.
//!
//! Differences from the paper:
//! - Every deciding place has a number, its [`Site`]. So a single question finds all reaching
//!   definitions, where the paper asks one question for each definition.
//! - A query ends when it returns to its own node at executions that are also queried, because both
//!   have the same answer. So a loop costs one query per node of its body, regardless of the number
//!   of iterations. All queries together visit each step of the path at most once.
//! - If the timestamps are irregular, queries would move them one by one, which is slower than
//!   scanning the path. In that case, the path is scanned.
//! - Queries go in both directions. Forward queries find later events, for example whether a use is
//!   the last use.
//!
//! [`Summaries`] determine the decisions of calls, through the dynamic call graph. [`slices`] has
//! Agrawal and Horgan's three dynamic slicing algorithms.
//!
//! In the paper's figure 9, nodes 1 and 4 load X in a loop, and node 6 stores to it. The example
//! counts how often the value that node 4 loads is already available.
//!
//! ```
//! use afterimage_dataflow::{Direction, Effect, Outcome, Question, Site, TimestampedGraph, solve};
//!
//! let mut path = [1, 2, 4, 7].repeat(60);
//! path.extend([1, 3, 6, 7].repeat(40));
//! let graph = TimestampedGraph::of_path(&path);
//!
//! let (generated, killed) = (Site(1), Site(0));
//! let question = Question {
//!     direction: Direction::Backward,
//!     node: 4,
//!     times: graph.timestamps(4),
//!     // Node 4's own load comes after the point asked about.
//!     own: Effect::Transparent,
//! };
//! let solution = solve(&graph, &question, |node| match node {
//!     1 | 4 => Effect::Decides(generated),
//!     6 => Effect::Decides(killed),
//!     _ => Effect::Transparent,
//! });
//! // Every time. It took two queries: ⟨3:239:4, 4⟩ and ⟨2:238:4, 2⟩, which node 1 answers.
//! assert_eq!(solution.count_where(|outcome| outcome == Outcome::Decided(generated)), 60);
//! assert_eq!(solution.queries, 2);
//! ```

mod effect;
mod graph;
mod links;
mod progression;
mod scan;
pub mod slices;
mod solution;
mod solve;
mod summaries;
mod times;

pub use effect::{Effect, Site};
pub use graph::{Direction, TimestampedGraph};
pub use solution::{Outcome, Part, Solution};
pub use solve::{Question, solve, solve_within};
pub use summaries::{CallEffects, Events, Summaries};
pub use times::Times;
