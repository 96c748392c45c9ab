//! Dropping from a recording what can be made again.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use afterimage_record::engine_description;
use afterimage_trace::{Kind, TraceFile, TraceWriter};

use crate::append::append;
use crate::error::{Reason, SessionError};
use crate::monitor::Monitor;
use crate::path::recorder;

/// Sections that can be made again from the rest of a recording.
const MADE: [Kind; 15] = [
    Kind::COUNTS,
    Kind::PATHS,
    Kind::PATH_INDEX,
    Kind::PATH_WORDS,
    Kind::PATH_GRAMMARS,
    Kind::VALUES,
    Kind::VALUES_INDEX,
    Kind::CHECKPOINTS,
    Kind::PRINTED,
    Kind::SIMULATION,
    Kind::SLICE,
    Kind::SNAPSHOTS,
    Kind::STRETCHES,
    Kind::WRITTEN,
    Kind::OPEN,
];

/// How many bytes a recording had, and has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripped {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// Drops from a recording what can be made again. The rest is checked first, and written to a new file, which then replaces the old one. A recording that has nothing to drop is not touched. Linear in what is kept.
///
/// # Errors
/// If the recording was cut off or made with another engine, so that nothing can be made again; if it is damaged or cannot be written, or the program still runs.
pub fn strip(at: &Path, monitor: &dyn Monitor) -> Result<Stripped, SessionError> {
    stripped(at, monitor).map_err(|why| SessionError::new(at, why))
}

fn stripped(at: &Path, monitor: &dyn Monitor) -> Result<Stripped, Reason> {
    let file = TraceFile::open(at)?;
    if let Some(recorder) = recorder(at, &file) {
        return Err(Reason::StillRecorded(recorder));
    }
    if file.end()?.is_none() {
        return Err(Reason::NotAgain("it was cut off".to_owned()));
    }
    let engine = file.meta()?.engine;
    if engine != engine_description() {
        let other = format!("it was made with another engine, {engine}");
        return Err(Reason::NotAgain(other));
    }
    let mut is_bare = true;
    for mut section in (0..).map_while(|position| file.section(position)) {
        if MADE.contains(&section.kind()) {
            is_bare = false;
            continue;
        }
        while section.advance()? {}
    }
    let length = || fs::metadata(at).map_or(0, |file| file.len());
    let before = length();
    if !is_bare || file.ignored_bytes() > 0 {
        // This fails if the file cannot be written, or unknown bytes follow the recording.
        let lost = "nothing can be dropped from the recording";
        append(at, &file, lost, monitor, &AtomicBool::new(false))?;
    }
    if !is_bare {
        TraceWriter::rewrite_without(at, &MADE)?;
    }
    Ok(Stripped {
        before,
        after: length(),
    })
}
