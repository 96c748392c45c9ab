//! Finds the last entries of a trace.

use std::collections::{HashSet, VecDeque};

use afterimage_present::{CodeOf, FoldedSteps, ShownStep, Stretch};
use afterimage_profile::OwnFunctions;
use afterimage_replay::steps::{Run, Wanted};
use afterimage_replay::whole_path::PathFileError;
use afterimage_replay::whole_path::{FileSegments, Unit, Window, last, time_of};
use afterimage_trace::Kind;
use anyhow::{Context, Result};

use super::TraceQuery;
use super::skip::SkippingSteps;
use crate::Session;
use crate::early::{early, ensure_for_questions, is_long};

impl TraceQuery {
    /// Like [`use_words`](Self::use_words), but for the last steps of a run that is long or has
    /// snapshots. Uses a path whose stretches are made on demand, so that the steps are found by
    /// following the run from a snapshot near them.
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
            let [_, (_, last)] = self.bounds.in_time(self.direction());
            let is_time = match last {
                Some(to) => time_of::<PathFileError>(to, early.length())?.is_some(),
                None => true,
            };
            is_time.then(|| early.make_path()).transpose()
        });
        let found = found.with_context(|| session.at().display().to_string())?;
        Ok(found.map(|path| session.use_path(path)).is_some())
    }

    /// Returns the last rows of a stretch, in order. Reads the steps of few blocks first. While
    /// rows are missing, begins at earlier blocks of shown code.
    pub(super) fn last_rows(
        session: &Session,
        run: Run<'_, FileSegments>,
        wanted: Wanted,
        own: &OwnFunctions<'_>,
        (count, code): (u64, &CodeOf<'_>),
    ) -> Result<VecDeque<ShownStep>> {
        let (path, all) = (session.path()?, wanted.window);
        let functions = session.program().functions.iter().map(|f| f.id);
        let shown = HashSet::from_iter(functions.filter(|f| own.shows(*f)));
        // The first of these rows may be cut off at the beginning.
        let enough = count.saturating_add(1);
        // A block usually has several rows.
        let mut blocks = enough.div_ceil(4);
        let mut first = all
            .first
            .max(all.last.saturating_sub(enough.saturating_mul(4)));
        loop {
            let window = Window { first, ..all };
            let wanted = Wanted { window, ..wanted };
            let steps = SkippingSteps::new(session, Some(own), run, (wanted, false))?;
            let (mut next, mut skip) = (|| steps.next(), |time| steps.skip(time));
            let rows = FoldedSteps::new(&mut next, Some(code)).skipping(&mut skip);
            let mut rows = rows.last(enough as usize)?;
            if rows.len() as u64 == enough {
                rows.pop_front();
                return Ok(rows);
            }
            if first == all.first {
                return Ok(rows);
            }
            let before = Window {
                last: first - 1,
                ..all
            };
            let found = last(path, before, Some(shown.clone()), Unit::Block, blocks)?;
            // If only library code precedes `first`, the first row includes all of it.
            first = match found.first <= found.last {
                true => found.first,
                false => all.first,
            };
            blocks = blocks.saturating_mul(4);
        }
    }
}

/// Returns the final part of a stretch, which contains the last `entries` shown entries.
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
        // The stretch executes only library code.
        false => last(path, window, None, unit, entries)?,
    })
}
