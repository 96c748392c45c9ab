//! Branch predictors and caches: what a program's branches, loads and stores would have met, and the histories of that, one bit an execution. These are
//! the architecture-specific information that Zhang and Gupta (2005, section 2) add to whole execution traces.
//!
//! Nothing here knows of WebAssembly. A branch is a number for its place and where it went; an access is an address and a length. What is asked
//! for is written as on a command line ([`Spec`]); a [`Predictor`] or [`Caches`] is made of that and told of one execution after the other; a
//! [`Recorder`] keeps what was missed by whom, and [`Epoch`] reads it again.
//!
//! All models are deterministic: equal inputs give equal bits on every machine.
//!
//! ```
//! use afterimage_simulate::{Caches, Misses, Predictor, Recorder, Epoch, Spec};
//!
//! // A loop that runs four times, again and again: its branch, at place 7, is learnt by a predictor with a history.
//! let Spec::Branches(gshare) = "--branch-predictor gshare:bits=14,history=12,targets=9".parse()? else {
//!     unreachable!()
//! };
//! let mut predictor = Predictor::new(&gshare);
//! let wrong = |times: usize, predictor: &mut Predictor| {
//!     (0..times).filter(|i| !predictor.conditional(7, i % 4 != 3)).count()
//! };
//! assert!(wrong(100, &mut predictor) > 0);
//! assert_eq!(wrong(100, &mut predictor), 0);
//!
//! // 256 bytes in lines of 64, two ways: five lines that all fall into the same set do not stay there.
//! let Spec::Caches(small) = "--cache 256,2,64".parse()? else { unreachable!() };
//! let mut caches = Caches::new(&small);
//! let mut history = Recorder::new(false);
//! history.expect(1);
//! for address in [0, 8, 128, 256, 0] {
//!     history.record(0, caches.access(address, 8, false).first > 0, false);
//! }
//! // Of the five accesses of site 0 all missed but the second, and that is kept as five bits.
//! let kept = history.cut().expect("something was recorded");
//! let epoch = Epoch::open(&kept, false)?;
//! let mut misses = Misses::default();
//! epoch.get(0).expect("the site was there").misses(0, &mut misses)?;
//! assert_eq!(misses.first, [1, 3, 4, 5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
