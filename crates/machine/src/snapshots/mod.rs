//! Snapshots of a run in its trace file. They are coarse checkpoints that need no path. Each
//! snapshot has the pages of memory that changed since the previous snapshot.
//!
//! A section of kind [`Kind::SNAPSHOTS`](afterimage_trace::Kind::SNAPSHOTS) contains the snapshots,
//! as `docs/FORMAT.md` describes. [`SnapshotBuilder`] collects snapshots while the run is executed
//! or followed. [`Snapshots`] restores a machine to a snapshot. Each page gets its contents from
//! the newest snapshot that contains the page and is not later than the restored snapshot. A page
//! without such a snapshot gets its initial contents.

mod build;
mod pages;
mod read;
mod wire;

pub use build::SnapshotBuilder;
pub use pages::{Page, WrittenPages};
pub use read::{Restored, SnapshotError, Snapshots};
pub(crate) use wire::{put, take};

/// The times at which an open activation began and made its pending call. These are the times of
/// its first block and of the call's block. Without a pending call, both are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The time at which the activation began.
    pub entered: u64,
    /// The time of the activation's call.
    pub called: u64,
}

/// The number of bytes in a page.
pub const SNAPSHOT_PAGE: u64 = 4096;
/// The number of pages in a chunk.
const PAGES: usize = 64;
/// The number of bytes in a chunk of other data.
const PART: usize = 1 << 20;
/// The version of the section.
const VERSION: u64 = 1;
