//! The whole path of a recorded run, as a file holds it.

mod arrivals;
mod call_tree;
mod file;
mod find;
mod fold;
mod hot;
mod places;
mod position;
mod trace;
mod traces;
mod verify;

pub use call_tree::{CallEntry, CallTree, CallsOf, kth_call};
pub use file::{FileSegments, PathFileError, RecordedPath, recorded_path};
pub use verify::{PathFinding, PathReport, PathRule, verify_path};
pub use places::{BlockPlace, Places};
pub use position::{PositionError, Positions};
pub use trace::{TraceError, Unit, Visits, Window, last};

pub use afterimage_wpp::twpp::{DynamicCfg, PathCounts, Series};
pub use afterimage_wpp::{Part, Pattern};
pub use find::{Occurrence, Occurrences, OccurrencesError, PatternTextError, occurrences, pattern};
pub use fold::{Fold, Folded, fold};
pub use hot::{HotError, HotPath, HotPaths};
pub use traces::{CountOrder, DynamicGraph, GraphError, GraphNodes, TraceCounts, Traces, Whose};
