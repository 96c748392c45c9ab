//! Formats of other tools: what is drawn over time (Perfetto, Firefox Profiler), what is drawn as flames (collapsed stacks), profiles
//! (pprof, callgrind) and coverage (lcov).

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
