//! Refuses invalid questions before anything is built for them, because building may take minutes.

use afterimage_analyses::why::{Printed, Stream};
use afterimage_profile::Resolver;
use afterimage_profile::location::ResolveError;
use afterimage_trace::{Ending, Kind};
use anyhow::{Context, Result, bail};

use crate::Session;
use crate::places::is_moment;
use crate::text::pasted;

/// The parts of a recording that a question reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The path.
    Path,
    /// The path and the values.
    Values,
}

/// Refuses places that the program does not have, if data for the question must still be built.
/// Does not check moments, because that needs the path.
///
/// # Errors
/// Returns an error if a place is not in the program.
pub fn places<'t>(
    session: &Session,
    needs: Needs,
    texts: impl IntoIterator<Item = &'t str>,
) -> Result<()> {
    let mut texts = texts.into_iter().filter(|text| !is_moment(text)).peekable();
    if texts.peek().is_none() || is_built(session, needs) {
        return Ok(());
    }
    let source = session.source_map();
    let names = session.program_names();
    let resolver = Resolver::new(session.program(), session.bytes(), names, source);
    for text in texts {
        if let Err(
            error @ (ResolveError::Name(_)
            | ResolveError::Line(_)
            | ResolveError::Imported(_)
            | ResolveError::NoOperator { .. }),
        ) = resolver.location(text)
        {
            return Err(error).with_context(|| session.at().display().to_string());
        }
    }
    Ok(())
}

/// Refuses a run that returned, was stopped from outside, or ended with a failed host call.
/// Suggests another question.
///
/// # Errors
/// Returns an error if nothing killed the program, or the data about the end of the run is damaged.
pub fn killed(session: &Session, instead: &str) -> Result<()> {
    let file = session.at();
    let end = session.file().end();
    let end = end.with_context(|| file.display().to_string())?;
    match end.map(|end| end.ending) {
        Some(Ending::Returned) => bail!(
            "{}: the run returned and was not killed; {instead}",
            file.display()
        ),
        Some(ending @ (Ending::Interrupted { .. } | Ending::HostError { .. })) => bail!(
            "{}: the run {ending}: nothing in the program caused that; see: afterimage state \
             --at end {}",
            file.display(),
            pasted(file)
        ),
        _ => Ok(()),
    }
}

/// Refuses a run that did not fail. Suggests a value of this run to explain instead.
///
/// # Errors
/// Returns an error if the program succeeded or was stopped from outside, or the recording is
/// damaged.
pub fn failed(session: &Session) -> Result<()> {
    let file = session.at();
    let end = session.file().end();
    let end = end.with_context(|| file.display().to_string())?;
    let ended = match end.map(|end| end.ending) {
        Some(ending @ (Ending::Returned | Ending::Exited { code: 0 })) => {
            format!("the run {ending}")
        }
        None => "the recording does not contain the end of the run".to_owned(),
        Some(_) => return killed(session, ""),
    };
    let (named, pasted) = (file.display(), pasted(file));
    let printed = [(Stream::Output, "--stdout"), (Stream::Error, "--stderr")];
    for (stream, option) in printed {
        if has_printed(session, &stream).with_context(|| named.to_string())? {
            bail!(
                "{named}: {ended}: nothing failed; to explain its last line of output: afterimage \
                 why {pasted} {option} line:last"
            );
        }
    }
    bail!(
        "{named}: {ended}: nothing failed, and nothing was printed; name what to explain with --at"
    )
}

/// Whether the run wrote any bytes to a stream.
fn has_printed(session: &Session, stream: &Stream) -> Result<bool> {
    let mut printed = Printed::new(session.file(), &session.program().imports)?;
    while let Some(put) = printed.next(stream)? {
        if put.bytes > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether all the needed data is already built.
pub fn is_built(session: &Session, needs: Needs) -> bool {
    let kinds: &[Kind] = match needs {
        Needs::Path => &[Kind::PATH_INDEX],
        Needs::Values => &[Kind::PATH_INDEX, Kind::VALUES_INDEX],
    };
    let file = session.file();
    kinds.iter().all(|kind| file.last(*kind).is_some())
}
