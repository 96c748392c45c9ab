//! Handles the path of a run, from the words that its probes write to the consumers of its paths.

mod buffer;
mod build;
mod filter;
mod grammar;
mod guard;
mod lens;
mod live;
mod probes;
mod regenerate;
mod stretches;
mod words;

pub use buffer::HandOverError;
pub(crate) use buffer::{Message, Producer};
pub(crate) use build::recorded_finish;
pub use build::{BuiltPaths, CUT, PathFilter, build_paths};
pub use filter::{Filter, Mark, MarkedCode};
pub use grammar::{GrammarSink, Nodes};
pub(crate) use lens::ends_inside;
pub use lens::{RecordedRun, Traced, trace_paths};
pub use live::{CheckedWords, LivePath, Stretch, verify_words};
pub(crate) use probes::{HasPaths, PathHost, say_number};
pub(crate) use regenerate::{Consumed, consume};
pub use stretches::Stretches;
pub(crate) use words::{SnapshotFn, WordReader, WordWriter};

/// The number of words in each half of the ring. They take 1 MiB and describe about ten million
/// blocks.
pub(crate) const HALF_WORDS: u32 = 1 << 17;
