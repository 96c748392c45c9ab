//! Answers questions about the whole path of a recorded run, as stored in a file.

mod arrivals;
mod call_tree;
mod contexts;
mod file;
mod find;
mod fold;
mod grammar;
mod hot;
mod numbering;
mod own;
mod places;
mod position;
mod timeline;
mod trace;
mod traces;
mod verify;
mod window_counts;

pub use arrivals::{ArrivalTimes, ArrivedAt, LineArrivals, Step, WindowArrivals, line_arrivals};
pub use call_tree::{CallEntry, CallTree, CallsOf, kth_call};
pub use contexts::{
    Charge, Context, ContextLimits, ContextTree, Frame, InlinedFrames, Inlinee, InlineeId,
    Inlining, Payer, Rest, charged,
};
pub use file::{
    FileSegments, MakeSegment, PathFileError, PathSegment, RecordedDirectory, RecordedPath,
    coded_path, path_in_memory, path_of_stretches, recorded_directory, recorded_path,
    recorded_path_of, stretches_of_path,
};
pub use numbering::{NumberError, Numbering};
pub use places::{BlockPlace, Places};
pub use position::{At, PositionError, Positions, Prologue, time_of};
pub use timeline::{CallLengths, Merging, Timeline, TimelineEvent, TimelineLimits};
pub use trace::{TraceError, Unit, Visits, Window, last};
pub use verify::{PathFinding, PathReport, PathRule, verify_path};
pub use window_counts::WindowCounts;

pub use afterimage_wpp::twpp::{DynamicCfg, PathCounts, PathOutline, Series};
pub use afterimage_wpp::{Link, Part, Pattern, StretchDirectory, Summary};
pub use find::{Occurrence, Occurrences, OccurrencesError, PatternTextError, occurrences, pattern};
pub use fold::{Fold, Folded, fold};
pub use hot::{Code, HotError, HotPath, HotPaths, Listed};
pub use traces::{
    CountOrder, DynamicGraph, GraphError, GraphNodes, Outlines, TraceCounts, Traces, Whose,
};
