//! Snapshots of a run in its trace file, each with the pages of memory that changed since the
//! previous one: coarse checkpoints that need no path.
//!
//! A section of kind [`Kind::SNAPSHOTS`](afterimage_trace::Kind::SNAPSHOTS) holds them;
//! `docs/FORMAT.md` describes it. [`SnapshotBuilder`] collects them while the run is executed or
//! followed. [`Snapshots`] restores a machine to one of them. A page has the contents of the newest
//! snapshot up to there that contains it, or otherwise the module's initial contents.

mod build;
mod pages;
mod read;
mod wire;

pub use build::SnapshotBuilder;
pub use pages::{Page, WrittenPages};
pub use read::{Restored, SnapshotError, Snapshots};
pub(crate) use wire::{put, take};

/// The times at which an open activation began and made the call that it waits for: those of its
/// first block and of the call's block. If it does not wait, both are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The time at which it began.
    pub entered: u64,
    /// The time of its call.
    pub called: u64,
}

/// Bytes of a page.
pub const SNAPSHOT_PAGE: u64 = 4096;
/// The number of pages in a chunk.
const PAGES: usize = 64;
/// The size in bytes of a part of other data.
const PART: usize = 1 << 20;
/// The version of the section.
const VERSION: u64 = 1;
