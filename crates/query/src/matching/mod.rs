//! Which statements of two recorded versions of a program correspond.
//!
//! [`version`] follows a run once and makes of each statement that was executed what [`afterimage_matching`] compares: sketches of its values
//! and addresses, when it was executed, and where its operands come from. Values and the log are enough for that, and nothing of the run is kept but the sketches.

mod code;
mod collect;
mod diverge;
mod names;
mod producers;
mod regions;
mod runs;
mod truth;

pub use afterimage_matching::{
    Class, Evidence, Match, Matching, Names, Sketch, Statement, Values, Version, match_versions,
};
pub(crate) use collect::{Collected, Given, Take, Walk};
pub use collect::{Place, Sketched, version};
pub use diverge::{Divergence, OpenLog, Origin, divergences};
pub use names::same_names;
pub use runs::match_runs;
pub use truth::{Accuracy, Judged, Position, Side as TruthSide, accuracy, judge, recompiled};
