//! Simulates branch predictors and caches over a program's branches, loads and stores. The crate
//! also stores histories, which record for each execution whether it was a hit or a miss. Zhang and
//! Gupta (2005, section 2) add this architecture-specific information to whole execution traces.
//!
//! This crate does not depend on WebAssembly. A branch is a place and an outcome, and an access is
//! an address and a length. A [`Spec`] describes the simulation in the syntax of the command line.
//! It configures a [`Predictor`] or [`Caches`], which take one execution after another. A
//! [`Recorder`] stores the misses of each site, and an [`Epoch`] reads them.
//!
//! All models are deterministic, so equal inputs give equal bits on every machine.
//!
//! ```
//! use afterimage_simulate::{Caches, Misses, Predictor, Recorder, Epoch, Spec};
//!
//! // A loop of four iterations, run again and again: a predictor with a history learns its branch.
//! let Spec::Branches(gshare) = "--branch-predictor gshare:bits=14,history=12,targets=9".parse()?
//! else {
//!     unreachable!()
//! };
//! let mut predictor = Predictor::new(&gshare);
//! let wrong = |times: usize, predictor: &mut Predictor| {
//!     (0..times).filter(|i| !predictor.conditional(7, i % 4 != 3)).count()
//! };
//! assert!(wrong(100, &mut predictor) > 0);
//! assert_eq!(wrong(100, &mut predictor), 0);
//!
//! // 256 bytes in lines of 64, two ways: lines 0, 2 and 4 share a set and do not all fit.
//! let Spec::Caches(small) = "--cache 256,2,64".parse()? else { unreachable!() };
//! let mut caches = Caches::new(&small);
//! let mut history = Recorder::new(false);
//! history.expect(1);
//! for address in [0, 8, 128, 256, 0] {
//!     history.record(0, caches.access(address, 8, false).first > 0, false);
//! }
//! // All five accesses of site 0 missed, except the second.
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
