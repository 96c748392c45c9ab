//! Opening recordings for commands that look at the path of a run, and building what they need.

use std::path::Path;
use std::sync::Arc;

use afterimage_ids::FuncId;
use afterimage_present::{absent, grouped};
use afterimage_profile::{Stop, stops};
use afterimage_program::{Names, OperatorIndex, SourceMap};
use afterimage_record::LivePath;
use afterimage_replay::paths::{
    NumberError, Numbering, PathFileError, RecordedDirectory, RecordedPath, path_in_memory,
};
use afterimage_replay::values::RecordedValues;
use afterimage_replay::{Recording, RecordingError};
use afterimage_trace::{Kind, TraceFile, Writer};
use anyhow::{Context, Result, bail};

use crate::arguments::Which;
use crate::build;
use crate::input::{self, Loaded};
use crate::output::{pasted, say};
use crate::progress::Bar;

/// Opens a recording, and builds its path if that is not there yet.
pub(crate) fn traced(at: &Path) -> Result<Recording> {
    traced_with(at, build::path)
}

/// As [`traced`], for what needs all of the path.
pub(crate) fn traced_whole(at: &Path) -> Result<Recording> {
    traced_with(at, build::whole_path)
}

fn traced_with(
    at: &Path,
    path: impl FnOnce(&Path, &TraceFile, &Loaded) -> Result<RecordedPath>,
) -> Result<Recording> {
    let file = input::recording(at)?;
    let loaded = input::recorded_program(at, &file)?;
    traced_of(at, file, &loaded, path)
}

/// A recording whose program and directory were read already, with its path, which is built if it is not there yet.
pub(crate) fn traced_in(
    at: &Path,
    file: TraceFile,
    loaded: &Loaded,
    directory: Result<Option<RecordedDirectory>, PathFileError>,
) -> Result<Recording> {
    traced_of(at, file, loaded, |at, file, loaded| {
        build::path_with(at, file, loaded, directory)
    })
}

fn traced_of(
    at: &Path,
    file: TraceFile,
    loaded: &Loaded,
    path: impl FnOnce(&Path, &TraceFile, &Loaded) -> Result<RecordedPath>,
) -> Result<Recording> {
    let path = match input::recorder(at, &file) {
        Some(recorder) => so_far(at, &file, loaded, recorder)?,
        None => path(at, &file, loaded)?,
    };
    with_path(at, file, loaded, path)
}

/// A recording with this path. What is damaged at the end of its run is said now.
fn with_path(at: &Path, file: TraceFile, loaded: &Loaded, path: RecordedPath) -> Result<Recording> {
    let recording = Recording::of(at, file, Arc::clone(&loaded.module)).with_path(path);
    recording
        .stops()
        .with_context(|| at.display().to_string())?;
    Ok(recording)
}

/// The path of a run that goes on, as far as it is written: compacted in memory, for the file is not ours.
fn so_far(at: &Path, file: &TraceFile, loaded: &Loaded, recorder: Writer) -> Result<RecordedPath> {
    let name = || at.display().to_string();
    let live = LivePath::open(file, &loaded.bytes, &loaded.program).with_context(name)?;
    let Some(live) = live.filter(|live| live.length() > 0) else {
        bail!(
            "{}: it is still being recorded by another process{recorder}, and nothing of its path is there yet: with `record --lens paths` it comes by the megabyte; ask again later, or when the program has ended",
            at.display()
        );
    };
    say(format_args!(
        "{} is still being recorded by another process{recorder}: what follows is about the run up to t={}",
        at.display(),
        grouped(live.length())
    ));
    let bar = Bar::start("following the path", Some(live.length()));
    let progress = bar.progress();
    let all = live.whole(|time| progress(time)).with_context(name)?;
    path_in_memory(file, all.directory, all.segments).with_context(name)
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

/// Opens a recording whose path is not built, but was written while the program ran, and reads a stretch of that: `wanted` is told how many blocks
/// the run has, and how many one of its paths may have, and says from which to which it is to be, or that all of the path is needed. `None`
/// then, and if the path is built.
pub(crate) fn unbuilt(
    at: &Path,
    wanted: impl FnOnce(u64, u64) -> Result<Option<(u64, u64)>>,
) -> Result<Option<Recording>> {
    let name = || at.display().to_string();
    let file = input::recording(at)?;
    if file.last(Kind::PATH_INDEX).is_some() || file.last_begun(Kind::PATH_WORDS).is_none() {
        return Ok(None);
    }
    let loaded = input::recorded_program(at, &file)?;
    let live = LivePath::open(&file, &loaded.bytes, &loaded.program).with_context(name)?;
    let Some(live) = live else { return Ok(None) };
    let longest = loaded.program.functions.iter().map(|f| f.cfg.blocks.len());
    let longest = longest.max().unwrap_or(0) as u64;
    let Some((first, last)) = wanted(live.length(), longest).with_context(name)? else {
        return Ok(None);
    };
    let stretch = live.stretch(first, last).with_context(name)?;
    let path = path_in_memory(&file, stretch.directory, stretch.segments).with_context(name)?;
    with_path(at, file, &loaded, path).map(Some)
}

pub(crate) fn stops_of(file: &TraceFile, loaded: &Loaded) -> Result<Vec<Stop>> {
    let Some(end) = file.end()? else {
        return Ok(Vec::new());
    };
    let index = OperatorIndex::new(&loaded.program, &loaded.bytes);
    Ok(stops(&loaded.program, &index, &end)?)
}

/// The values of a recording, built if they are not there yet.
pub(crate) fn values(recording: &Recording) -> Result<RecordedValues<'_>> {
    let at = recording.at();
    input::ended(at)?;
    complete(at, recording.path()?).with_context(|| at.display().to_string())?;
    match recording.epochs() {
        Err(RecordingError::NoValues) => {
            let loaded = Loaded::of(recording);
            build::values(at, &recording.newest(), &loaded, recording.path()?)?;
        }
        found => {
            found.with_context(|| at.display().to_string())?;
        }
    }
    Ok(recording.values()?)
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
