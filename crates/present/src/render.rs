//! Shows any report in a format, and writes it to a receiver.

use std::fmt;
use std::io::Write;

use crate::{PresentError, Style, narrow};

/// A format of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Text,
    /// JSON for programs: a document that docs/JSON.md describes.
    Json,
    /// Comma-separated values, for spreadsheets.
    Csv,
    /// A graph for Graphviz.
    Dot,
    /// An HTML page.
    Html,
    /// Coverage for genhtml and editors.
    Lcov,
    /// A profile for callgrind_annotate and KCachegrind.
    Callgrind,
    /// A profile for pprof.
    Pprof,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Text => "text",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Dot => "dot",
            Format::Html => "html",
            Format::Lcov => "lcov",
            Format::Callgrind => "callgrind",
            Format::Pprof => "pprof",
        })
    }
}

/// A report that can be written in some of the formats. All reports support text and JSON.
pub trait Render {
    /// The name of the report in the message that refuses a format: "a slice".
    const NAME: &'static str;

    /// Writes the report as text for people.
    ///
    /// # Errors
    /// Returns an error if `out` fails, or data to be shown cannot be read.
    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError>;

    /// Writes the report as a JSON document.
    ///
    /// # Errors
    /// Returns an error if `out` fails, or data to be shown cannot be read.
    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError>;

    /// Writes the report as comma-separated values.
    ///
    /// # Errors
    /// Returns an error if the report does not support this format, `out` fails, or data to be
    /// shown cannot be read.
    fn csv(&self, _: &mut dyn Write) -> Result<(), PresentError> {
        Err(self.refuse(Format::Csv))
    }

    /// Writes the report as a graph.
    ///
    /// # Errors
    /// Returns an error if the report does not support this format, `out` fails, or data to be
    /// shown cannot be read.
    fn dot(&self, _: &mut dyn Write) -> Result<(), PresentError> {
        Err(self.refuse(Format::Dot))
    }

    /// Writes the report as an HTML page.
    ///
    /// # Errors
    /// Returns an error if the report does not support this format, `out` fails, or data to be
    /// shown cannot be read.
    fn html(&self, _: &mut dyn Write) -> Result<(), PresentError> {
        Err(self.refuse(Format::Html))
    }

    /// Writes the report in a format that only other tools read.
    ///
    /// # Errors
    /// Returns an error if the report does not support this format, `out` fails, or data to be
    /// shown cannot be read.
    fn export(&self, _: &mut dyn Write, format: Format) -> Result<(), PresentError> {
        Err(self.refuse(format))
    }

    /// Returns the error for a format that the report does not support.
    fn refuse(&self, format: Format) -> PresentError {
        PresentError::NoFormat {
            report: Self::NAME,
            format,
        }
    }
}

/// Writes a report in a format.
///
/// # Errors
/// Returns an error if the report does not support the format, `out` fails, or data to be shown
/// cannot be read.
pub fn render(
    out: &mut dyn Write,
    report: &impl Render,
    format: impl Into<Format>,
    style: Style,
) -> Result<(), PresentError> {
    match format.into() {
        Format::Text => narrow(out, style, |out| report.text(out, style)),
        Format::Json => report.json(out),
        Format::Csv => report.csv(out),
        Format::Dot => report.dot(out),
        Format::Html => report.html(out),
        format @ (Format::Lcov | Format::Callgrind | Format::Pprof) => report.export(out, format),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Number(u32);

    impl Render for Number {
        const NAME: &'static str = "a number";

        fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
            Ok(write!(out, "{}", self.0)?)
        }

        fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
            self.text(out, Style::default())
        }
    }

    #[test]
    fn a_format_that_a_report_lacks_is_refused_by_name() {
        let mut out = Vec::new();
        for format in [Format::Csv, Format::Dot, Format::Html, Format::Lcov] {
            let error = render(&mut out, &Number(7), format, Style::default()).unwrap_err();
            let expected =
                format!("a number cannot be written as {format}: choose --format text or json");
            assert_eq!(error.to_string(), expected);
        }
        render(&mut out, &Number(7), Format::Text, Style::default()).unwrap();
        assert_eq!(out, b"7");
    }
}
