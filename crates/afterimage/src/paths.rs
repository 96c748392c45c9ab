//! Answers questions about the paths that the run took.

use afterimage_ids::FuncId;
use afterimage_present::{PathNames, PathsDocument, PathsJson, outlines_document, paths_document};
use afterimage_profile::{CodeFilter, Folded, OwnFunctions, Source};
use afterimage_program::Names;
use afterimage_replay::whole_path::{
    Code, CountOrder, HotPaths, Listed, Outlines, RecordedPath, TraceCounts, Traces, occurrences,
    pattern,
};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::path::numbering;

/// Asks which paths the run took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathsQuery {
    /// The question about the paths.
    pub about: PathsAbout,
    /// The only function to include, if one is given.
    pub function: Option<String>,
    /// The maximum number of entries.
    pub top: Option<usize>,
    /// The maximum number of blocks to list for each path trace, without its compacted form. If no
    /// number is given, all blocks and the compacted form are listed.
    pub blocks: Option<usize>,
    /// The code whose functions are included. If the program has none of this code, all code is
    /// included.
    pub code: CodeFilter,
}

/// A question about paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathsAbout {
    /// The number of path traces of each function, in this order. For a single function, the traces
    /// themselves.
    Traces(CountOrder),
    /// The acyclic stretches that were executed most often.
    Hot,
    /// The places in the path where the blocks of a pattern such as `main:2.3>f:0.1` were executed
    /// one after another.
    Occurrences(String),
}

/// The default maximum number of occurrences. A run may have billions.
const OCCURRENCES: usize = 1000;

impl PathsQuery {
    /// Returns the answer. Builds the path if it does not exist yet.
    pub(crate) fn document(&self, session: &Session) -> Result<PathsDocument> {
        let (PathsAbout::Traces(_), Some(function), Some(most)) =
            (&self.about, &self.function, self.blocks)
        else {
            return self.answer(session, |found, names| Ok(paths_document(found, names)));
        };
        let source = session.source_map();
        let names = session.program_names();
        let function = defined(session, names, function)?;
        let path = session.ensure_path()?;
        let shown = PathNames {
            names,
            source,
            own: None,
            left_out: &path.segments().directory().left_out,
        };
        let outlines = Outlines::of(path, function, most, None)?;
        Ok(outlines_document(&outlines, self.top, shown))
    }

    /// Passes the answer, with all blocks of each path trace, to `ask`. Checks the question first,
    /// and then builds the path if it does not exist yet.
    ///
    /// # Errors
    /// Returns an error if the function or block does not exist, if the recording is damaged, or if
    /// `ask` fails.
    pub fn answer<R>(
        &self,
        session: &Session,
        ask: impl FnOnce(PathsJson<'_>, PathNames<'_>) -> Result<R>,
    ) -> Result<R> {
        let program = session.program();
        let source = session.source_map();
        let names = session.program_names();
        let function = self.function.as_deref();
        let function = function.map(|text| defined(session, names, text));
        let function = function.transpose()?;
        let wanted = match &self.about {
            PathsAbout::Occurrences(text) => Some(pattern(text, function, program, names, source)?),
            _ => None,
        };
        let path = session.ensure_path()?;
        let folded = Folded::if_any(source, &self.code);
        let own = OwnFunctions::new(&folded, program, names);
        let is_own = !folded.shows_all() && function.is_none();
        let listed = Listed {
            function,
            shows: &|one| !is_own || own.shows(one),
            top: self.top,
        };
        let shown = PathNames {
            names,
            source,
            own: is_own.then_some(&own),
            left_out: &path.segments().directory().left_out,
        };
        if let Some(pattern) = wanted {
            let most = self.top.unwrap_or(OCCURRENCES);
            let found = occurrences(path, pattern, most, &numbering(path), names)?;
            return ask(PathsJson::Found(&found), shown);
        }
        match (&self.about, function) {
            (PathsAbout::Hot, _) => {
                let source: &dyn Source = if is_own { &folded } else { source };
                let hot = hot(session, source, path, listed)?;
                ask(PathsJson::Hot(&hot), shown)
            }
            (_, Some(function)) => {
                let traces = Traces::of(path, function)?;
                let count = self.top.unwrap_or(usize::MAX).min(traces.len());
                ask(PathsJson::Traces(&traces, 0..count), shown)
            }
            (PathsAbout::Traces(order), None) => {
                let counts = TraceCounts::of(path, *order, self.top, listed.shows)?;
                ask(PathsJson::Counts(&counts), shown)
            }
            (PathsAbout::Occurrences(_), None) => bail!("no blocks are given"),
        }
    }
}

/// Returns the function with a name or index. Refuses imported functions, which have no blocks.
fn defined(session: &Session, names: &Names, text: &str) -> Result<FuncId> {
    let function = names.find(text, session.source_map())?;
    if session.program().function(function).is_none() {
        bail!("{} is imported, so it has no paths", names.short(function));
    }
    Ok(function)
}

fn hot(
    recording: &Session,
    source: &dyn Source,
    path: &RecordedPath,
    listed: Listed<'_>,
) -> Result<HotPaths> {
    if recording.file().end()?.is_none() {
        bail!("the recording was cut off before its end was written; record the program again");
    }
    let code = Code {
        program: recording.program(),
        module: recording.bytes(),
        source,
    };
    let continuations = &path.segments().directory().continuations;
    let stops = recording.stops()?;
    Ok(HotPaths::of(path, continuations, code, stops, listed)?)
}
