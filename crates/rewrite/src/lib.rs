//! Turns a module and a plan into an instrumented module, without side effects.
//!
//! Probes are WebAssembly code. They do not change anything that the guest can see: its operand
//! stack, locals, memories, globals, tables and indices.

mod actions;
mod body;
mod captures;
mod carry;
mod clock;
mod error;
mod hinges;
mod layout;
mod map;
mod marks;
mod module;
mod path_probes;
mod sections;
mod shared;
mod types;

pub use captures::{CaptureSite, can_capture};
pub use error::RewriteError;
pub use layout::{
    ARM_CLOCK_AT, ARM_SKIP_AT, CAPTURED, CLOCK_AT, Dump, DumpError, HALF_FULL, LIMIT_AT, LINE,
    Layout, MEMORY_EXPORT, SNAPSHOT_AT, SNAPSHOT_EXPORT, START_EXPORT, TAKE_SNAPSHOT, TAKEN_EXPORT,
    UNWIND_AT, WATCHED,
};
pub use map::{OffsetMap, OriginalPlace};
pub use marks::{Marking, WatchedAt};
pub use module::{
    Armed, External, Inner, Large, Options, Probes, Rewritten, Snapshots, inner_export, rewrite,
};
pub use path_probes::{CURSOR_EXPORT, PENDING_EXPORT, PathProbes, SMALLEST_HALF, TracePlan};
