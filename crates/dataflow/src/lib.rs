//! Profile-limited data flow analysis (Zhang and Gupta, "Timestamped Whole Program Path Representation and its Applications", 2001, section 4).
//!
//! A question is about a fact of a GEN-KILL problem at executions of a node of a [`TimestampedGraph`]: ⟨timestamps, node⟩. It is answered on demand, by going back (or
//! forward) along the path that was taken and no other: [`solve`] moves all timestamps of a query one step at a time, as arithmetic series
//! ([`Times`]), to those neighbours that have them, until each meets an execution that decides. The [`Solution`] tells of each execution what decided
//! it, how often that was, and how many queries it took.
//!
//! What is done beyond the paper:
//! - What decides has a number, a [`Site`], so reaching definitions are one question, not one for each definition.
//! - A query that comes back to its own node at executions that were asked about, too, ends there: those have the same answer. So a loop costs
//!   as many queries as its body has nodes, however often it ran, and all queries together visit each step of the path once at most.
//! - Where little is regular, queries would move single timestamps, and slower than going through the path does. Then that is done.
//! - Queries go in both directions: forward ones answer what happens next, such as whether a use is the last one.
//!
//! [`Summaries`] tell what calls decide, through the dynamic call graph, and [`slices`] has Agrawal and Horgan's three dynamic slicing algorithms.
//!
//! Figure 9: node 4 loads X in a loop, node 1 does, too, and node 6 stores to it. How often is what node 4 loads available already?
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
//!     // What node 4 does itself comes behind the question.
//!     own: Effect::Transparent,
//! };
//! let solution = solve(&graph, &question, |node| match node {
//!     1 | 4 => Effect::Decides(generated),
//!     6 => Effect::Decides(killed),
//!     _ => Effect::Transparent,
//! });
//! // Each time, and it took two queries: ⟨3:239:4, 4⟩ and ⟨2:238:4, 2⟩, which node 1 answers.
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
