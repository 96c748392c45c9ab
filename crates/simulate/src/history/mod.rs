//! Histories record which executions of each site missed. A site is a branch, a load or a store.
//!
//! A history stores the number of hits between two misses. So hits cost nothing. Regular misses
//! cost next to nothing once the stream of numbers is coded (`afterimage-streams`), for example if
//! a load that walks an array misses at every sixteenth access. An *epoch* is a stretch of a run
//! with at most [`Recorder::EPOCH`] misses. Each epoch is coded separately, so memory does not grow
//! with the run.
//!
//! An epoch starts with a version byte, 1, and a varint with the number of sites executed in it.
//! Then, for each site in ascending order, come these varints: its number minus the number after
//! the previous site's; its executions minus 1; its misses; and, if it has misses, the length of
//! their stream. With two levels and at least one miss, the number of second-level misses follows
//! and, if there are any, the length of that stream. The streams come last, in the same order. A
//! stream holds, for each miss, the number of hits since the previous miss or the beginning of the
//! epoch. The second stream has the same form, and counts only the accesses that missed the first
//! level.

mod read;
mod record;
mod summary;
mod varint;

pub use read::{Epoch, HistoryError, Misses, SiteEpoch};
pub use record::{Recorder, Tally};
pub use summary::{Site, SiteKind, Summary};
