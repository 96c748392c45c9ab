//! Opens recordings for commands about the path of a run, and builds the data that they need.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use afterimage::check::Needs;
use afterimage::explain::{Scene, explain_with};
use afterimage::{QuestionError, Reason, Session, SessionError};
use afterimage_replay::values::RecordedValues;
use afterimage_replay::{Recording, RecordingError};
use anyhow::{Context, Result};

use crate::exit::Failed;
use crate::output;
use crate::progress::Terminal;
use crate::signals::StopFlag;

/// Opens a recording without building anything.
pub(crate) fn session(at: &Path) -> Result<Session> {
    Session::open_with(at, Terminal)
}

/// Like [`session`], for questions that need the end of the run.
pub(crate) fn finished(at: &Path) -> Result<Session> {
    Session::open_finished(at, Terminal)
}

/// Builds the path if it does not exist yet. Reports damage at the end of the run before any
/// answer.
pub(crate) fn build_path(session: &Session) -> Result<()> {
    session.ensure_path()?;
    check_stops(session)
}

/// Like [`build_path`], for questions that need the whole path.
pub(crate) fn build_whole_path(session: &Session) -> Result<()> {
    session.ensure_whole_path()?;
    check_stops(session)
}

/// Like [`build_whole_path`], but also builds the values. Ctrl-C cancels the build.
pub(crate) fn build_values(session: &Session) -> Result<()> {
    build_whole_path(session)?;
    ensure_values(session)
}

/// Returns the session after building the whole path.
pub(crate) fn with_whole_path(session: Session) -> Result<Session> {
    build_whole_path(&session)?;
    Ok(session)
}

/// Returns the session after building the values.
pub(crate) fn with_values(session: Session) -> Result<Session> {
    build_values(&session)?;
    Ok(session)
}

/// Answers a question from stretches of the run if they suffice. Otherwise, builds all values
/// first.
pub(crate) fn answered<R>(
    session: &Session,
    mut ask: impl FnMut(&Session) -> Result<R, QuestionError>,
) -> Result<R> {
    Ok(session.answer(Needs::Values, build_values, |session| Ok(ask(session)?))?)
}

/// Opens a recording, and builds its path if it does not exist yet.
pub(crate) fn traced(at: &Path) -> Result<Session> {
    let session = session(at)?;
    build_path(&session)?;
    Ok(session)
}

/// Like [`traced`], for questions that need the whole path.
pub(crate) fn traced_whole(at: &Path) -> Result<Session> {
    with_whole_path(session(at)?)
}

/// Opens the data that a question about a recording needs, building it if necessary, and asks the
/// question.
pub(crate) fn opened<R>(
    session: &Session,
    ask: impl FnOnce(&Scene<'_, '_>) -> Result<R>,
) -> Result<R> {
    explain_with(session, values, ask)
}

/// Reports damage at the end of the run before any answer is given.
pub(crate) fn check_stops(session: &Session) -> Result<()> {
    let stops = session.stops().map(drop);
    stops.with_context(|| session.at().display().to_string())
}

/// Returns the values of a recording. Builds them if they do not exist yet.
pub(crate) fn values(session: &Session) -> Result<RecordedValues<'_>> {
    ensure_values(session)?;
    Ok(session.values()?)
}

/// Runs a build. Ctrl-C and similar signals cancel it.
pub(crate) fn stoppable<T>(
    build: impl FnOnce(&AtomicBool) -> Result<T, SessionError>,
) -> Result<T> {
    let stop = StopFlag::watch()?;
    build(stop.flag()).map_err(|error| if_stopped(&stop, error))
}

/// Adds the exit code to the error of cancelled work.
pub(crate) fn if_stopped(stop: &StopFlag, error: SessionError) -> anyhow::Error {
    match *error.why {
        Reason::Cancelled { .. } | Reason::NotRemoved => Failed {
            exit: stop.exit(),
            error: error.into(),
        }
        .into(),
        _ => error.into(),
    }
}

/// Returns the values of a recording, if they were built.
pub(crate) fn values_if_built(recording: &Recording) -> Result<Option<RecordedValues<'_>>> {
    match recording.values() {
        Err(RecordingError::NoValues) => Ok(None),
        found => Ok(Some(found?)),
    }
}

/// Builds the values of a recording that lacks them. Ctrl-C cancels the build.
pub(crate) fn ensure_values(session: &Session) -> Result<()> {
    stoppable(|stop| session.ensure_values(stop))
}

/// Reports requested sources that were not found, and sources that are damaged.
pub(crate) fn say_not_at_hand(session: &Session) {
    output::say_not_at_hand(session.sources().paths(), session.code());
}
