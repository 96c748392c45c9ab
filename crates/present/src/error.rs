//! Defines the errors that occur when a report is written.

use std::io;

use afterimage_profile::ProfileError;
use afterimage_program::NoDebug;
use thiserror::Error;

use crate::render::Format;

/// The reason why a report cannot be written in the requested form.
#[derive(Debug, Error)]
pub enum PresentError {
    /// The report cannot be written to its receiver.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The contents cannot be derived from the profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The format shows source lines, but none are known.
    #[error("this format needs source lines: {0}, or choose another format")]
    NoSource(NoDebug),
    /// No source file matches the filter.
    #[error("no source file matches --code or --path; --code all shows all of them")]
    NoCode,
    /// A graph of several functions was requested.
    #[error("--format dot draws the call graph, or the graph of one function")]
    OneGraph,
    /// The report does not have this format.
    #[error("{report} cannot be written as {format}: choose --format text or json")]
    NoFormat {
        /// The report.
        report: &'static str,
        /// The requested format.
        format: Format,
    },
    /// The path cannot be read.
    #[error(transparent)]
    Path(Box<dyn std::error::Error + Send + Sync>),
    /// The function has no control-flow graph.
    #[error("func[{0}] is not defined in this module, so it has no graph")]
    NoGraph(u32),
}

/// Writing to a string cannot fail, so the error comes from the contents.
impl From<std::fmt::Error> for PresentError {
    fn from(error: std::fmt::Error) -> Self {
        PresentError::Io(io::Error::other(error))
    }
}

impl From<csv::Error> for PresentError {
    fn from(error: csv::Error) -> Self {
        PresentError::Io(error.into())
    }
}

impl From<serde_json::Error> for PresentError {
    fn from(error: serde_json::Error) -> Self {
        PresentError::Io(error.into())
    }
}
