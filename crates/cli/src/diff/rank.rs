//! Lines and values that tell failing executions from passing ones.

use std::collections::BTreeMap;
use std::path::Path;

use afterimage::steps::follow;
use afterimage_analyses::diff::{ranges, rank_lines, rank_values};
use afterimage_present::{RankReport, RankedValues, render};
use afterimage_replay::steps::Operators;
use anyhow::{Context, Result, bail};

use super::{Arguments, Format, counts};
use crate::input;
use crate::lens::{session, traced_whole};
use crate::output::{SourceFiles, write};

/// Rows that text shows if nothing else is asked for.
const ROWS: usize = 25;

pub(super) fn rank(arguments: &Arguments) -> Result<()> {
    let Some(first) = arguments.fail.first() else {
        bail!("--fail names no recording");
    };
    let file = input::recording(first)?;
    let loaded = input::recorded_program(first, &file)?;
    let source = loaded.source_map();
    let looked_for = !arguments.no_values && arguments.format != Format::Csv;
    let has_lines = !source.files().is_empty();
    if !has_lines && !looked_for {
        bail!(
            "{}: no lines are known: {}",
            first.display(),
            source.missing()
        );
    }
    let names = loaded.names(&source);
    let lines = |at: &Path| {
        input::ended(at)?;
        let own = session(at)?;
        if own.bytes() != loaded.bytes {
            bail!(
                "{} is a recording of another program than {}; only executions of one program can be ranked",
                at.display(),
                first.display()
            );
        }
        if !has_lines {
            return Ok(BTreeMap::new());
        }
        let found = counts::line_counts(&own, &names, &source)?;
        found.with_context(|| {
            format!(
                "{}: the recording was cut off before its end was written, so exact counts cannot be made",
                at.display()
            )
        })
    };
    let all = |paths: &[std::path::PathBuf]| -> Result<Vec<_>> {
        paths.iter().map(|path| lines(path)).collect()
    };
    let (passing, failing) = (all(&arguments.pass)?, all(&arguments.fail)?);
    let rows = rank_lines(&passing, &failing);
    let most = match arguments.format {
        Format::Text => arguments.top.unwrap_or(ROWS),
        Format::Json | Format::Csv => arguments.top.unwrap_or(usize::MAX),
    };
    let values = |paths: &[std::path::PathBuf]| -> Result<Vec<_>> {
        let of = |path: &std::path::PathBuf| {
            let traced = traced_whole(path)?;
            let found = follow(&traced, |run, log| Ok(ranges(run, log)?));
            found.with_context(|| path.display().to_string())
        };
        paths.iter().map(of).collect()
    };
    let found = if looked_for {
        rank_values(&values(&arguments.pass)?, &values(&arguments.fail)?)
    } else {
        Vec::new()
    };
    let operators = Operators::new(&loaded.program, &loaded.bytes, &source);
    let report = RankReport {
        passing: passing.len(),
        failing: failing.len(),
        rows: &rows[..rows.len().min(most)],
        available: rows.len(),
        source: &source,
        sources: &SourceFiles,
        values: looked_for.then_some(RankedValues {
            rows: &found,
            most,
            names: &names,
            operators: &operators,
        }),
    };
    let out = arguments.output.as_deref();
    let style = arguments.color.style(out);
    write(out, false, |out| {
        Ok(render(out, &report, arguments.format, style)?)
    })
}
