//! Compares recordings: of the same program, of two versions of it, or of failing and passing
//! executions.

mod counts;
pub mod rank;
pub mod same;
pub mod slices;
pub mod versions;

use afterimage_analyses::diff::{Alike, alike};
use afterimage_present::{DiffDocument, NoSources, Style, VersionsDocument};
use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::Session;
use same::{SameQuery, same};

/// Asks where two runs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffQuery {
    /// Whether to also compare how often lines were executed.
    pub lines: bool,
    /// The maximum number of rows in each list.
    pub top: Option<usize>,
}

/// The differences between two runs.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Differences {
    /// The first difference between the runs. The programs are the same, or alike.
    Runs(Box<DiffDocument>),
    /// The statements of two versions whose results differ.
    Versions(Box<VersionsDocument>),
}

/// The way to compare the programs of two recordings.
pub enum Programs {
    /// Step by step, because the programs are the same.
    Same,
    /// Step by step, because the programs are the same except for these differences.
    Alike(Alike),
    /// By corresponding statements, because the programs are two versions.
    Versions,
}

impl Programs {
    /// Chooses how to compare the programs of two recordings.
    pub fn of([a, b]: [&Session; 2]) -> Self {
        if a.bytes() == b.bytes() {
            return Self::Same;
        }
        let [a, b] = [a, b].map(|session| (session.program(), session.bytes()));
        alike(a, b).map_or(Self::Versions, Self::Alike)
    }
}

impl DiffQuery {
    pub(crate) fn answer(self, sessions: [&Session; 2]) -> Result<Differences> {
        let alike = match Programs::of(sessions) {
            Programs::Same => None,
            Programs::Alike(alike) => Some(alike),
            Programs::Versions => {
                return versions::versions(sessions, self.top, |view| {
                    Ok(Differences::Versions(Box::new(view.document()?)))
                });
            }
        };
        let query = SameQuery {
            lines: self.lines,
            top: self.top,
            sources: &NoSources,
            style: Style::default(),
        };
        same(sessions, alike, &query, |view| {
            Ok(Differences::Runs(Box::new(view.document()?)))
        })
    }
}
