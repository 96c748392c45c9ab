//! Timestamped whole program paths (Zhang and Gupta, "Timestamped Whole Program Path Representation
//! and its Applications", 2001).
//!
//! This module builds the paper's representation stage by stage, for comparison and export. A
//! [`Collector`] partitions a run's [`Event`]s into unique path traces and a dynamic call graph,
//! which form a [`Wpp`]. [`Twpp::compact`] replaces chains of blocks with dynamic basic blocks, and
//! sequences with timestamps. [`write()`] makes a file from the result, and a [`Reader`] reads one
//! function's path traces alone. Each stage expands back to exactly the same events.
//!
//! The paper leaves these choices open:
//! - A call's position is the number of blocks that its caller itself had executed before the call.
//!   The paper does not have to store this, because its blocks show whether they make a call.
//! - An activation that never returned has the trace up to the run's end. The end counts as leaving
//!   the trace's last block, so no chain continues there. Such traces are ordinary path traces. The
//!   number of calls that never returned is stored with each.
//! - Series are found greedily. Two timestamps that are not adjacent are two singletons, as in the
//!   paper's Figure 10.
//! - Sizes as in the paper's tables ([`Stages`]) assume four-byte words. Files use variable-length
//!   numbers instead.

mod call_graph;
mod call_runs;
mod collector;
mod compact;
mod dictionary;
mod dynamic_blocks;
mod dynamic_cfg;
mod event;
mod events;
mod file;
mod lzw;
mod of_path;
mod packed;
mod path_builder;
mod path_table;
mod path_trace;
mod plain_calls;
mod redundancy;
mod series;
mod series_builder;
mod stages;
mod steps;
mod timestamped;
mod timestamped_builder;
mod varint;
mod walk;
mod wpp;

pub use call_graph::{Call, CallGraph, CallId};
pub use call_runs::{CallRun, Runs};
pub use collector::Collector;
pub use compact::{CompactPath, FunctionTraces, Twpp};
pub use dictionary::Dictionary;
pub use dynamic_cfg::{DynamicCfg, DynamicEdge, DynamicNode};
pub use event::{Event, EventError, Outside};
pub use events::Events;
pub use file::{DirectoryEntry, FileError, FileSizes, Part, Reader, StoredTraces, write};
pub use lzw::{LzwDecoder, LzwEncoder, LzwError};
pub use of_path::{
    CallPath, CollectError, PathCounts, PathOutline, call_path, collect, count_paths,
    function_paths, path_outlines,
};
pub use path_trace::{Blocks, PathTrace};
pub use redundancy::{GraphTotals, RedundancyPoint};
pub use series::{Entry, Series, SeriesError};
pub use stages::Stages;
pub use steps::Steps;
pub use timestamped::{BadTrace, TimestampedTrace};
pub use timestamped_builder::TimestampedBuilder;
pub use walk::{CallStep, Walk};
pub use wpp::{FunctionPaths, UniquePath, Wpp};
