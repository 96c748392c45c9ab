//! Ranks lines and values that separate failing executions from passing ones.

use std::collections::BTreeMap;

use afterimage_analyses::diff::{ranges, rank_lines, rank_values};
use afterimage_present::{RankReport, RankedValues, Sources};
use anyhow::{Context, Result, bail};

use super::counts;
use crate::Session;
use crate::named::{NamedProgram, with_names};
use crate::steps::follow;

/// The lines to rank and show.
pub struct RankQuery<'s> {
    /// Whether to also rank the values of statements. This requires the whole path of each run,
    /// which is followed.
    pub values: bool,
    /// The largest number of rows in each list.
    pub most: usize,
    pub sources: &'s dyn Sources,
}

/// Ranks the lines and values that separate failing executions from passing ones, and hands them
/// to `ask`.
///
/// # Errors
/// If there are no failing executions, the recordings are of several programs, a recording lacks
/// its end or is damaged, or `ask` fails.
pub fn rank<R>(
    passing: &[Session],
    failing: &[Session],
    query: &RankQuery<'_>,
    ask: impl FnOnce(&RankReport<'_>) -> Result<R>,
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
        ask(&RankReport {
            passing: passing.len(),
            failing: failing.len(),
            rows: &rows,
            most: query.most,
            code: first.code(),
            source: program.source,
            sources: query.sources,
            values: query.values.then_some(RankedValues {
                rows: &found,
                names: program.names,
                operators: program.operators,
            }),
        })
    })
}

/// Returns the executions of each line of a run's program.
fn lines(
    session: &Session,
    program: NamedProgram<'_>,
    has_lines: bool,
) -> Result<BTreeMap<afterimage_profile::Line, u64>> {
    let first = program.session;
    if session.bytes() != first.bytes() {
        bail!(
            "{} is a recording of another program than {}; only executions of one program can be ranked",
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
