//! Finds the variables that a line changes after their values were read at its beginning.

use afterimage_present::values::ChangedByLine;
use afterimage_profile::{Line, Source};
use afterimage_program::{Location, SourceMap};
use afterimage_replay::state::Occasion;
use afterimage_replay::steps::{Enter, LineStep, LineSteps, WantedLines, Within, activation_of};
use afterimage_replay::whole_path::Window;
use anyhow::Result;

use crate::Session;

/// For some arrivals at a line, compares variables with their values at the activation's next line.
/// If any differ, returns them and the next line. `values` returns the text of each variable's
/// value at each of some moments.
///
/// # Errors
/// Returns an error if the recording is damaged, or the run cannot be followed.
pub(super) fn changed(
    session: &Session,
    source: &SourceMap<'_>,
    variables: &[&str],
    (line, samples): (Line, &[Occasion]),
    values: impl FnOnce(&[Occasion]) -> Result<Vec<Vec<Option<String>>>>,
) -> Result<Option<ChangedByLine>> {
    let mut pairs = Vec::new();
    for sample in samples {
        if let Some(next) = next_line(session, source, line, sample)? {
            pairs.push((*sample, next));
        }
    }
    let after = |next: &LineStep| Occasion {
        number: 0,
        time: next.time,
        op: next.op,
    };
    let moments = pairs
        .iter()
        .flat_map(|(sample, next)| [*sample, after(next)]);
    let mut moments = Vec::from_iter(moments);
    moments.sort_unstable_by_key(|moment| (moment.time, moment.op));
    moments.dedup_by_key(|moment| (moment.time, moment.op));

    if moments.is_empty() {
        return Ok(None);
    }
    let found = values(&moments)?;
    let at = |moment: &Occasion| {
        let key = (moment.time, moment.op);
        let found = moments.iter().zip(&found);
        let mut found = found.filter(|(one, _)| (one.time, one.op) == key);
        found.next().map(|(_, row)| row)
    };
    for (sample, next) in &pairs {
        let (Some(before), Some(after)) = (at(sample), at(&after(next))) else {
            continue;
        };
        let all = variables.iter().zip(before.iter().zip(after));
        // A variable that has no value yet at the line gets its first value there.
        let differs = all.filter(|(_, (before, after))| after.is_some() && before != after);
        let variables = Vec::from_iter(differs.map(|(&name, _)| name.to_owned()));
        if !variables.is_empty() {
            let next = source.line(Location {
                file: next.line.file,
                line: next.line.number,
                column: 0,
            });
            return Ok(Some(ChangedByLine {
                variables,
                next: Some(next),
            }));
        }
    }
    Ok(None)
}

/// Returns the next arrival of the same activation at another line of the same file. Returns `None`
/// if the activation first ends or arrives at the same line again.
fn next_line(
    session: &Session,
    source: &SourceMap<'_>,
    line: Line,
    sample: &Occasion,
) -> Result<Option<LineStep>> {
    let path = session.path()?;
    let mut cursor = path.cursor();
    cursor.seek(sample.time)?;
    let Some(activation) = cursor.innermost()? else {
        return Ok(None);
    };
    let wanted = WantedLines {
        window: Window {
            first: sample.time,
            last: path.length(),
        },
        within: Within::default(),
        reverse: false,
        enter: Enter::Nothing,
        function: None,
    };
    let stop = session.stops()?.first().copied();
    let folded = session.folded(source);
    let mut steps = LineSteps::new(session.run()?, &folded, stop, wanted)?;
    while let Some(step) = steps.next()? {
        if (step.time, step.op) <= (sample.time, sample.op) {
            continue;
        }
        let own = activation_of(path, &step)?;
        let is_same = own.is_some_and(|own| own.entered == activation.entered);
        let is_other = step.line.file == line.file && step.line != line;
        return Ok((is_same && is_other).then_some(step));
    }
    Ok(None)
}
