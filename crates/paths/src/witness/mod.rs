//! Witness tracing (Ball and Larus 1992, section 4).
//!
//! Some edges write a *witness* when control passes over them. The whole path of a run follows from
//! the witnesses alone. For one graph, a [`Placement`] selects the edges that write,
//! [`solves_by_definition`] and [`solves_by_theorem`] decide whether these edges suffice, and
//! [`place`] chooses them. [`assign_tokens`] finds short codes for the witnesses, and
//! [`regenerate_simple`] turns them back into the path. For a whole
//! [`Program`](afterimage_program::Program), use a [`WitnessPlan`] and read the output of a run
//! with a [`Regenerator`].
//!
//! This module goes beyond the paper in three ways. Spanning-tree witnesses that distinguish
//! nothing are deleted. Calls to functions that write nothing are transparent. Codes are as short
//! as the required distinctions allow.

mod blocking;
mod code;
mod colours;
mod deletion;
mod forest;
mod huffman;
mod place;
mod placement;
mod plan;
mod regenerator;
mod sets;
mod simple;
mod tables;
mod tokens;
mod trace_graph;

pub use blocking::blockers;
pub use deletion::delete_hot;
pub use forest::chords;
pub use place::{cost, place};
pub use placement::Placement;
pub use plan::{FunctionWitnesses, WitnessOptions, WitnessPlan};
pub use regenerator::{PathSink, Regenerator, TokenReader, WitnessError};
pub use sets::{Witness, completed, solves_by_definition, solves_by_theorem, witness_set};
pub use simple::{SimpleError, regenerate_simple, trace_record};
pub use tokens::{Token, Tokens, assign_tokens};
pub use trace_graph::{Role, TraceGraph};
