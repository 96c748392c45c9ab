//! Simulates branch predictors and caches. The machine follows a run, and the models receive its
//! branches and memory accesses.
//!
//! There are three kinds of *branch*. A `br_if` or an `if` has a direction, depending on whether
//! the condition was true. A `br_table` has a target. A call through a table or a reference has a
//! callee. (An `if` whose two directions lead to the same place does not count.) An *access* is a
//! load, a store or a bulk operator of linear memory. Locals, globals and the operand stack count
//! as registers, because compiled code mostly keeps them in registers. Accesses by the host are
//! left out. The place of a branch is its operator's offset in the module.
//!
//! ```no_run
//! use afterimage_analyses::simulate::{SiteKind, Spec, stored_simulation};
//! use afterimage_trace::TraceFile;
//!
//! // What `afterimage simulate app.aft --cache 32k,8,64` put into the file.
//! let file = TraceFile::open("app.aft".as_ref())?;
//! let spec: Spec = "--cache 32k,8,64".parse()?;
//! let stored = stored_simulation(&file, &spec)?.ok_or("it was not simulated yet")?;
//! let loads = stored.summary.sum(|kind| kind == SiteKind::Load);
//! println!("{} of {} loads missed", loads.missed, loads.executions);
//! // Which executions of the first site did.
//! stored.runs(0, |run| {
//!     println!("from #{} on {} {:?}", run.first, run.count, run.outcome);
//!     std::ops::ControlFlow::Continue(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod history;
mod plan;
mod producers;
mod rows;
mod run;
mod stored;
mod verify;
mod watch;

pub use afterimage_simulate::{
    CacheSpec, Caches, Epoch, HistoryError, LevelSpec, Misses, Predictor, PredictorKind,
    PredictorSpec, Site, SiteKind, Spec, SpecError, Summary, Tally, Traffic,
};
pub use error::SimulateError;
pub use history::{OneOutcome, Outcome, OutcomeRun};
pub use producers::{Producer, producers};
pub use rows::{MissRows, MissesBy, MissesPlace, MissesRow};
pub use run::{Keep, simulate};
pub use stored::{
    DamagedSimulation, SimulationWriter, StoredError, StoredSimulation, StoredSimulations,
    stored_simulation, stored_simulations,
};
pub use verify::{Followed, SimulationsReport, verify_followed, verify_simulations};
