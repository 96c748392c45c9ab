//! Records and re-executes programs. Only this crate depends on the engine.
//!
//! A recording is a log of what crossed the boundary between guest and host: the results of
//! imports, the guest bytes that the host wrote, and the growth of memories and tables. With the
//! log, the same execution repeats exactly, under any instrumentation and without the host.
//! Programs that cannot be repeated exactly are refused, with the reason.

mod cache;
mod deep;
mod effects;
mod ending;
mod engine;
mod environment;
mod error;
mod imports;
mod interrupt;
mod lens;
mod live;
pub mod measure;
mod output;
mod replay;
mod room;
mod sleep;
mod snapshots;
mod trapped;
mod values;
mod wasi;
mod watch;
mod weights;
mod whole_path;

pub use cache::Cache;
pub use effects::addresses;
pub use engine::{RECORD_STACK, engine_description, recording_engine};
pub use error::RecordError;
pub use imports::HostFunction;
pub use interrupt::Interrupt;
pub use lens::{check, check_blocks, count};
pub use live::{Command, Launch, RecordOptions, Recorded, Repeating, Uncertain, record};
pub use replay::{Progress, progress_end};
pub use snapshots::{ChangedPage, Spacing, Taken, build_debugged, build_snapshots};
pub use watch::watch;
pub use whole_path::{
    BuiltPaths, CUT, CheckedWords, Filter, GrammarSink, HandOverError, LivePath, Mark, MarkedCode,
    Nodes, PathFilter, RecordedRun, Stretch, Stretches, Traced, build_paths, trace_paths,
    verify_words,
};
