//! Profile-limited data flow analysis (Zhang and Gupta, "Timestamped Whole Program Path
//! Representation and its Applications", 2001, section 4).
//!
//! A question asks about a fact of a GEN-KILL problem at executions of a node of a
//! [`TimestampedGraph`]: ⟨timestamps, node⟩. It is answered on demand, by following the path that
//! was actually taken, backward or forward. [`solve`] moves all timestamps of a query one step at a
//! time, as arithmetic series ([`Times`]). A timestamp moves to the neighbour that contains it,
//! until it meets an execution that decides. The [`Solution`] contains what decided each execution,
//! how often, and the number of queries that this took.
//!
//! Beyond the paper:
//! - Every deciding place has a number, a [`Site`]. So reaching definitions are a single question,
//!   not one question per definition.
//! - A query ends where it returns to its own node at executions that are also in question, because
//!   both have the same answer. So a loop costs as many queries as its body has nodes, however
//!   often it ran. All queries together visit each step of the path at most once.
//! - Where the timestamps are irregular, queries would move them one by one, which is slower than
//!   scanning the path. So the path is scanned instead.
//! - Queries go in both directions: forward queries answer what happens next, for example whether a
//!   use is the last one.
//!
//! [`Summaries`] say what calls decide, through the dynamic call graph. [`slices`] has Agrawal and
//! Horgan's three dynamic slicing algorithms.
//!
//! Figure 9: nodes 1 and 4 load X in a loop, and node 6 stores to it. How often is the value that
//! node 4 loads already available?
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
