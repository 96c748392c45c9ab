//! The slices that lead to what differs.

use std::collections::BTreeSet;
use std::io::Write;

use afterimage_present::{Format, NextQuestion, SliceRows, SliceView, Style, render};
use anyhow::{Context, Result};

use crate::Session;
use crate::slice::{Wanted, find};

/// How slices are shown.
pub struct SlicesShown<'s> {
    /// The most lines of each.
    pub limit: usize,
    pub style: Style,
    /// Builds the values of a recording if they are not there.
    pub ensure_values: &'s dyn Fn(&Session) -> Result<()>,
}

/// Writes the slices that some questions about two recordings are about. `false` if none of them is about a slice.
///
/// # Errors
/// If a run cannot be followed, or the slices cannot be written.
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
