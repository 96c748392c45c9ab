//! Builds the path of a run, and adds it to the recording.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use afterimage_ids::FuncId;
use afterimage_present::absent;
use afterimage_profile::location::Occurrence;
use afterimage_record::{
    BuiltPaths, Cache, LivePath, PathFilter, RecordedRun, build_paths, progress_end,
};
use afterimage_replay::whole_path::{
    DynamicGraph, GraphNodes, NumberError, Numbering, RecordedPath, Whose, path_in_memory,
};
use afterimage_replay::{Recording, RecordingError};
use afterimage_trace::{Kind, TraceError, TraceFile, TraceWriter, Writer, writer};
use anyhow::{anyhow, bail};

use crate::append::append;
use crate::cancel::cancelled;
use crate::error::Reason;
use crate::monitor::{Monitor, Note, Work};
use crate::text::pasted;

/// The flag of a build that nobody can cancel. With a flag, a re-execution has a stop clock, which
/// shows its progress.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// The treatment of a path from which a filter removes everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// The empty path is added.
    Kept,
    /// The recording stays as it is.
    Refused,
}

/// The outcome of an addition to a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// This process added the data.
    Here,
    /// Another process has added data, possibly the same.
    Elsewhere,
}

/// Returns the path of a recording. If it does not exist yet, builds it, or waits for another
/// process that builds it.
pub(crate) fn ensure_path<'r>(
    recording: &'r Recording,
    filter: &PathFilter,
    monitor: &dyn Monitor,
    cancel: Option<&AtomicBool>,
) -> Result<&'r RecordedPath, Reason> {
    loop {
        match recording.path() {
            Err(RecordingError::NoPath) => {}
            found => return Ok(found?),
        }
        let added = add_path(recording, filter, Empty::Kept, monitor, cancel)?;
        match recording.path() {
            Err(RecordingError::NoPath) if added == Added::Here => {
                return Err(Reason::Gone("path"));
            }
            Err(RecordingError::NoPath) => {}
            found => return Ok(found?),
        }
    }
}

/// Reports what is missing from a path.
pub(crate) fn note_gaps(recording: &Recording, monitor: &dyn Monitor) -> Result<(), Reason> {
    let left_out = &recording.path()?.segments().directory().left_out;
    if !left_out.is_empty() {
        let note = Note::PathLacks {
            left_out: left_out.clone(),
            // A run without an end can be neither followed nor counted.
            counts: matches!(recording.newest().end(), Ok(Some(_))),
        };
        monitor.note(recording.at(), &note);
    }
    Ok(())
}

/// Refuses a path with gaps.
pub fn refuse_gaps(at: &Path, path: &RecordedPath) -> Result<(), Reason> {
    match gaps(path) {
        Some(left_out) => Err(Reason::Gaps {
            left_out: left_out.to_owned(),
            file: pasted(at),
        }),
        None => Ok(()),
    }
}

/// Refuses a recording that another process is still making: its end is unknown, and nothing may be
/// added to it.
pub(crate) fn refuse_running(recording: &Recording) -> Result<(), Reason> {
    let now = TraceFile::open(recording.at())?;
    match recorder(recording.at(), &now) {
        Some(recorder) => Err(Reason::StillRecorded(recorder)),
        None => Ok(()),
    }
}

/// Returns the process that is recording into this file, if there is one. Ignores a process that
/// adds to a cut-off recording, because that process commits the recording first.
pub(crate) fn recorder(at: &Path, file: &TraceFile) -> Option<Writer> {
    match file.state() {
        Some(_) => None,
        None => writer(at).ok().flatten(),
    }
}

/// Builds the path, and adds it to the recording.
pub(crate) fn add_path(
    recording: &Recording,
    filter: &PathFilter,
    empty: Empty,
    monitor: &dyn Monitor,
    cancel: Option<&AtomicBool>,
) -> Result<Added, Reason> {
    let (at, file) = (recording.at(), recording.newest());
    let end = file.end()?;
    if end.is_none() {
        refuse_running(recording)?;
    }
    let words = file.last_begun(Kind::PATH_WORDS);
    if end.is_none() && words.is_none() {
        return Err(Reason::CutOff);
    }
    let lost = "the path cannot be added to the recording";
    let cancel = cancel.unwrap_or(&NEVER);
    let Some(out) = append(at, &file, lost, monitor, cancel)? else {
        return Ok(Added::Elsewhere);
    };
    let total = match (words, end) {
        (None, Some(end)) => progress_end(&end),
        (words, _) => words.map(|words| words.chunks() as u64),
    };
    let built = {
        let progress = monitor.begin(Work::Path, total);
        let run = RecordedRun {
            file: &file,
            bytes: recording.bytes(),
            program: recording.program(),
            cache: &Cache::of_user(),
            progress: &progress,
            cancel: Some(cancel),
        };
        build(&run, filter, &out)?
    };
    let is_empty = built.kept == 0 && built.time > 0;
    if is_empty && empty == Empty::Refused {
        return Err(Reason::NothingKept { blocks: built.time });
    }
    out.commit()?;
    let note = Note::PathBuilt {
        blocks: built.time,
        bytes: built.stored,
        left_out: filter.left_out.clone(),
    };
    monitor.note(at, &note);
    if is_empty {
        monitor.note(at, &Note::PathEmpty { blocks: built.time });
    }
    Ok(Added::Here)
}

fn build(
    run: &RecordedRun<'_>,
    filter: &PathFilter,
    out: &TraceWriter,
) -> Result<BuiltPaths, Reason> {
    let counts = run.file.counts()?;
    let counts = counts.as_ref().map(|lens| &lens.counts);
    build_paths(run, counts, filter, out).map_err(cancelled("the path"))
}

