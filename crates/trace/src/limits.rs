//! Limits of the format. They bound the allocations that a hostile file can cause. A writer refuses
//! what every reader would refuse.

use crate::{Result, TraceError};

/// Decoded bytes of META.
pub(crate) const MAX_META: u64 = 1 << 24;
/// Decoded bytes of MODULE: the engines' limit.
pub(crate) const MAX_MODULE: u64 = 1 << 30;
/// Bytes of an event.
pub(crate) const MAX_EVENT: u64 = 1 << 30;
/// Decoded bytes of END: tens of millions of frames.
pub(crate) const MAX_END: u64 = 1 << 28;
/// Decoded bytes of COUNTS.
pub(crate) const MAX_COUNTS: u64 = 1 << 29;
/// Arguments, or results, of one call: the engines' limit.
pub(crate) const MAX_VALUES: u64 = 1000;
/// Ranges that one host call reads, or writes.
pub(crate) const MAX_RANGES: u64 = 1 << 20;
/// Imports, or defined functions: the engines' limit.
pub(crate) const MAX_FUNCTIONS: u64 = 1_000_000;
/// Edges in COUNTS, of all functions together.
pub(crate) const MAX_EDGES: u64 = 1 << 27;
/// Open blocks in COUNTS, of all functions together.
pub(crate) const MAX_OPEN: u64 = 1 << 24;
/// Bytes of an embedded source file: larger files are not source text.
pub const MAX_SOURCE: u64 = 1 << 26;
/// Embedded source files.
pub(crate) const MAX_SOURCES: u64 = 1_000_000;
/// Total bytes of a guest's memories.
pub const MAX_MEMORY: u64 = 1 << 34;
/// The limit on the total elements of a guest's tables: the number that browsers allow for one
/// table.
pub const MAX_ELEMENTS: u64 = 10_000_000;
/// Total variables of a run's open activations: locals and slots of the operand stack.
pub const MAX_VARIABLES: u64 = 1 << 26;

/// Refuses a value above a limit.
pub(crate) fn check(what: &'static str, value: usize, limit: u64) -> Result<()> {
    if value as u64 > limit {
        return Err(TraceError::TooLarge { what, limit });
    }
    Ok(())
}
