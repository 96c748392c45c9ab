//! Drops parts of a recording: data that can be rebuilt, or the program's input.
//!
//! The input is the boundary log, with every byte that the host wrote: data read from files and
//! standard input, the time and random numbers. The arguments, the environment and the names of
//! folders are also input. Without the input, no run can be repeated. Data that reveals the input
//! in another form is also removed, such as values, snapshots, accesses, slices, simulations and
//! embedded sources. Replacing the input with other bytes was rejected, because answers would be
//! wrong. Only listed sections stay, so unknown sections of a later version are also removed.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use afterimage_record::engine_description;
use afterimage_trace::{Kind, TraceError, TraceFile, TraceWriter};

use crate::append::append;
use crate::error::{Reason, SessionError};
use crate::monitor::Monitor;
use crate::path::recorder;
use crate::text::pasted;

/// Sections that can be rebuilt from the rest of a recording.
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

/// Sections that stay when the input is dropped.
const KEPT: [Kind; 7] = [
    Kind::META,
    Kind::MODULE,
    Kind::END,
    Kind::COUNTS,
    Kind::PATHS,
    Kind::PATH_INDEX,
    Kind::PATH_GRAMMARS,
];

/// The size of a recording in bytes, before and after parts were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripped {
    /// The size before the parts were dropped.
    pub before: u64,
    /// The size after the parts were dropped.
    pub after: u64,
}

/// Drops the parts of a recording that can be rebuilt. Checks the rest first and writes it to a new
/// file, which then replaces the old one. Leaves the recording alone if there is nothing to drop.
/// Linear in the kept data.
///
/// # Errors
/// Returns an error if nothing can be rebuilt, because the recording was cut off, lacks its input,
/// or was made with another engine. Other causes are a damaged recording, a failure to write, a
/// program that is still running, and `stop`.
pub fn strip(
    at: &Path,
    monitor: &dyn Monitor,
    stop: &AtomicBool,
) -> Result<Stripped, SessionError> {
    stripped(at, monitor, stop).map_err(|why| SessionError::new(at, why))
}

fn stripped(at: &Path, monitor: &dyn Monitor, stop: &AtomicBool) -> Result<Stripped, Reason> {
    let file = TraceFile::open(at)?;
    if let Some(recorder) = recorder(at, &file) {
        return Err(Reason::StillRecorded(recorder));
    }
    if file.end()?.is_none() {
        return Err(Reason::NotAgain("it was cut off".to_owned()));
    }
    let meta = file.meta()?;
    if meta.is_without_inputs() {
        let without = "the program's input was stripped".to_owned();
        return Err(Reason::NotAgain(without));
    }
    let engine = meta.engine;
    if engine != engine_description() {
        let other = format!("it was made with another engine, {engine}");
        return Err(Reason::NotAgain(other));
    }
    rewritten(
        at,
        &file,
        (monitor, stop),
        |kind| !MADE.contains(&kind),
        || TraceWriter::rewrite_without(at, &MADE, stop),
    )
}

/// The parts that a recording keeps without the program's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Whether the recording has counts.
    pub counts: bool,
    /// Whether the recording has the path.
    pub path: bool,
}

/// Drops the program's input from a recording, and everything that reveals it. The run can then no
/// longer be executed again. The counts and the path stay if they were built. Checks the rest first
/// and writes it to a new file, which then replaces the old one. Linear in the kept data.
///
/// # Errors
/// Returns an error if there are neither counts nor a path, the recording was cut off, is damaged
/// or cannot be written, the program is still running, or `stop` is set.
pub fn strip_inputs(
    at: &Path,
    monitor: &dyn Monitor,
    stop: &AtomicBool,
) -> Result<(Stripped, Kept), SessionError> {
    without_inputs(at, monitor, stop).map_err(|why| SessionError::new(at, why))
}

/// Returns what would stay without the program's input.
///
/// # Errors
/// Returns an error if there are neither counts nor a path, the recording was cut off or is
/// damaged, or the program is still running.
pub fn kept_without_inputs(at: &Path) -> Result<Kept, SessionError> {
    let file = TraceFile::open(at).map_err(Reason::from);
    let kept = file.and_then(|file| kept(at, &file));
    kept.map_err(|why| SessionError::new(at, why))
}

fn kept(at: &Path, file: &TraceFile) -> Result<Kept, Reason> {
    if let Some(recorder) = recorder(at, file) {
        return Err(Reason::StillRecorded(recorder));
    }
    if file.end()?.is_none() {
        return Err(Reason::CutOffWithInputs);
    }
    let has = |kind| file.last(kind).is_some();
    let kept = Kept {
        counts: has(Kind::COUNTS),
        path: has(Kind::PATHS) && has(Kind::PATH_INDEX),
    };
    if !kept.counts && !kept.path {
        return Err(Reason::NothingToKeep(pasted(at)));
    }
    Ok(kept)
}

fn without_inputs(
    at: &Path,
    monitor: &dyn Monitor,
    stop: &AtomicBool,
) -> Result<(Stripped, Kept), Reason> {
    let file = TraceFile::open(at)?;
    let kept = kept(at, &file)?;
    let meta = file.meta()?.without_inputs();
    let stripped = rewritten(
        at,
        &file,
        (monitor, stop),
        |kind| KEPT.contains(&kind),
        || TraceWriter::rewrite_as(at, &meta, &KEPT, stop),
    )?;
    Ok((stripped, kept))
}

/// Rewrites a recording if it contains parts to drop. First reads the remaining parts completely.
fn rewritten(
    at: &Path,
    file: &TraceFile,
    (monitor, stop): (&dyn Monitor, &AtomicBool),
    stays: impl Fn(Kind) -> bool,
    rewrite: impl FnOnce() -> Result<(), TraceError>,
) -> Result<Stripped, Reason> {
    let mut is_bare = true;
    for mut section in (0..).map_while(|position| file.section(position)) {
        if !stays(section.kind()) {
            is_bare = false;
            continue;
        }
        while section.advance()? {
            if stop.load(Ordering::SeqCst) {
                return Err(Reason::NotRemoved);
            }
        }
    }
    let length = || fs::metadata(at).map_or(0, |file| file.len());
    let before = length();
    if !is_bare || file.ignored_bytes() > 0 {
        // This fails if the file cannot be written, or unknown bytes follow the recording.
        let lost = "nothing can be removed from the recording";
        append(at, file, lost, monitor, stop).map_err(not_removed)?;
    }
    if !is_bare {
        rewrite().map_err(|error| not_removed(error.into()))?;
    }
    Ok(Stripped {
        before,
        after: length(),
    })
}

/// Maps all errors that mean that the work was stopped to one error.
fn not_removed(why: Reason) -> Reason {
    match why {
        Reason::Cancelled { .. } | Reason::File(TraceError::Stopped) => Reason::NotRemoved,
        why => why,
    }
}
