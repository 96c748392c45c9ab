//! Shows the slices that lead to a difference.

use std::collections::BTreeSet;
use std::io::Write;

use afterimage_present::{Format, NextQuestion, SliceRows, SliceView, Style, render};
use anyhow::{Context, Result};

use crate::Session;
use crate::slice::{Wanted, find};

/// The options for showing slices.
pub struct SlicesShown<'s> {
    /// The maximum number of lines to show of each slice.
    pub limit: usize,
    pub style: Style,
    /// Builds the values of a recording if they do not exist yet.
    pub ensure_values: &'s dyn Fn(&Session) -> Result<()>,
}

/// Writes the slices that the questions about two recordings request. Returns `false` if no
/// question requests one.
///
/// # Errors
/// Returns an error if a run cannot be followed, or the slices cannot be written.
pub fn write_slices(
    out: &mut dyn Write,
    sessions: [&Session; 2],
    questions: &[NextQuestion],
    shown: &SlicesShown<'_>,
) -> Result<bool> {
    let mut found = false;
    for (side, session) in sessions.into_iter().enumerate() {
        for NextQuestion { command, slice } in questions {
            let Some((_, query)) = slice.as_ref().filter(|slice| slice.0 == side) else {
                continue;
            };
            found = true;
            writeln!(out, "\n{command}")?;
            session.ensure_whole_path()?;
            (shown.ensure_values)(session)?;
            let wanted = Wanted::Answer(query.clone());
            let written = find(session, &wanted, None, |found| {
                let view = SliceView {
                    report: &found.report()?,
                    rows: SliceRows::Lines,
                    limit: shown.limit,
                    texts: &[],
                    code: session.code(),
                    sources: &**session.sources(),
                    edges: BTreeSet::new(),
                };
                Ok(render(out, &view, Format::Text, shown.style)?)
            });
            written.with_context(|| session.at().display().to_string())?;
        }
    }
    Ok(found)
}
