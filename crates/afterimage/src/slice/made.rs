//! Makes a slice, or finds it in the recording.

use afterimage_analyses::slices::{
    self, Algorithm, Direction, SavedSlice, SliceAbout, SliceQuery, by_statements,
};
use afterimage_replay::state::Written;
use anyhow::{Context, Result};

use super::kept;
use super::question::{in_words, question};
use super::start::SliceStart;
use crate::explain::Scene;
use crate::steps::follow_for;

/// Returns the requested slice, which is read from the recording if it is stored there.
pub(super) fn made(
    scene: &Scene<'_, '_>,
    query: &SliceQuery,
    name: Option<&str>,
) -> Result<(SavedSlice, Option<Written>)> {
    let traced = scene.traced;
    let to = SliceStart::find(scene, &query.about, query.along)?;
    let from = query.chop.as_ref().map(|at| {
        let about = SliceAbout::Statement { at: at.clone() };
        let found = SliceStart::find(scene, &about, query.along);
        found.with_context(|| format!("--chop {at}"))
    });
    let from = from.transpose()?;
    let about = in_words(query, &to, from.as_ref());
    let (offsets, written) = (to.offsets.clone(), to.written);
    let mut question = question(query, to, from);
    if query.algorithm != Algorithm::Full && !query.is_of_statements() {
        question = follow_for(traced, "finding the statements", |run, log| {
            Ok(by_statements(run, log, question)?)
        })?;
    }
    if let Some(name) = name {
        kept::free(traced, name, &question)?;
    }
    if let Some(known) = kept::known(traced, &question)? {
        let saved = SavedSlice {
            about,
            offsets,
            ..known
        };
        return Ok((saved, written));
    }
    // If only a few dependences are followed, it is not necessary to follow the run.
    let near = match (query.depth, query.direction, query.algorithm) {
        (Some(_), Direction::Backward, Algorithm::Full) => {
            let (follows, criteria) = (question.follows, &question.criteria);
            slices::near(&scene.host, traced.bytes(), follows, criteria, NEAR)?
        }
        _ => None,
    };
    let slice = match near {
        Some(slice) => slice,
        None => follow_for(traced, "slicing", |run, log| {
            let logs = [log, traced.file().log()?];
            Ok(slices::answer(run, logs, &question)?)
        })?,
    };
    let saved = SavedSlice {
        question,
        about,
        offsets,
        path: kept::identity(traced.path()?),
        slice,
    };
    Ok((saved, written))
}

/// The maximum number of executions to look up one by one.
const NEAR: usize = 10_000;
