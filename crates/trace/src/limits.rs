//! Limits of the format. They bound the allocations that a hostile file can cause. A writer refuses
//! data that every reader would refuse.

use crate::{Result, TraceError};

/// The maximum length of META in decoded bytes.
pub(crate) const MAX_META: u64 = 1 << 24;
/// The maximum length of MODULE in decoded bytes, which is the engines' limit.
pub(crate) const MAX_MODULE: u64 = 1 << 30;
/// The maximum length of an event in bytes.
pub(crate) const MAX_EVENT: u64 = 1 << 30;
/// The maximum length of END in decoded bytes, enough for tens of millions of frames.
pub(crate) const MAX_END: u64 = 1 << 28;
/// The maximum length of COUNTS in decoded bytes.
pub(crate) const MAX_COUNTS: u64 = 1 << 29;
/// The maximum number of arguments or results of one call, which is the engines' limit.
pub(crate) const MAX_VALUES: u64 = 1000;
/// The maximum number of ranges that one host call reads or writes.
pub(crate) const MAX_RANGES: u64 = 1 << 20;
/// The maximum number of imports or defined functions, which is the engines' limit.
pub(crate) const MAX_FUNCTIONS: u64 = 1_000_000;
/// The maximum number of edges in COUNTS, over all functions.
pub(crate) const MAX_EDGES: u64 = 1 << 27;
/// The maximum number of open blocks in COUNTS, over all functions.
pub(crate) const MAX_OPEN: u64 = 1 << 24;
/// The maximum length of an embedded source file in bytes. Larger files are not source text.
pub const MAX_SOURCE: u64 = 1 << 26;
/// The maximum number of embedded source files.
pub(crate) const MAX_SOURCES: u64 = 1_000_000;
/// The maximum total size of a guest's memories, in bytes.
pub const MAX_MEMORY: u64 = 1 << 34;
/// The maximum total number of elements of a guest's tables. Browsers allow this many elements in
/// one table.
pub const MAX_ELEMENTS: u64 = 10_000_000;
/// The maximum total number of locals and operand slots of a run's open activations.
pub const MAX_VARIABLES: u64 = 1 << 26;

/// Refuses a value above a limit.
pub(crate) fn check(what: &'static str, value: usize, limit: u64) -> Result<()> {
    if value as u64 > limit {
        return Err(TraceError::TooLarge { what, limit });
    }
    Ok(())
}
