//! What commands that follow the run have in common.

use afterimage_replay::paths::FileSegments;
use afterimage_replay::steps::{Run, stopped_before};
use afterimage_trace::LogReader;
use anyhow::Result;

use crate::lens::{Traced, complete};
use crate::progress::Bar;

/// Lets a question follow the run, and shows how far it has come.
pub(crate) fn follow<T>(
    traced: &Traced,
    question: impl FnOnce(Run<'_, FileSegments>, LogReader) -> Result<T>,
) -> Result<T> {
    follow_for(traced, "following the run", question)
}

/// As [`follow`]; the progress bar says what for.
pub(crate) fn follow_for<T>(
    traced: &Traced,
    doing: &str,
    question: impl FnOnce(Run<'_, FileSegments>, LogReader) -> Result<T>,
) -> Result<T> {
    let bar = Bar::start(doing, Some(traced.path.length()));
    follow_telling(traced, &*bar.progress(), question)
}

/// As [`follow`]; how far it has come is told to `progress`.
pub(crate) fn follow_telling<T>(
    traced: &Traced,
    progress: &dyn Fn(u64),
    question: impl FnOnce(Run<'_, FileSegments>, LogReader) -> Result<T>,
) -> Result<T> {
    let directory = traced.path.segments().directory();
    complete(&traced.at, &traced.path)?;
    let loaded = &traced.loaded;
    let end = traced.file.end()?;
    let checkpoints = traced.checkpoints()?;
    let run = Run {
        program: &loaded.program,
        module: &loaded.bytes,
        path: &traced.path,
        continuations: &directory.continuations,
        stopped: end.and_then(|end| stopped_before(&loaded.program, &loaded.bytes, &end)),
        checkpoints: checkpoints.as_ref(),
        progress,
    };
    question(run, traced.file.log()?)
}
