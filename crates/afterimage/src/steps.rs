//! Follows a run for questions that need all of it.

use afterimage_replay::steps::Run;
use afterimage_replay::whole_path::FileSegments;
use afterimage_trace::LogReader;
use anyhow::Result;

use crate::Session;
use crate::monitor::Work;
use crate::path::{gaps, refuse_gaps};

/// Lets a question follow the run, and reports progress to the session's monitor.
///
/// # Errors
/// Returns an error if the path has gaps, the recording is damaged, or the question fails.
pub fn follow<T>(
    session: &Session,
    question: impl FnOnce(Run<'_, FileSegments>, LogReader) -> Result<T>,
) -> Result<T> {
    follow_for(session, "following the run", question)
}

/// Like [`follow`], but `doing` states the purpose.
///
/// # Errors
/// Returns the same errors as [`follow`].
pub fn follow_for<T>(
    session: &Session,
    doing: &'static str,
    question: impl FnOnce(Run<'_, FileSegments>, LogReader) -> Result<T>,
) -> Result<T> {
    let length = session.path()?.length();
    let progress = session.monitor().begin(Work::Question(doing), Some(length));
    follow_telling(session, &*progress, question)
}

/// Like [`follow`], but `progress` receives the progress.
///
/// # Errors
/// Returns the same errors as [`follow`].
pub fn follow_telling<T>(
    session: &Session,
    progress: &dyn Fn(u64),
    question: impl FnOnce(Run<'_, FileSegments>, LogReader) -> Result<T>,
) -> Result<T> {
    let path = session.path()?;
    let mut run = session.run_from_checkpoints()?;
    // A path with gaps is followed from the snapshot before each stretch. A whole path is followed
    // from its beginning, because questions about it may need earlier writers of bytes.
    if gaps(path).is_some() {
        run.snapshots = session.snapshots()?;
    }
    if run.snapshots.is_none() {
        refuse_gaps(session.at(), path)?;
    }
    let run = Run { progress, ..run };
    question(run, session.file().log()?)
}
