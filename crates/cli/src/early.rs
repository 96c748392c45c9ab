//! What can be refused before anything is built, which may take minutes.

use std::path::Path;

use afterimage::places::is_moment;
use afterimage_profile::Resolver;
use afterimage_profile::location::ResolveError;
use afterimage_trace::{Ending, Kind, TraceFile};
use anyhow::{Context, Result, bail};

use crate::build::Lens;
use crate::input::{self, Loaded};
use crate::output::pasted;

/// Refuses places that the program does not have, if something that is needed is still to be built. What is a moment is known when there is a path.
pub(crate) fn places<'t>(
    file: &Path,
    needed: Lens,
    texts: impl IntoIterator<Item = &'t str>,
) -> Result<()> {
    let mut texts = texts.into_iter().filter(|text| !is_moment(text)).peekable();
    if texts.peek().is_none() {
        return Ok(());
    }
    let Some((_, loaded)) = unbuilt(file, needed)? else {
        return Ok(());
    };
    let source = loaded.source_map();
    let names = loaded.names(&source);
    let resolver = Resolver::new(&loaded.program, &loaded.bytes, &names, &source);
    for text in texts {
        if let Err(
            error @ (ResolveError::Name(_)
            | ResolveError::Line(_)
            | ResolveError::Imported(_)
            | ResolveError::NoOperator { .. }),
        ) = resolver.location(text)
        {
            return Err(error).with_context(|| file.display().to_string());
        }
    }
    Ok(())
}

/// Refuses a run that nothing killed, and says what to ask instead; and one that was stopped from outside, or by the host.
pub(crate) fn killed(file: &Path, instead: &str) -> Result<()> {
    let end = input::recording(file)?.end();
    let end = end.with_context(|| file.display().to_string())?;
    match end.map(|end| end.ending) {
        Some(Ending::Returned) => bail!(
            "{}: the run was not killed: it returned; {instead}",
            file.display()
        ),
        Some(ending @ (Ending::Interrupted { .. } | Ending::HostError { .. })) => bail!(
            "{}: the run {ending}: nothing in the program is to blame; see: afterimage state --at end {}",
            file.display(),
            pasted(file)
        ),
        _ => Ok(()),
    }
}

/// The recording and its program, if what is needed is still to be built.
pub(crate) fn unbuilt(file: &Path, needed: Lens) -> Result<Option<(TraceFile, Loaded)>> {
    let recording = input::recording(file)?;
    let kinds: &[Kind] = match needed {
        Lens::Paths => &[Kind::PATH_INDEX],
        Lens::Full => &[Kind::PATH_INDEX, Kind::VALUES_INDEX],
    };
    if kinds.iter().all(|kind| recording.last(*kind).is_some()) {
        return Ok(None);
    }
    let loaded = input::recorded_program(file, &recording)?;
    Ok(Some((recording, loaded)))
}
