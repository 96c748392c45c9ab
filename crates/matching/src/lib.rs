//! Which statements of two versions of a program correspond, found from what their executions did (Zhang and Gupta 2005, section 6.2).
//!
//! First by signatures: fixed-size [sketches](Sketch) of the values that a statement gave and the addresses that it accessed, made in one pass. Then by
//! structure: who makes the operands of a statement, who uses what it gives, and in which order statements are first executed. Each round takes
//! what the one before found into account, until nothing changes. Then by [stretches](Region) of both runs that correspond.
//!
//! Which functions of the first version [stand by themselves](standing) in the second tells which statements should be told apart by the calls around them.
//!
//! Nothing here knows WebAssembly: whoever makes a [`Version`] decides what a statement is.

mod active;
mod both;
mod candidates;
mod chain;
mod classes;
mod evidence;
mod features;
mod matching;
mod order;
mod region;
mod rounds;
mod same_code;
mod sample;
mod set;
mod sketch;
mod standing;
mod surroundings;
mod told;
mod version;
mod votes;

pub use active::Active;
pub use evidence::{Evidence, Names, Values};
pub use features::{Column, Feature, KINDS, Stage, Weights};
pub use matching::{Match, Matcher, Matching, match_versions};
pub use region::{Instance, Region, anchors};
pub use sample::{Found, Sample};
pub use sketch::{ADDRESSES, Sketch, mix};
pub use standing::standing;
pub use told::{Candidate, Told};
pub use version::{Class, Entered, Producer, Statement, Version};
