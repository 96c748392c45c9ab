//! Read-only questions about a recorded execution.
//!
//! [`Profile`] derives from the exact counts of edges ([`afterimage_ids::Counts`])
//! those of blocks, instructions, source lines, branches and calls.
//! [`Report`] is the answer to one question about it, for `present` to write.
//! [`location`] and [`Resolver`] read places as people write them. Nothing here knows the engine.

mod body;
mod collect;
pub mod currency;
pub mod dataflow;
pub mod diff;
mod error;
mod frequency;
mod lines;
pub mod location;
pub mod matching;
pub mod paths;
mod profile;
mod prologue;
pub mod redundancy;
mod report;
mod resolve;
mod rows;
pub mod simulate;
pub mod slices;
mod source;
pub mod state;
pub mod steps;
mod stops;
mod text;
pub mod values;
mod walk;
pub mod why;

pub use collect::Scope;
pub use error::ProfileError;
pub use frequency::block_counts;
pub use lines::LineCount;
pub use profile::{FunctionProfile, Profile, Stop, Totals};
pub use prologue::{PrologueEnd, prologue_end};
pub use report::{By, Options, Report, Sort};
pub use resolve::Resolver;
pub use rows::{BlockRow, BranchRow, CallRow, EdgeRow, FunctionRow, InstructionRow, LineRow, Rows};
pub use source::{Line, Source};
pub use stops::stops;
pub use text::{readable, texts as operator_texts};
pub use walk::OperatorCount;
