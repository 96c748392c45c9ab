//! Writes answers row by row, because an answer may have billions of rows.

use std::error::Error;
use std::io::Write;

use afterimage_present::{Content, PresentError, Style, narrow};
use anyhow::Result;

/// The form in which rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text for people.
    Text,
    /// One object per line.
    Json,
    /// Fixed-size records for other programs: see docs/TRACE.md.
    Bin,
}

impl Form {
    /// Returns whether the rows are text or binary.
    pub fn content(self) -> Content {
        match self {
            Self::Text | Self::Json => Content::Text,
            Self::Bin => Content::Binary,
        }
    }
}

/// The destination of an answer. It is opened only when the answer exists.
pub trait Output {
    /// Writes a report.
    ///
    /// # Errors
    /// Returns an error if `report` fails, or its output cannot be written.
    fn write(
        &self,
        content: Content,
        report: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
    ) -> Result<()>;
}

/// The destination and form of rows.
pub struct Rows<'o> {
    pub output: Box<dyn Output + 'o>,
    pub form: Form,
    pub style: Style,
    /// The maximum number of rows.
    pub limit: Option<u64>,
}

/// Converts an error in following a run, for the writer of rows.
pub(crate) fn next_of<T, E: Error + Send + Sync + 'static>(
    found: std::result::Result<T, E>,
) -> std::result::Result<T, PresentError> {
    found.map_err(|error| PresentError::Path(Box::new(error)))
}

/// The options with which to see more rows than the text form shows.
pub(crate) const MORE: &str = "--limit N, or -o FILE";

impl Rows<'_> {
    /// Lets `report` write rows. `report` returns whether there are further rows, and `more` says
    /// how to see them.
    pub(crate) fn write(
        &self,
        more: &str,
        mut report: impl FnMut(&mut dyn Write) -> Result<bool, PresentError>,
    ) -> Result<()> {
        self.output.write(self.form.content(), &mut |out| {
            let mut told = |out: &mut dyn Write| {
                if report(out)? {
                    writeln!(out, "… and more: see them with {more}")?;
                }
                Ok(())
            };
            match self.form {
                Form::Text => narrow(out, self.style, told),
                Form::Json | Form::Bin => told(out),
            }
        })
    }
}
