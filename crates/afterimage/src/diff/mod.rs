//! Recordings compared: of the same program, of two versions of it, of executions that failed and others that passed.

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

/// Where do two executions differ?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffQuery {
    /// How often lines were executed, too.
    pub lines: bool,
    /// The greatest number of rows in each list.
    pub top: Option<usize>,
}

/// How two executions differ.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Differences {
    /// What the runs do differently first. The programs are the same, or alike.
    Runs(Box<DiffDocument>),
    /// Which statements of two versions compute something else.
    Versions(Box<VersionsDocument>),
}

/// How the programs of two recordings are compared.
pub enum Programs {
    /// Side by side, because they are the same.
    Same,
    /// Side by side, because they are the same but for this.
    Alike(Alike),
    /// By which statements correspond.
    Versions,
}

impl Programs {
    /// How those of two recordings are.
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
