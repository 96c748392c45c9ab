//! Histories: which executions of each site were missed, one bit an execution. (A site is a branch, a load or a store.)
//!
//! What is kept is how many executions lie between two that were missed. So executions that were not cost nothing, and regular ones, such as every
//! sixteenth of a load that walks through an array, cost next to nothing when the stream of numbers is coded (`afterimage-streams`). An *epoch* is a stretch of
//! a run in which at most [`Recorder::EPOCH`] were missed; each epoch is coded by itself, so memory does not depend on the run's length.
//!
//! An epoch of bytes: 1 byte of version, 1; a varint, how many sites were executed in it. For each of these, ascending, varints: its number, less that behind
//! the one before; executions, less 1; how many of them were missed; if any, the length of their stream; and with two levels,
//! if any, how many of these the second level missed, too; if any, the length of that stream. Then the streams, in this order. A stream has for each execution that was missed
//! how many were not since the one before (or the epoch's beginning); the second one has the same of those that the first level missed.

mod read;
mod record;
mod summary;
mod varint;

pub use read::{Epoch, HistoryError, Misses, SiteEpoch};
pub use record::{Recorder, Tally};
pub use summary::{Site, SiteKind, Summary};
