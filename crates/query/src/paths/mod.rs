//! The whole path of a recorded run, as a file holds it.

mod file;
mod verify;

pub use file::{FileSegments, PathFileError, RecordedPath, recorded_path};
pub use verify::{PathFinding, PathReport, PathRule, verify_path};
