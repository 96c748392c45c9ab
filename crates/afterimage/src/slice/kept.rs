//! Stores slices in the recording, and finds stored slices.

use afterimage_analyses::slices::{Question, SavedSlice, save, saved_slices};
use afterimage_replay::whole_path::RecordedPath;
use afterimage_trace::TraceFile;
use anyhow::{Context, Error, Result, anyhow, bail};

use crate::Session;
use crate::append::append_to;

/// Parses a name for a stored slice.
///
/// # Errors
/// Returns an error if the text cannot be the name of a slice.
pub fn name(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) || text.is_empty() || text.len() > 255 {
        Err("a name must have 1 to 255 bytes, and no control characters".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// Returns an identifier of the run's path, because stored questions refer to the path's nodes.
pub(super) fn identity(path: &RecordedPath) -> (u64, u64) {
    (path.length(), path.nodes().len() as u64)
}

/// Finds a stored slice that already answers a question.
pub(super) fn known(traced: &Session, question: &Question) -> Result<Option<SavedSlice>> {
    let all = saved_slices(traced.file(), traced.program())?;
    let path = identity(traced.path()?);
    let answers = |saved: &SavedSlice| saved.question == *question && saved.path == path;
    Ok(all.into_values().flatten().find(answers))
}

/// Finds the slice with a name.
pub(super) fn named(traced: &Session, name: &str) -> Result<SavedSlice> {
    let mut all = saved_slices(traced.file(), traced.program())?;
    match all.remove(name) {
        Some(saved) => saved.with_context(|| format!("the slice {name:?}")),
        None if all.is_empty() => {
            bail!("it has no slices yet; keep one with --save NAME")
        }
        None => bail!(
            "it has no slice {name:?}; its slices are: {}",
            Vec::from_iter(all.into_keys()).join(", ")
        ),
    }
}

/// Refuses a name that belongs to another slice.
pub(super) fn free(traced: &Session, name: &str, question: &Question) -> Result<()> {
    let all = saved_slices(traced.file(), traced.program())?;
    match all.get(name) {
        Some(Ok(saved))
            if saved.question != *question || saved.path != identity(traced.path()?) =>
        {
            Err(is_taken(name, saved))
        }
        _ => Ok(()),
    }
}

fn is_taken(name: &str, saved: &SavedSlice) -> Error {
    anyhow!(
        "another slice is kept under the name {name:?}: {}; choose another name",
        saved.about
    )
}

/// Stores a slice under a name.
pub(super) fn keep(traced: &Session, name: &str, saved: &SavedSlice) -> Result<()> {
    let at = traced.at();
    loop {
        let file = TraceFile::open(at)?;
        let all = saved_slices(&file, traced.program())?;
        let known = all.get(name).and_then(|known| known.as_ref().ok());
        if let Some(known) = known {
            if known.question != saved.question || known.path != saved.path {
                return Err(is_taken(name, known));
            }
            // The same slice may be stored with different words for its question.
            if known.slice == saved.slice {
                return Ok(());
            }
        }
        let lost = "the slice cannot be kept in the recording";
        if let Some(out) = append_to(at, &file, lost, traced.monitor())? {
            save(&out, name, saved)?;
            out.commit()?;
            return Ok(());
        }
    }
}
