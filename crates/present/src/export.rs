//! Writes the formats of other tools: timelines (Perfetto, Firefox Profiler), flame graphs
//! (collapsed stacks), profiles (pprof, callgrind) and coverage (lcov).

mod callgrind;
mod collapsed;
mod firefox;
mod frames;
mod lcov;
mod perfetto;
mod pprof;
mod protobuf;
mod speedscope;
mod stacks;
mod timeline;

pub use callgrind::{callgrind, callgrind_calls};
pub use collapsed::collapsed;
pub use firefox::firefox;
pub use frames::Frames;
pub use lcov::lcov;
pub use perfetto::perfetto;
pub use pprof::{pprof, pprof_stacks};
pub use speedscope::speedscope;
pub use timeline::TimelineHead;
