//! Finished structs → text, JSON, and other tools' formats. Everything is written to
//! the receiver that the caller gives; nothing here prints or opens a file.

mod annotate;
mod callgrind;
mod csv;
mod dot;
mod error;
mod json;
mod lcov;
mod listing;
mod number;
mod pprof;
mod protobuf;
mod sources;
mod table;
mod text;
mod trace;

pub use annotate::{Annotation, annotate};
pub use callgrind::callgrind;
pub use csv::csv;
pub use dot::{calls_dot, cfg_dot, cfg_text};
pub use error::PresentError;
pub use json::json;
pub use lcov::lcov;
pub use pprof::pprof;
pub use sources::{NoSources, Sources};
pub use table::Style;
pub use text::text;
pub use trace::{
    CallSource, Scene, Stretch, TraceLevel, calls_binary, calls_in_json, calls_in_text, trace_binary,
    trace_json, trace_text,
};
