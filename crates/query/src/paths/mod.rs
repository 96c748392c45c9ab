//! The whole path of a recorded run, as a file holds it.

mod file;

pub use file::{FileSegments, PathFileError, RecordedPath, recorded_path};
