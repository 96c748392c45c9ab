//! Histories of misses. A history records the executions that missed, for each site. A site is an
//! operator that branches or accesses memory.
//!
//! A history stores the numbers of hits between misses, so hits take no space. Regular misses take
//! almost none once the stream of numbers is coded (`afterimage-streams`). For example, a load that
//! walks an array may miss at every sixteenth access. An *epoch* is a stretch of a run that ends
//! soon after [`Recorder::EPOCH`] misses. Each epoch is coded separately, so memory does not grow
//! with the run.
//!
//! An epoch starts with a version byte, 1, and a varint with the number of sites executed in it.
//! Then come the varints of each site, in ascending order. The first is the number of sites skipped
//! since the previous site. The next are its executions minus 1, its misses and, if it has misses,
//! the length of their stream. With two levels and at least one miss, the number of second-level
//! misses follows and, if there are any, the length of their stream. The streams come last, in the
//! same order. For each miss, a stream contains the number of hits since the previous miss or the
//! beginning of the epoch. The second stream has the same form, and counts only the accesses that
//! missed the first level.

mod read;
mod record;
mod summary;
mod varint;

pub use read::{Epoch, HistoryError, Misses, SiteEpoch};
pub use record::{Recorder, Tally};
pub use summary::{Site, SiteKind, Summary};
