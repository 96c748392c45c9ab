//! Module and plan → instrumented module. Pure.
//!
//! Probes are WebAssembly code. They leave everything that the guest can see as it
//! was: the operand stack, its locals, memories, globals, tables and indices.

mod actions;
mod body;
mod carry;
mod clock;
mod error;
mod hinges;
mod layout;
mod map;
mod marks;
mod module;
mod paths;
mod shared;
mod types;

pub use error::RewriteError;
pub use layout::{
    ARM_CLOCK_AT, ARM_SKIP_AT, CLOCK_AT, Dump, DumpError, HALF_FULL, LIMIT_AT, LINE, Layout,
    MARKED_EXPORT, MEMORY_EXPORT, SNAPSHOT_AT, SNAPSHOT_EXPORT, START_EXPORT, TAKE_SNAPSHOT,
};
pub use map::{OffsetMap, OriginalPlace};
pub use module::{Armed, External, Large, Options, Probes, Rewritten, rewrite};
pub use paths::{CURSOR_EXPORT, PENDING_EXPORT, PathProbes, SMALLEST_HALF, TracePlan};
