//! Snapshots of a run in its trace file, each with the pages of memory that changed since the one before: coarse checkpoints, which need no path.
//!
//! A section of kind [`Kind::SNAPSHOTS`](afterimage_trace::Kind::SNAPSHOTS) holds them; `docs/FORMAT.md` describes it. Whoever executes or follows the run collects them
//! ([`SnapshotBuilder`]); a machine is taken to one by [`Snapshots`]: a page is what the newest snapshot up to there has of it, and otherwise what the module begins with.

mod build;
mod pages;
mod read;
mod wire;

pub use build::SnapshotBuilder;
pub use pages::{Page, WrittenPages};
pub use read::{Restored, SnapshotError, Snapshots};
pub(crate) use wire::{put, take};

/// When an open activation began, and when it made the call that it waits for: the times of its first block and of the call's. Of one that does not wait, the second is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// When it began.
    pub entered: u64,
    /// When it called.
    pub called: u64,
}

/// Bytes of a page.
pub const SNAPSHOT_PAGE: u64 = 4096;
/// How many pages a chunk has.
const PAGES: usize = 64;
/// Bytes of a part of what is no page.
const PART: usize = 1 << 20;
/// The version of the section.
const VERSION: u64 = 1;
