//! Branch predictors and caches: what a program's branches, loads and stores would have met, and the histories of that, one bit an execution. These are
//! the architecture-specific information that Zhang and Gupta (2005, section 2) add to whole execution traces.
//!
//! Nothing here knows of WebAssembly. A branch is a number for its place and where it went; an access is an address and a length. What is asked
//! for is written as on a command line ([`Spec`]); a [`Predictor`] or [`Caches`] is made of that and told of one execution after the other; a
//! [`Recorder`] keeps what was missed by whom, and [`Epoch`] reads it again.
//!
//! All models are deterministic: equal inputs give equal bits on every machine.

mod branch;
mod cache;
mod history;
mod size;
mod spec;

pub use branch::{Predictor, PredictorKind, PredictorSpec, TageSpec};
pub use cache::{CacheSpec, Caches, Level, LevelSpec, Missed, Touch, Traffic};
pub use history::{
    Epoch, HistoryError, Misses, Recorder, Site, SiteEpoch, SiteKind, Summary, Tally,
};
pub use spec::{Spec, SpecError};
