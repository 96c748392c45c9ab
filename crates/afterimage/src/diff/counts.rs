//! Compares how often lines were executed.

use std::collections::BTreeMap;

use afterimage_present::LineDifference;
use afterimage_profile::{Line, Profile, Scope};
use afterimage_program::{Names, SourceMap};
use anyhow::{Context, Result};

use crate::Session;

/// Counts the arrivals at each line. Returns `None` if the recording has no end.
pub(super) fn line_counts(
    recording: &Session,
    names: &Names,
    source: &SourceMap<'_>,
) -> Result<Option<BTreeMap<Line, u64>>> {
    let place = || recording.at().display().to_string();
    let Some(counts) = recording.ensure_counts()? else {
        return Ok(None);
    };
    let stops = recording.stops().with_context(place)?;
    let profile = Profile::new(
        recording.program(),
        recording.bytes(),
        &counts,
        stops,
        names,
        source,
    );
    let rows = profile.and_then(|profile| profile.line_rows(&Scope::All));
    let rows = rows.with_context(place)?;
    Ok(Some(rows.iter().map(|row| (row.line, row.count)).collect()))
}

/// Returns the lines with different counts, largest ratio first, and the number of all compared
/// lines.
pub(super) fn differences(
    a: &BTreeMap<Line, u64>,
    b: &BTreeMap<Line, u64>,
) -> (Vec<LineDifference>, usize) {
    let mut all: BTreeMap<Line, [u64; 2]> = BTreeMap::new();
    for (index, counts) in [a, b].into_iter().enumerate() {
        for (&line, &count) in counts {
            all.entry(line).or_default()[index] = count;
        }
    }
    let known = all.len();
    let rows = all.into_iter();
    let rows = rows.map(|(line, counts)| LineDifference { line, counts });
    let mut rows: Vec<_> = rows.filter(|row| row.counts[0] != row.counts[1]).collect();
    // Lines that only one run executed come first. The ratio decides the order of the others.
    let rank = |row: &LineDifference| {
        let [low, high] = [
            row.counts[0].min(row.counts[1]),
            row.counts[0].max(row.counts[1]),
        ];
        (
            low > 0,
            u128::from(low) * (1 << 32) / u128::from(high),
            row.line,
        )
    };
    rows.sort_by_key(rank);
    (rows, known)
}
