//! The whole path of a run (Larus, "Whole Program Paths", 1999), as a grammar that is open at any point.
//!
//! A run is the sequence of the paths that its activations execute. [`Builder`] takes that sequence and makes a
//! [`Segment`] of it now and then: a grammar in which calls, loop iterations and recurring stretches stand once, however
//! often they occur. `WholePath` reads segments: any position, both directions, the k-th execution of a node.

pub mod codec;
mod builder;
mod consing;
mod grammar;
mod measures;
mod node;
mod symbol;
pub mod twpp;

pub use builder::{Builder, Limits};
pub use grammar::{Grammar, Kind, Root, Rule, Segment};
pub use measures::CheckError;
pub use node::{Node, Shape};
pub use symbol::Symbol;
