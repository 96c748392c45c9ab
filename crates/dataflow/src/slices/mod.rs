//! Computes dynamic slices of a path by queries. Agrawal and Horgan's three algorithms ("Dynamic
//! Program Slicing", 1990) share one representation (Zhang and Gupta 2001, section 4.3.2).
//!
//! A slice contains the statements on which a variable's value at a point depends, by data or
//! control. A query ⟨timestamps, node⟩ for a variable looks for its definition. A query for control
//! looks for the latest execution of a statement on which the node is control dependent. Each
//! statement found is in the slice, and raises queries for the variables that it uses and for its
//! control. The three approaches differ in the edges that queries follow, and in the queries that
//! they raise:
//!
//! | | queries follow | raises |
//! |---|---|---|
//! | [`Approach::Nodes`] | all edges between nodes that were executed | one for the node |
//! | [`Approach::Edges`] | the path | one for all executions of the node |
//! | [`Approach::Instances`] | the path | one for the execution that was found |
//!
//! Dependences are found on demand, as in the paper. No query is raised twice.

mod nodes;
mod path;
mod program;
mod raised;
mod slice;

pub use program::{Kind, Slicing, Statement, Subject, Variable};
pub use slice::{Approach, Criterion, Row, Slice, slice, slice_observed};
