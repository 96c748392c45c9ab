//! Timestamped whole program paths (Zhang and Gupta, "Timestamped Whole Program Path Representation and its Applications", 2001).
//!
//! The paper's representation, stage by stage, for comparison and export. A [`Collector`] takes a run's [`Event`]s and
//! partitions it into path traces, each kept once, and a dynamic call graph: a [`Wpp`]. [`Twpp::compact`]
//! replaces chains of blocks by dynamic basic blocks and sequences by timestamps.

mod call_graph;
mod call_runs;
mod collector;
mod compact;
mod consistency;
mod dictionary;
mod dynamic_blocks;
mod dynamic_cfg;
mod event;
mod events;
mod file_error;
mod function_block;
mod layout;
mod lzw;
mod packed;
mod path_builder;
mod path_table;
mod path_trace;
mod plain_calls;
mod reader;
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
mod write;

pub use call_graph::{Call, CallGraph, CallId};
pub use call_runs::{CallRun, Runs};
pub use collector::Collector;
pub use compact::{CompactPath, FunctionTraces, Twpp};
pub use dictionary::Dictionary;
pub use dynamic_cfg::{DynamicCfg, DynamicEdge, DynamicNode};
pub use event::{Event, EventError, Outside};
pub use events::Events;
pub use file_error::{FileError, Part};
pub use layout::DirectoryEntry;
pub use lzw::{LzwDecoder, LzwEncoder, LzwError};
pub use path_trace::{Blocks, PathTrace};
pub use reader::{FileSizes, Reader};
pub use redundancy::{GraphTotals, RedundancyPoint};
pub use series::{Entry, Series, SeriesError};
pub use stages::Stages;
pub use steps::Steps;
pub use timestamped::{BadTrace, TimestampedTrace};
pub use timestamped_builder::TimestampedBuilder;
pub use walk::{CallStep, Walk};
pub use wpp::{FunctionPaths, UniquePath, Wpp};
pub use write::write;
