//! What commands that follow the run have in common.

use afterimage_replay::Recording;
use afterimage_replay::paths::FileSegments;
use afterimage_replay::steps::Run;
use afterimage_trace::LogReader;
use anyhow::Result;

use crate::lens::complete;
use crate::progress::Bar;

/// Lets a question follow the run, and shows how far it has come.
pub(crate) fn follow<T>(
    traced: &Recording,
    question: impl FnOnce(Run<'_, FileSegments>, LogReader) -> Result<T>,
) -> Result<T> {
    follow_for(traced, "following the run", question)
}

/// As [`follow`]; the progress bar says what for.
pub(crate) fn follow_for<T>(
    traced: &Recording,
    doing: &str,
    question: impl FnOnce(Run<'_, FileSegments>, LogReader) -> Result<T>,
) -> Result<T> {
    let bar = Bar::start(doing, Some(traced.path()?.length()));
    follow_telling(traced, &*bar.progress(), question)
}

/// As [`follow`]; how far it has come is told to `progress`.
pub(crate) fn follow_telling<T>(
    traced: &Recording,
    progress: &dyn Fn(u64),
    question: impl FnOnce(Run<'_, FileSegments>, LogReader) -> Result<T>,
) -> Result<T> {
    complete(traced.at(), traced.path()?)?;
    let run = Run {
        progress,
        ..traced.run_from_checkpoints()?
    };
    question(run, traced.file().log()?)
}
