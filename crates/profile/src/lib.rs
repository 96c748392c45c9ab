//! Derives exact profiles, and resolves the names of places, such as `file.c:42`.
//!
//! The input is the exact counts of edges ([`afterimage_ids::Counts`]). [`Profile`] derives from
//! them the counts of blocks, instructions, source lines, branches and calls. A [`Report`] answers
//! one question about a profile. The crate `present` writes it. [`location`] and [`Resolver`] read
//! places as people write them.

pub mod body;
mod collect;
mod compare;
mod error;
mod frequency;
mod inlined;
pub mod lines;
pub mod location;
mod mine;
mod profile;
mod prologue;
mod range;
mod report;
mod resolve;
mod rows;
mod source;
mod stops;
mod sum;
mod text;
pub mod walk;
mod whole;

pub use collect::Scope;
pub use compare::{Comparison, Measured, Pair, Pairs};
pub use error::ProfileError;
pub use frequency::block_counts;
pub use inlined::InlinedRow;
pub use lines::LineCount;
pub use mine::{CodeFilter, Folded, OwnFunctions, is_library, is_library_name};
pub use profile::{FunctionProfile, Profile, Stop, Totals};
pub use prologue::{PrologueEnd, prologue_end};
pub use range::{FunctionRange, RangeCounts};
pub use report::{By, LeftOut, Options, Report, Sort};
pub use resolve::{Remarks, Resolver};
pub use rows::{BlockRow, BranchRow, CallRow, EdgeRow, FunctionRow, InstructionRow, LineRow, Rows};
pub use source::{InlinedCode, Line, Source, SourceLine, inlined_names};
pub use stops::stops;
pub use sum::add_counts;
pub use text::{readable, texts as operator_texts};
pub use walk::OperatorCount;
pub use whole::{Charged, Costs, PaidBy, WholeLines};
