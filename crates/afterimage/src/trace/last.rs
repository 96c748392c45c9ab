//! Finds the last entries of a trace.

use std::collections::VecDeque;

use afterimage_present::{CodeOf, FoldedSteps, ShownStep, Stretch, grouped};
use afterimage_profile::OwnFunctions;
use afterimage_replay::paths::PathFileError;
use afterimage_replay::paths::{FileSegments, Unit, Window, last, time_of};
use afterimage_replay::steps::{self, Run, Steps, Wanted, begin_of_last_steps};
use afterimage_trace::Kind;
use anyhow::{Context, Result, bail};

use super::{FOLDED, Shown, TraceQuery};
use crate::Session;
use crate::early::{early, ensure_for_questions, is_long};
use crate::rows::next_of;

impl TraceQuery {
    /// Like [`use_words`](Self::use_words), but for the last steps of a run that is long or has
    /// snapshots. Finds the steps by following the run from a snapshot.
    pub(super) fn use_last(
        &self,
        session: &Session,
        level: steps::Level,
        count: u64,
    ) -> Result<bool> {
        if is_long(session)? {
            ensure_for_questions(session)?;
        }
        // If the whole path exists, it is used.
        if session.newest().last(Kind::PATH_INDEX).is_some() {
            return Ok(false);
        }
        let found = early(session, |early| {
            let last = match &self.bounds.to {
                Some(to) => time_of::<PathFileError>(to, early.length())?,
                None => Some(early.length()),
            };
            let Some(last) = last else { return Ok(None) };
            let window = Window { first: 1, last };
            let wanted = Wanted {
                level,
                window,
                ..Wanted::ALL
            };
            early.last_steps(wanted, count as usize)
        });
        let found = found.with_context(|| session.at().display().to_string())?;
        Ok(found.map(|path| session.use_path(path)).is_some())
    }

    /// Returns the last rows of a stretch, in order.
    pub(super) fn last_rows(
        &self,
        shown: Shown<'_, '_>,
        run: Run<'_, FileSegments>,
        wanted: Wanted,
        (count, code): (u64, &CodeOf<'_>),
    ) -> Result<VecDeque<ShownStep>> {
        let traced = shown.program.session;
        // If the path is not compacted, only these statements were read.
        let begin = match shown.is_stretch {
            true => {
                let statements = count.max(FOLDED) as usize;
                begin_of_last_steps(run, traced.file().log()?, wanted, statements)?
            }
            false => wanted.window.first,
        };
        let mut blocks = count;
        loop {
            let found = last_shown(traced, shown.stretch, shown.own, (Unit::Block, blocks))?;
            let first = found.first.max(begin);
            let window = Window {
                first,
                ..wanted.window
            };
            let mut steps = Steps::new(run, traced.file().log()?, Wanted { window, ..wanted })?;
            let mut next = || next_of(steps.next());
            let rows = FoldedSteps::new(&mut next, Some(code)).last(count as usize)?;
            // Some blocks have no statements of this kind.
            let found = rows.len() as u64;
            if found == count || first == wanted.window.first {
                return Ok(rows);
            }
            if first == begin {
                bail!(
                    "the last {} statements have only {found} entries, because library code is \
                     folded: choose --code all, or first read the whole path with afterimage build",
                    grouped(count.max(FOLDED))
                );
            }
            blocks = blocks.saturating_mul(8);
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
