//! Finds the last entries of a trace.

use std::collections::VecDeque;

use afterimage_present::{CodeOf, FoldedSteps, ShownStep, Stretch};
use afterimage_profile::OwnFunctions;
use afterimage_replay::paths::PathFileError;
use afterimage_replay::paths::{FileSegments, Unit, Window, last, time_of};
use afterimage_replay::steps::{Run, Steps, Wanted};
use afterimage_trace::Kind;
use anyhow::{Context, Result};

use super::TraceQuery;
use crate::Session;
use crate::early::{early, ensure_for_questions, is_long};
use crate::rows::next_of;

impl TraceQuery {
    /// Like [`use_words`](Self::use_words), but for the last steps of a run that is long or has
    /// snapshots. Uses the path in stretches that are made when they are read, so that the steps
    /// are found by following the run from a snapshot near them.
    pub(super) fn use_last(&self, session: &Session) -> Result<bool> {
        if is_long(session)? {
            ensure_for_questions(session)?;
        }
        // If the whole path exists, it is used.
        if session.newest().last(Kind::PATH_INDEX).is_some() {
            return Ok(false);
        }
        let found = early(session, |early| {
            // Positions other than times may be anywhere in the run.
            let is_time = match &self.bounds.to {
                Some(to) => time_of::<PathFileError>(to, early.length())?.is_some(),
                None => true,
            };
            is_time.then(|| early.make_path()).transpose()
        });
        let found = found.with_context(|| session.at().display().to_string())?;
        Ok(found.map(|path| session.use_path(path)).is_some())
    }

    /// Returns the last rows of a stretch, in order. Reads the steps of few blocks first, and of
    /// more while rows are missing.
    pub(super) fn last_rows(
        session: &Session,
        run: Run<'_, FileSegments>,
        wanted: Wanted,
        (count, code): (u64, &CodeOf<'_>),
    ) -> Result<VecDeque<ShownStep>> {
        let all = wanted.window;
        // The first of these rows may be cut off at the beginning.
        let enough = count.saturating_add(1);
        let mut blocks = enough.saturating_mul(4);
        loop {
            let first = all.first.max(all.last.saturating_sub(blocks));
            let window = Window { first, ..all };
            let mut steps = Steps::new(run, session.file().log()?, Wanted { window, ..wanted })?;
            let mut next = || next_of(steps.next());
            let mut rows = FoldedSteps::new(&mut next, Some(code)).last(enough as usize)?;
            if rows.len() as u64 == enough {
                rows.pop_front();
                return Ok(rows);
            }
            if first == all.first {
                return Ok(rows);
            }
            blocks = blocks.saturating_mul(4);
        }
    }
}

/// Returns the end of a stretch that contains the last entries that are shown.
pub(super) fn last_shown(
    traced: &Session,
    stretch: &Stretch,
    own: Option<&OwnFunctions<'_>>,
    (unit, entries): (Unit, u64),
) -> Result<Window> {
    let (path, window) = (traced.path()?, stretch.window);
    let shown = |function| match stretch.function {
        Some(only) => function == only,
        None => own.is_none_or(|own| own.shows(function)),
    };
    let is_all = stretch.function.is_none() && own.is_none();
    let functions = traced.program().functions.iter().map(|f| f.id);
    let functions = (!is_all).then(|| functions.filter(|f| shown(*f)).collect());
    let found = last(path, window, functions, unit, entries)?;
    Ok(match found.first <= found.last {
        true => found,
        // Only library code is executed there.
        false => last(path, window, None, unit, entries)?,
    })
}
