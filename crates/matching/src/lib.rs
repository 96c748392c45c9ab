//! Finds corresponding statements of two versions of a program from the actions of their executions
//! (Zhang and Gupta 2005, section 6.2).
//!
//! Matching first compares statements by signatures. A signature is a fixed-size [sketch](Sketch)
//! of a statement's values and addresses, made in one pass. Matching then compares statements by
//! structure: the producers of their operands, the users of their results, and the order of their
//! first executions. Each round uses the matches of the previous round, until nothing changes.
//! Finally, matching compares statements in corresponding [stretches](Region) of both runs.
//!
//! Some functions of the first version [still exist as functions](standing) in the second, and the
//! others were inlined. A [`Version`] should distinguish the statements of inlined functions by the
//! surrounding calls.
//!
//! Nothing here depends on WebAssembly. The creator of a [`Version`] decides what a statement is.
//!
//! ```
//! use afterimage_matching::{Class, Sketch, Statement, Version, match_versions};
//!
//! /// A statement of function 0 that computes these values, from `first` on.
//! fn computes(values: impl IntoIterator<Item = u64>, first: u64) -> Statement {
//!     let mut sketch = Sketch::default();
//!     values.into_iter().for_each(|value| sketch.add(value));
//!     Statement {
//!         function: 0,
//!         class: Class::Compute,
//!         operator: 1,
//!         values: Box::new(sketch),
//!         operands: None,
//!         addresses: None,
//!         exact: 1,
//!         offset: 0,
//!         ordinal: first as u32,
//!         depth: 0,
//!         first,
//!         last: first + 90,
//!         active: Default::default(),
//!         producers: Box::default(),
//!         writers: Box::default(),
//!     }
//! }
//! let version = |statements| Version { statements, length: 100, ..Version::default() };
//!
//! // The second version computes the same two things the other way around.
//! let squares = || (0..50).map(|i| i * i);
//! let thirds = || (0..50).map(|i| 7 + i / 3);
//! let a = version(vec![computes(squares(), 1), computes(thirds(), 2)]);
//! let b = version(vec![computes(thirds(), 1), computes(squares(), 2)]);
//! let matching = match_versions(&a, &b, None);
//! let found: Vec<_> = matching.of_b.iter().map(|found| found.map(|found| found.a)).collect();
//! assert_eq!(found, [Some(1), Some(0)]);
//! ```

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
mod stage_record;
mod standing;
mod surroundings;
mod version;
mod votes;

pub use active::Active;
pub use evidence::{Evidence, Names, Values};
pub use features::{Column, Feature, KINDS, Stage, Weights};
pub use matching::{Match, Matcher, Matching, match_versions};
pub use region::{Instance, Region, anchors};
pub use sample::{Overlap, Sample};
pub use sketch::{ADDRESSES, Sketch, mix};
pub use stage_record::{Candidate, StageRecord};
pub use standing::standing;
pub use version::{Class, Entered, Producer, Statement, Version};
