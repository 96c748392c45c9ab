//! Finds slices: the direct and indirect dependences or dependents of an execution.

mod kept;
mod made;
mod near;
mod question;
mod start;

use std::collections::BTreeSet;

use afterimage_analyses::slices::{Edge, SavedSlice, SliceCounts, SliceQuery, exercised_of};
use afterimage_ids::OrigOffset;
use afterimage_present::SliceReport;
use afterimage_profile::{CodeFilter, Line, operator_texts};
use afterimage_program::{Names, SourceMap};
use afterimage_replay::state::Written;
use anyhow::{Result, bail};

use crate::Session;
use crate::explain::{Scene, explain};
use crate::sources::SourceFiles;
use crate::steps::follow_for;
pub use kept::name;
use made::made;
pub use near::{NearLine, NearLines, NearQuery, Ran};

/// A requested slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The answer to a question.
    Answer(SliceQuery),
    /// The slice stored in the recording under this name.
    Kept(String),
}

/// A slice that was found, in its recording.
pub struct FoundSlice<'f, 'a> {
    session: &'a Session,
    names: &'f Names,
    source: &'f SourceMap<'a>,
    /// The recording with the data that the question needs, or `None` for a stored slice.
    pub scene: Option<&'f Scene<'f, 'a>>,
    saved: SavedSlice,
    written: Option<Written>,
}

/// Reads a slice from the recording, or computes it if the recording does not contain it, and
/// passes the slice to `ask`. `name` is the name under which the slice will be stored later.
/// Refuses the name of another slice before making the slice. The path must exist. For a question,
/// the values must exist, too.
///
/// # Errors
/// Returns an error if there is no such place or execution, no slice has the name, the recording is
/// damaged, or `ask` fails.
pub fn find<R>(
    session: &Session,
    wanted: &Wanted,
    name: Option<&str>,
    ask: impl FnOnce(&FoundSlice<'_, '_>) -> Result<R>,
) -> Result<R> {
    let query = match wanted {
        Wanted::Answer(query) => query,
        Wanted::Kept(name) => {
            let source = session.source_map();
            return ask(&FoundSlice {
                session,
                names: session.program_names(),
                source,
                scene: None,
                saved: kept::named(session, name)?,
                written: None,
            });
        }
    };
    if let Some(why) = query.refusal() {
        bail!("{why}");
    }
    explain(session, |scene| {
        let (saved, written) = made(scene, query, name)?;
        ask(&FoundSlice {
            session: scene.traced,
            names: scene.names,
            source: scene.source(),
            scene: Some(scene),
            saved,
            written,
        })
    })
}

impl FoundSlice<'_, '_> {
    /// Returns the program's source files.
    pub fn sources(&self) -> &SourceFiles {
        self.session.sources()
    }

    /// Reports the contents of the slice.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn report(&self) -> Result<SliceReport> {
        let program = self.session.program();
        let operators = self.session.operators();
        let path = self.session.path()?;
        let counts = SliceCounts::new(&self.saved.slice, program, path, &operators)?;
        let lines = self.saved.offsets.iter();
        let lines = lines.filter_map(|&offset| self.source.locate(offset).map(Line::from));
        let mut lines = Vec::from_iter(lines);
        lines.sort_unstable();
        Ok(SliceReport::new(
            &counts,
            self.saved.about.clone(),
            &lines,
            self.written,
            self.source,
            self.names,
        ))
    }

    /// Returns the filter for the user's own code.
    pub fn code(&self) -> &CodeFilter {
        self.session.code()
    }

    /// Finds the dependences between statements that occurred in the run, for a graph. Follows the
    /// run.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn edges(&self) -> Result<BTreeSet<Edge>> {
        follow_for(self.session, "collecting dependences", |run, log| {
            Ok(exercised_of(run, log, &self.saved.question)?)
        })
    }

    /// Returns the text of each of the first statements in the slice.
    ///
    /// # Errors
    /// Returns an error if the module cannot be read.
    pub fn texts(&self, report: &SliceReport, first: usize) -> Result<Vec<String>> {
        let shown = report.statements.iter().take(first);
        let offsets = Vec::from_iter(shown.map(|one| OrigOffset(one.offset)));
        let mut sorted = offsets.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let texts = operator_texts(self.session.bytes(), &sorted)?;
        let of = |offset| {
            let at = sorted.binary_search(offset).ok()?;
            texts.get(at).cloned()
        };
        Ok(offsets
            .iter()
            .map(|at| of(at).unwrap_or_default())
            .collect())
    }

    /// Stores the slice in the recording under a name.
    ///
    /// # Errors
    /// Returns an error if the name belongs to another slice, or nothing can be added to the file.
    pub fn keep(&self, name: &str) -> Result<()> {
        kept::keep(self.session, name, &self.saved)
    }
}
