//! The whole path of a run (Larus, "Whole Program Paths", 1999), as a grammar that can be read from
//! any point.
//!
//! A run is the sequence of the paths that its activations execute. [`Builder`] takes that sequence
//! and occasionally completes a [`Segment`]. A segment is a grammar that stores equal calls, loop
//! iterations and recurring stretches only once. [`WholePath`] reads segments at any position and
//! in both directions, and finds the k-th execution of a node.
//!
//! | | time |
//! |---|---|
//! | [`Builder::node`], [`Builder::enter`], [`Builder::leave`] | O(1), amortised |
//! | [`Builder::take_segment`], when it takes one | linear in the segment's grammar and the stack |
//! | opening a segment | linear in its grammar |
//! | [`Cursor::next`], [`Cursor::previous`] | O(1), amortised |
//! | [`Cursor::seek`], [`Occurrences::rank`], [`Occurrences::select`] | O(log n) for each rule on the way down |
//! | the first query of [`Occurrences`] to a segment | linear in its grammar |
//! | [`WholePath::call_graph`] | linear in all grammars, with one more pass for every 16 recursive functions |
//!
//! ```
//! use std::sync::Arc;
//!
//! use afterimage_ids::{BlockId, FuncId, PrimaryMap};
//! use afterimage_wpp::{Builder, InMemory, Limits, Node, Shape, WholePath};
//!
//! // A function that executes one path of two blocks in a loop.
//! let function = FuncId::from_u32(0);
//! let mut nodes = PrimaryMap::new();
//! let node = nodes.push(Node {
//!     function,
//!     blocks: [BlockId::from_u32(1), BlockId::from_u32(2)].into(),
//!     left_out: 0,
//! });
//! let mut builder = Builder::new(Limits::default());
//! builder.define(Shape { length: 2, loops: [1].into(), header: true });
//! builder.enter(function);
//! builder.node(node, 1_000_000);
//! builder.leave();
//!
//! let segments: InMemory = builder.finish().into_iter().collect();
//! let path = WholePath::new(segments, Arc::new(nodes))?;
//! assert_eq!(path.length(), 2_000_000);
//! let mut cursor = path.cursor();
//! assert_eq!(cursor.seek(1_000_000)?.map(|visit| visit.start), Some(999_999));
//! // The time of the node's second block when it is executed for the 5th time.
//! let fifth = path.executions([(node, 1)])?.select(5)?;
//! assert_eq!(fifth.map(|occurrence| occurrence.time), Some(10));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod call_graph;
pub mod codec;
mod consing;
mod cursor;
mod directory;
mod find;
mod grammar;
mod marks;
mod measures;
mod node;
mod rank;
mod symbol;
pub mod twpp;
mod whole_path;

pub use builder::{Builder, Limits};
pub use call_graph::{CallEdge, CallGraph, CallGraphError, CallTotal};
pub use cursor::{Activation, CallEvent, Calls, Cursor, NodeFilter, Visit};
pub use directory::{
    Contexts, Continuation, Directory, DirectoryLimits, OpenActivation, Partial, StretchDirectory,
};
pub use find::{FindError, Link, Match, Part, Pattern, PatternError, PatternOccurrences};
pub use grammar::{Grammar, Kind, Root, Rule, Segment};
pub use marks::{Marking, Marks, MarksError};
pub use measures::CheckError;
pub use node::{Node, Shape};
pub use rank::{Occurrence, Occurrences, TargetError};
pub use symbol::Symbol;
pub use whole_path::{InMemory, PathError, Segments, Summary, WholePath};
