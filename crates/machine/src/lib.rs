//! Replays a guest without an engine, along its recorded path and with its log.
//!
//! The input is the program, its path and its boundary log. The output is every value, address and
//! access, reported in order to an [`Observer`]. The path determines the control flow, and the log
//! determines the host's actions. So each node (a path of blocks) is straight-line code.
//! [`compile()`] compiles it once, and the [`Machine`] executes it. The machine contains memories,
//! tables, globals and the variables of all activations. It compares every branch, call and host
//! call with the recording.

mod activations;
mod checkpoint;
mod code;
mod compile;
mod define;
mod end;
mod error;
mod exceptions;
mod execute;
mod host;
mod image;
mod inst;
mod labels;
mod lazy;
mod lean;
mod leave;
mod machine;
mod observe;
mod snapshots;
mod step;
mod written;

pub use checkpoint::{ChangedTable, Checkpoint, Exception, Next, Snapshot, Waits};
pub use code::{Moved, NodeCode, NodeEnd, Operand, TableIndices, Taker, VectorExtra};
pub use compile::{Body, compile, compile_apart, compile_before};
pub use define::Path;
pub use end::{StoppedBefore, stopped_before};
pub use error::{MachineError, Trap};
pub use image::{GlobalBits, Initial, Memory, PAGE, State, Table};
pub use inst::{Accesses, Code, Expected, Inst, Load, Register};
pub use labels::{Labels, pack, unpack};
pub use lazy::{Bytes, lengthened};
pub use machine::{Inside, Machine};
pub use observe::{Caller, Observer, Range};
pub use snapshots::{
    Opened, Page, Restored, SNAPSHOT_PAGE, SnapshotBuilder, SnapshotError, Snapshots, WrittenPages,
};
pub use written::{
    LINE, LineRun, LineSet, WATCHED, WatchedBytes, WrittenLines, WrittenLinesBuilder,
    WrittenLinesError,
};
