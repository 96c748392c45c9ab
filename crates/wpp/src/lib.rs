//! The whole path of a run (Larus, "Whole Program Paths", 1999), as a grammar that is open at any point.
//!
//! A run is the sequence of the paths that its activations execute. [`Builder`] takes that sequence and makes a
//! [`Segment`] of it now and then: a grammar in which calls, loop iterations and recurring stretches stand once, however
//! often they occur. [`WholePath`] reads segments: any position, both directions, the k-th execution of a node.

mod builder;
pub mod codec;
mod consing;
mod cursor;
mod grammar;
mod measures;
mod node;
mod rank;
mod symbol;
pub mod twpp;
mod whole_path;

pub use builder::{Builder, Limits};
pub use cursor::{Activation, CallEvent, Calls, Cursor, Visit};
pub use grammar::{Grammar, Kind, Root, Rule, Segment};
pub use measures::CheckError;
pub use node::{Node, Shape};
pub use rank::{Occurrence, Occurrences, TargetError};
pub use symbol::Symbol;
pub use whole_path::{InMemory, PathError, Segments, Summary, WholePath};
