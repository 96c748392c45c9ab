//! Describes the code that the text form leaves out.

use std::io::{self, Write};

use afterimage_profile::{OwnFunctions, SourceLine};

use crate::number::counted;
use crate::plain::plain;

/// The line of the user's own code for which library code was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPlace {
    /// The line.
    pub line: SourceLine,
    /// Whether it called the library code. Otherwise the code was inlined into it.
    pub called: bool,
}

impl OwnPlace {
    /// Returns `app.rs:3 in app::main`, or `app.rs:3 in library code` if the line called library
    /// code. If `own` is `None`, returns the line and the function of the operator itself.
    pub(crate) fn text(own: Option<&Self>, line: Option<&SourceLine>, function: &str) -> String {
        let (line, function) = match own {
            Some(own) if own.called => (Some(&own.line), "library code"),
            Some(own) => (Some(&own.line), function),
            None => (line, function),
        };
        let line = line.map_or(String::new(), |line| format!("{line}  "));
        plain(&format!("{line}in {function}"))
    }
}

/// Writes the number of rows that were left out because they belong to other code.
pub(crate) fn left_out(
    out: &mut dyn Write,
    own: &OwnFunctions<'_>,
    rows: u64,
    noun: &str,
) -> io::Result<()> {
    if rows > 0 {
        let (code, rows) = (own.folded.left_out(), counted(rows, noun));
        writeln!(out, "{code}: {rows}; --code all shows them")?;
    }
    Ok(())
}