/// Removes the path data that the live run wrote, after the path has been built from it.
/// Re-execution can write it again.
pub(crate) fn drop_words(
    at: &Path,
    monitor: &dyn Monitor,
    cancel: Option<&AtomicBool>,
) -> Result<(), Reason> {
    let file = TraceFile::open(at)?;
    let is_built = file.last(Kind::PATH_INDEX).is_some() && file.end()?.is_some();
    if !is_built || file.last_begun(Kind::PATH_WORDS).is_none() {
        return Ok(());
    }
    let stop = cancel.unwrap_or(&NEVER);
    match TraceWriter::rewrite_without(at, &[Kind::PATH_WORDS], stop) {
        // Another question is adding data to the recording, so the data stays.
        Ok(()) | Err(TraceError::BeingWritten(_)) => {}
        // The old file remains unchanged, with the path and the data that the run wrote for it.
        Err(TraceError::Stopped) => {
            let how =
                "while the path that the run wrote was being removed; it stays in the recording"
                    .to_owned();
            return Err(Reason::Cancelled { how });
        }
        Err(error) => {
            let why = error.to_string();
            monitor.note(at, &Note::WordsStay { why });
        }
    }
    Ok(())
}

/// Returns the written part of an unfinished run's path. Compacts it in memory, because the file
/// belongs to the recorder.
pub(crate) fn so_far(
    recording: &Recording,
    recorder: Writer,
    monitor: &dyn Monitor,
) -> Result<RecordedPath, Reason> {
    let file = recording.file();
    let live = LivePath::open(file, recording.bytes(), recording.program())?;
    let Some(live) = live.filter(|live| live.length() > 0) else {
        return Err(Reason::NothingYet(recorder));
    };
    let blocks = live.length();
    let note = Note::StillRecorded { recorder, blocks };
    monitor.note(recording.at(), &note);
    let progress = monitor.begin(Work::Path, Some(blocks));
    let all = live.whole(|time| progress(time))?;
    Ok(path_in_memory(file, all.directory, all.segments)?)
}

/// Reads a stretch of a path that was not built but was written during the run. See
/// [`Session::use_stretch`](crate::Session::use_stretch).
pub(crate) fn stretch<E>(
    recording: &Recording,
    wanted: impl FnOnce(u64, u64) -> Result<Option<(u64, u64)>, E>,
    failed: impl Fn(Reason) -> E,
) -> Result<Option<RecordedPath>, E> {
    let file = &recording.newest();
    if file.last(Kind::PATH_INDEX).is_some() || file.last_begun(Kind::PATH_WORDS).is_none() {
        return Ok(None);
    }
    let program = recording.program();
    let live = LivePath::open(file, recording.bytes(), program);
    let live = live.map_err(|error| failed(error.into()))?;
    let Some(live) = live else { return Ok(None) };
    let longest = program.functions.iter().map(|f| f.cfg.blocks.len()).max();
    let Some((first, last)) = wanted(live.length(), longest.unwrap_or(0) as u64)? else {
        return Ok(None);
    };
    let stretch = live.stretch(first, last);
    let stretch = stretch.map_err(|error| failed(error.into()))?;
    let path = path_in_memory(file, stretch.directory, stretch.segments);
    path.map(Some).map_err(|error| failed(error.into()))
}

/// Describes the parts that a filter left out of a path. Returns `None` if only the part after the
/// path's end is missing.
pub fn gaps(path: &RecordedPath) -> Option<&str> {
    let gaps = path.nodes().values().any(|node| node.left_out > 0);
    gaps.then_some(path.segments().directory().left_out.as_str())
}

/// Returns how the calls in the path are numbered within the whole run.
pub fn numbering(path: &RecordedPath) -> Numbering {
    Numbering::of(path.segments().directory())
}

/// Finds the call to a function that a user named. Returns its number in the path, and the number
/// of calls in the run.
///
/// # Errors
/// Returns an error if there is no such call, or the path is damaged.
pub fn which_call(
    path: &RecordedPath,
    function: FuncId,
    name: &str,
    which: Occurrence,
) -> anyhow::Result<(u64, u64)> {
    let numbering = numbering(path);
    let count = path.activations(function)?.count();
    let kept = match which {
        Occurrence::Kth(number) => numbering.kept(function, number, count),
        Occurrence::Last => numbering.last(function, count),
    };
    match kept {
        Ok(kept) => Ok((kept, numbering.calls(function, count).unwrap_or(count))),
        Err(NumberError::Never) => bail!(absent(name, &path.segments().directory().left_out)),
        Err(error) => bail!("{name}: {error}"),
    }
}

/// The subject of a dynamic control-flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphOf {
    /// A call to the function.
    Call(Occurrence),
    /// One of the function's unique path traces, by number.
    Trace(usize),
}

/// Builds the dynamic control-flow graph of a named function.
///
/// # Errors
/// Returns an error if there is no such call or trace, or the path is damaged.
pub fn dynamic_graph(
    path: &RecordedPath,
    (function, name): (FuncId, &str),
    of: GraphOf,
    nodes: GraphNodes,
) -> anyhow::Result<DynamicGraph> {
    let which = match of {
        GraphOf::Trace(trace) => {
            let graph = DynamicGraph::of_trace(path, function, trace, nodes);
            return graph.map_err(|error| anyhow!("{name}: {error}"));
        }
        GraphOf::Call(which) => which,
    };
    let (kept, calls) = which_call(path, function, name, which)?;
    let graph = DynamicGraph::of_call(path, function, kept, nodes);
    let mut graph = graph.map_err(|error| anyhow!("{name}: {error}"))?;
    if let Whose::Call { number, of, .. } = &mut graph.whose {
        *number = numbering(path).of_kept(function, kept).unwrap_or(kept);
        *of = calls;
    }
    Ok(graph)
}
