//! Record a run of a WebAssembly program once, then ask anything about it.
//!
//! A [`Recording`] only reads. A [`Session`] owns a recording and builds missing data: the path of
//! the run, and its values. To do so, it runs the program again with the recorded input, so the run
//! is the same.
//!
//! ```no_run
//! use afterimage::{Session, WhyAbout, WhyQuery, why::Byte};
//!
//! // Why did the program print this byte?
//! let session = Session::open("app.aft".as_ref())?;
//! let report = session.why(&WhyQuery::new(WhyAbout::Output(Byte::Line(2))))?;
//! for entry in report.entries {
//!     println!("{entry:?}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each question is a plain struct that can be serialised, and so is each report. [`present`]
//! defines how a report is shown.
//!
//! | question | answer |
//! |---|---|
//! | [`ProfileQuery`] | [`Session::execution_counts`]: how often code was executed |
//! | [`ProfileQuery`] | [`Session::compare_counts`]: the same, compared with another run |
//! | [`WhyQuery`] | [`Session::why`]: where a value came from |
//! | [`WhyNotQuery`] | [`Session::why_not`]: why a place was not executed |
//! | [`DepsQuery`] | [`Session::deps`]: what an execution depends on, or what depends on it |
//! | [`SliceQuery`] | [`Session::slice`]: the same, including indirect dependences |
//! | [`NearQuery`] | [`Session::near`]: the nearest lines that an execution depends on |
//! | [`DecisionsQuery`] | [`Session::decisions`]: the branches that caused blocks to be executed |
//! | [`StateQuery`] | [`Session::state`]: the call stack and the variables at a moment |
//! | [`ValuesQuery`] | [`Session::statement_values`]: the values of statements |
//! | [`VariableQuery`] | [`Session::variable_values`]: the values of a variable over time |
//! | [`MemoryQuery`] | [`Session::memory`]: the contents of memory, its writers and readers |
//! | [`TraceQuery`] | [`Session::trace`]: what was executed, in order |
//! | [`ActivationQuery`] | [`Session::activation`]: what one execution of a function did |
//! | [`PathsQuery`] | [`Session::paths`]: the paths that the run took |
//! | [`AddressesQuery`] | [`Session::addresses`]: the addresses of loads and stores |
//! | a place, or none | [`Session::address_stats`]: a summary of these addresses |
//! | [`DataflowQuery`] | [`Session::dataflow`]: whether a fact held, and what decided it |
//! | [`RedundancyQuery`] | [`Session::redundancy`]: redundant loads and computations |
//! | [`SimulateQuery`] | [`Session::simulate`]: simulated misses of predictors and caches |
//! | [`CallsQuery`] | [`Session::calls`]: who called whom, how often and for how long |
//! | [`RankQuery`] | [`Session::rank`]: what separates failing executions from passing ones |
//! | [`DiffQuery`] | [`Session::diff`]: where two runs differ |
//! | [`SourceQuery`] | [`Session::source`]: a source file with counts |
//! | [`FilesQuery`] | [`Session::files`]: the list of source files |
//! | [`OutputQuery`] | [`Session::output`]: what was printed, and when |
//! | [`ExecutionsQuery`] | [`Session::executions`]: when a place was executed |
//! | [`MomentQuery`] | [`Session::moment`]: the name of a moment |
//! | [`StepQuery`] | [`Session::step`]: the moment to which a move leads |
//! | [`MatchQuery`] | [`Session::matching`]: which statements of two versions correspond |
//! | [`CurrencyQuery`] | [`Session::currency`]: whether a variable in optimised code is current |

mod activation;
#[doc(hidden)]
pub mod addresses;
mod append;
#[doc(hidden)]
pub mod calls;
mod cancel;
#[doc(hidden)]
pub mod check;
#[doc(hidden)]
pub mod compared;
#[doc(hidden)]
pub mod counted;
mod counts;
#[doc(hidden)]
pub mod currency;
mod dataflow;
mod debug_information;
pub mod debugger;
mod deps;
#[doc(hidden)]
pub mod destination;
#[doc(hidden)]
pub mod diff;
mod early;
mod ended;
mod error;
#[doc(hidden)]
pub mod explain;
#[doc(hidden)]
pub mod explore;
#[doc(hidden)]
pub mod export;
#[doc(hidden)]
pub mod files;
mod filters;
#[doc(hidden)]
pub mod grants;
#[doc(hidden)]
pub mod harness;
#[doc(hidden)]
pub mod info;
mod inputs;
#[doc(hidden)]
pub mod instrument;
#[doc(hidden)]
pub mod launch;
mod libtest;
mod lines;
pub mod memory;
mod monitor;
#[doc(hidden)]
pub mod named;
mod opened_file;
mod own;
#[doc(hidden)]
pub mod path;
mod paths;
#[doc(hidden)]
pub mod places;
mod questions;
mod range;
#[doc(hidden)]
pub mod recorded;
mod redundancy;
#[doc(hidden)]
pub mod requests;
#[doc(hidden)]
pub mod rows;
mod session;
#[doc(hidden)]
pub mod settings;
#[doc(hidden)]
pub mod simulate;
#[doc(hidden)]
pub mod slice;
mod source;
pub mod sources;
mod state;
#[doc(hidden)]
pub mod steps;
#[doc(hidden)]
pub mod strip;
#[doc(hidden)]
pub mod text;
#[doc(hidden)]
pub mod trace;
pub mod values;
pub mod verify;
mod wasm_local;
mod whole;
pub mod why;
mod why_not;

pub use activation::ActivationQuery;
pub use addresses::AddressesQuery;
pub use afterimage_analyses as analyses;
pub use afterimage_analyses::slices::{SliceAbout, SliceAlong, SliceQuery};
pub use afterimage_present as present;
pub use afterimage_present::{
    DepsAlong, DepsDirection, DepsReport, SliceReport, StateView, WhyNotReport,
};
pub use afterimage_profile as profile;
pub use afterimage_record::Progress;
pub use afterimage_replay::{Recording, RecordingError};
pub use append::append_to;
pub use calls::CallsQuery;
pub use cancel::Cancel;
pub use counted::ProfileQuery;
pub use counts::{CounterPlacement, Counting};
pub use currency::question::CurrencyQuery;
pub use dataflow::DataflowQuery;
pub use deps::DepsQuery;
pub use diff::rank::RankQuery;
pub use diff::versions::MatchQuery;
pub use diff::{DiffQuery, Differences};
#[doc(hidden)]
pub use early::Snapshotting;
pub use error::{QuestionError, Reason, SessionError};
pub use explore::{ExecutionsQuery, FilesQuery, MomentQuery, OutputQuery, SourceQuery, StepQuery};
pub use filters::{Beyond, Filters};
pub use memory::{MemoryBytes, MemoryQuery};
pub use monitor::{Monitor, Note, Silent, Work};
pub use opened_file::OpenedFile;
pub use path::Empty;
pub use paths::{PathsAbout, PathsQuery};
pub use redundancy::RedundancyQuery;
pub use session::Session;
pub use simulate::SimulateQuery;
pub use slice::{NearLine, NearLines, NearQuery, Ran};
pub use source::{parse_module, source_map, without_lines};
pub use state::StateQuery;
pub use trace::{Bounds, Level, TraceQuery, TraceReport};
pub use values::{Adds, KeptValues, ValuesQuery, VariableQuery};
pub use why::{DecisionsQuery, WhyAbout, WhyQuery, WhyReport};
pub use why_not::WhyNotQuery;
