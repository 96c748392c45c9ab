//! Opens recordings and times questions about them.

use std::path::Path;

use afterimage_record::measure::process_time;
use afterimage_replay::Recording;
use anyhow::{Context, Result};

/// Opens a recording that has its path.
pub(crate) fn opened(at: &Path) -> Result<Recording> {
    let recording = Recording::open(at).with_context(|| at.display().to_string())?;
    let path = recording.path().map(|_| ());
    path.with_context(|| at.display().to_string())?;
    Ok(recording)
}

/// Returns the name of a recording in reports, which is the name of its file.
pub(crate) fn name(recording: &Recording) -> String {
    let stem = recording.at().file_stem();
    stem.map_or("?".into(), |stem| stem.to_string_lossy().into_owned())
}

/// Returns a result with the seconds of processor time that computing it took.
pub(crate) fn timed<T>(does: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let start = process_time();
    let found = does()?;
    Ok((found, process_time() - start))
}
