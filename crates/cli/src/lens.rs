//! Opening recordings for commands that look at the path of a run, and building what they need.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use afterimage::{Reason, Session, SessionError, ensure_values};
use afterimage_ids::FuncId;
use afterimage_present::absent;
use afterimage_program::{Names, SourceMap};
use afterimage_replay::paths::{
    NumberError, Numbering, PathFileError, RecordedDirectory, RecordedPath, recorded_path_of,
};
use afterimage_replay::values::RecordedValues;
use afterimage_replay::{Recording, RecordingError};
use afterimage_trace::TraceFile;
use anyhow::{Context, Result, bail};

use crate::arguments::Which;
use crate::exit::Failed;
use crate::input::{self, Loaded};
use crate::output::pasted;
use crate::progress::Terminal;
use crate::signals::StopFlag;

/// Opens a recording, of which nothing is built yet.
pub(crate) fn session(at: &Path) -> Result<Session<'static>> {
    let file = input::recording(at)?;
    let module = input::recorded_program(at, &file)?.module;
    Ok(Session::of(Recording::of(at, file, module), &Terminal))
}

/// Opens a recording, and builds its path if that is not there yet.
pub(crate) fn traced(at: &Path) -> Result<Recording> {
    let session = session(at)?;
    session.ensure_path()?;
    with_stops(session)
}

/// As [`traced`], for what needs all of the path.
pub(crate) fn traced_whole(at: &Path) -> Result<Recording> {
    let session = session(at)?;
    session.ensure_whole_path()?;
    with_stops(session)
}

/// A recording whose program and directory were read already, with its path, which is built if it is not there yet.
pub(crate) fn traced_in(
    at: &Path,
    file: TraceFile,
    loaded: &Loaded,
    directory: Result<Option<RecordedDirectory>, PathFileError>,
) -> Result<Recording> {
    let path = directory.and_then(|found| recorded_path_of(&file, &loaded.program, found));
    let recording = Recording::of(at, file, Arc::clone(&loaded.module));
    // What is damaged, or lacks, is so when it is looked for again.
    if let Ok(Some(path)) = path {
        recording.use_path(path);
    }
    let session = Session::of(recording, &Terminal);
    session.ensure_path()?;
    with_stops(session)
}

/// What is damaged at the end of a run is said before anything is answered.
fn with_stops(session: Session<'_>) -> Result<Recording> {
    let recording = session.into_recording();
    let stops = recording.stops().map(|_| ());
    stops.with_context(|| recording.at().display().to_string())?;
    Ok(recording)
}

/// Refuses a path of which something was left out, without the name of its recording in front.
pub(crate) fn complete(at: &Path, path: &RecordedPath) -> Result<()> {
    if let Some(left_out) = gaps(path) {
        bail!(
            "the path lacks {left_out}, and this needs all of it; build the whole path with: afterimage build --lens paths --again {}",
            pasted(at)
        );
    }
    Ok(())
}

/// What a filter left out of a path, in words. `None` if nothing lacks but what came after its end.
pub(crate) fn gaps(path: &RecordedPath) -> Option<&str> {
    let gaps = path.nodes().values().any(|node| node.left_out > 0);
    gaps.then_some(path.segments().directory().left_out.as_str())
}

/// Opens a recording whose path is not built, but was written while the program ran, and reads a stretch of that: see [`Session::use_stretch`].
pub(crate) fn unbuilt(
    at: &Path,
    wanted: impl FnOnce(u64, u64) -> Result<Option<(u64, u64)>>,
) -> Result<Option<Recording>> {
    let wanted = |length, longest| {
        let found = wanted(length, longest);
        found.with_context(|| at.display().to_string())
    };
    let session = session(at)?;
    match session.use_stretch(wanted)? {
        true => with_stops(session).map(Some),
        false => Ok(None),
    }
}

/// The values of a recording, built if they are not there yet.
pub(crate) fn values(recording: &Recording) -> Result<RecordedValues<'_>> {
    stoppable(|stop| ensure_values(recording, &Terminal, stop))?;
    Ok(recording.values()?)
}

/// Builds something that Ctrl-C and its kin cancel.
pub(crate) fn stoppable<T>(
    build: impl FnOnce(&AtomicBool) -> Result<T, SessionError>,
) -> Result<T> {
    let stop = StopFlag::watch()?;
    build(stop.flag()).map_err(|error| match *error.why {
        Reason::Cancelled { .. } => Failed {
            exit: stop.exit(),
            error: error.into(),
        }
        .into(),
        _ => error.into(),
    })
}

/// The values of a recording, if they were built.
pub(crate) fn values_if_built(recording: &Recording) -> Result<Option<RecordedValues<'_>>> {
    match recording.values() {
        Err(RecordingError::NoValues) => Ok(None),
        found => Ok(Some(found?)),
    }
}

/// Where the code of a recording's program comes from. Prints what part of the debug information cannot be read, once.
pub(crate) fn source_map(recording: &Recording) -> SourceMap<'_> {
    input::source_map(recording.at(), recording.module())
}

/// A function that the module defines, by what a user calls it.
pub(crate) fn function(recording: &Recording, names: &Names, text: &str) -> Result<FuncId> {
    let function = names.find(text)?;
    if recording.program().function(function).is_none() {
        bail!(
            "{} is imported, so the path has nothing of it; see its callers",
            names.function(function)
        );
    }
    Ok(function)
}

/// Which calls of the whole run those of the path are.
pub(crate) fn numbering(path: &RecordedPath) -> Numbering {
    Numbering::of(path.segments().directory())
}

/// Which of a function's calls in the path is the one that a user asks for: its number there, and how many there were in the run.
pub(crate) fn which_call(
    path: &RecordedPath,
    function: FuncId,
    name: &str,
    which: Which,
) -> Result<(u64, u64)> {
    let numbering = numbering(path);
    let count = path.activations(function)?.count();
    let kept = match which {
        Which::Kth(number) => numbering.kept(function, number, count),
        Which::Last => numbering.last(function, count),
    };
    match kept {
        Ok(kept) => Ok((kept, numbering.calls(function, count).unwrap_or(count))),
        Err(NumberError::Never) => bail!(absent(name, &path.segments().directory().left_out)),
        Err(error) => bail!("{name}: {error}"),
    }
}
