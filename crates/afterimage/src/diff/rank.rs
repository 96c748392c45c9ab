//! Ranks lines and values that separate failing executions from passing ones.

use std::collections::BTreeMap;

use afterimage_analyses::diff::{ranges, rank_lines, rank_values};
use afterimage_present::{RankView, RankedValues, Sources};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::counts;
use crate::Session;
use crate::named::{NamedProgram, with_names};
use crate::steps::follow;

/// Asks which lines and values separate failing executions from passing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankQuery {
    /// Whether to also rank the values of statements. Ranking values requires following each run,
    /// so its path must have no gaps.
    pub values: bool,
    /// The maximum number of rows in each list, or `None` for all.
    pub top: Option<usize>,
}

/// Ranks the lines and values that separate failing executions from passing ones, and passes them
/// to `ask`. `text` reads the source files.
///
/// # Errors
/// Returns an error if there are no failing executions, the recordings are of several programs, no
/// lines are known and values are not requested, a recording lacks its end or is damaged, or `ask`
/// fails.
pub fn rank<R>(
    passing: &[Session],
    failing: &[Session],
    query: RankQuery,
    text: &dyn Sources,
    ask: impl FnOnce(&RankView<'_>) -> Result<R>,
) -> Result<R> {
    let first = failing.first().context("--fail names no recording")?;
    with_names(first, |program| {
        let has_lines = !program.source.files().is_empty();
        if !has_lines && !query.values {
            bail!(
                "{}: no lines are known: {}",
                first.at().display(),
                program.source.missing()
            );
        }
        let lines = |sessions: &[Session]| -> Result<Vec<_>> {
            let each = sessions.iter();
            each.map(|session| lines(session, program, has_lines))
                .collect()
        };
        let rows = rank_lines(&lines(passing)?, &lines(failing)?);
        let values = |sessions: &[Session]| -> Result<Vec<_>> {
            let each = sessions.iter();
            let of = |session: &Session| {
                session.ensure_whole_path()?;
                let found = follow(session, |run, log| Ok(ranges(run, log)?));
                found.with_context(|| session.at().display().to_string())
            };
            each.map(of).collect()
        };
        let found = if query.values {
            rank_values(&values(passing)?, &values(failing)?)
        } else {
            Vec::new()
        };
        ask(&RankView {
            passing: passing.len(),
            failing: failing.len(),
            rows: &rows,
            most: query.top.unwrap_or(usize::MAX),
            code: first.code(),
            source: program.source,
            sources: text,
            values: query.values.then_some(RankedValues {
                rows: &found,
                names: program.names,
                operators: program.operators,
            }),
        })
    })
}

/// Returns how often each line was executed in a run.
fn lines(
    session: &Session,
    program: NamedProgram<'_>,
    has_lines: bool,
) -> Result<BTreeMap<afterimage_profile::Line, u64>> {
    let first = program.session;
    if session.bytes() != first.bytes() {
        bail!(
            "{} is a recording of a different program from {}; only executions of one program can be ranked",
            session.at().display(),
            first.at().display()
        );
    }
    if !has_lines {
        return Ok(BTreeMap::new());
    }
    let found = counts::line_counts(session, program.names, program.source)?;
    found.with_context(|| {
        format!(
            "{}: the recording was cut off before its end was written, so exact counts cannot be made",
            session.at().display()
        )
    })
}
