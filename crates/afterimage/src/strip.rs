//! Dropping from a recording what can be made again.

use std::fs;
use std::path::Path;

use afterimage_record::engine_description;
use afterimage_trace::{Kind, TraceFile, TraceWriter};

use crate::error::{Reason, SessionError};

/// What is made of a run by executing or following it again.
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

/// Drops everything from a recording but what the run itself left: questions make it again when they need it. The file is replaced when the new one is complete. Linear in what is kept.
///
/// # Errors
/// If the recording was cut off or is of another engine, so that nothing can be made again; if it is damaged or cannot be written, or another process adds to it.
pub fn strip(at: &Path) -> Result<Stripped, SessionError> {
    stripped(at).map_err(|why| SessionError::new(at, why))
}

fn stripped(at: &Path) -> Result<Stripped, Reason> {
    let file = TraceFile::open(at)?;
    if file.end()?.is_none() {
        return Err(Reason::NotAgain("it was cut off".to_owned()));
    }
    let engine = file.meta()?.engine;
    if engine != engine_description() {
        return Err(Reason::NotAgain(format!("it was recorded with {engine}")));
    }
    let length = || fs::metadata(at).map_or(0, |file| file.len());
    let before = length();
    TraceWriter::rewrite_without(at, &MADE)?;
    Ok(Stripped {
        before,
        after: length(),
    })
}
