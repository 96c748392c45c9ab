//! Finds the variables of a condition that a line itself changes, after the condition was tested.

use afterimage_ids::FuncId;
use afterimage_present::values::ConditionChanged;
use afterimage_profile::{Line, Source};
use afterimage_program::{Location, Names, SourceMap};
use afterimage_replay::state::{Bodies, Condition, Occasion, Path, Variables, Watch, follow_to};
use afterimage_replay::steps::{Enter, LineStep, LineSteps, WantedLines, Within, activation_of};
use afterimage_replay::whole_path::Window;
use anyhow::Result;

use super::condition::Look;
use super::variable::unwatched;
use crate::Session;
use crate::steps::follow;

/// For some arrivals at a line, compares the condition's variables with their values at the
/// activation's next line. If any differ, returns them and the next line.
///
/// # Errors
/// If the recording is damaged, or the run cannot be followed.
pub(super) fn changed(
    session: &Session,
    (names, source): (&Names, &SourceMap<'_>),
    (condition, first_path): (&Condition, &Path),
    (line, samples): (Line, &[Occasion]),
) -> Result<Option<ConditionChanged>> {
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

    let (loaded, values) = (session.module(), session.values()?);
    let variables = Variables::open(&loaded.bytes)?;
    let bodies = Bodies::new(&loaded.program, &loaded.bytes);
    let called = |function: FuncId| names.function(function).to_owned();
    let (program, path) = (&loaded.program, first_path.clone());
    let watch = Watch::new(program, &bodies, &values, &variables, &called, path);
    let look = Look::new(condition, &variables, true);
    let found = watch.at_each(
        &moments,
        |halts, show| follow(session, |run, log| Ok(follow_to(run, log, halts, show)?)),
        |moment, scopes| {
            let all = 0..condition.paths.len();
            Vec::from_iter(all.map(|path| look.held(path, moment, scopes, true).map(|it| it.text)))
        },
    );
    let found = found.map_err(unwatched)?;
    let at = |moment: &Occasion| {
        let key = (moment.time, moment.op);
        let found = moments.iter().zip(&found);
        let mut found = found.filter(|(one, _)| (one.time, one.op) == key);
        found.next().and_then(|(_, row)| row.value.as_ref().ok())
    };
    for (sample, next) in &pairs {
        let (Some(before), Some(after)) = (at(sample), at(&after(next))) else {
            continue;
        };
        let all = condition.paths.iter().zip(before.iter().zip(after));
        // A variable that has no value yet at the line gets its first value there.
        let differs = all.filter(|(_, (before, after))| after.is_ok() && before != after);
        let variables = Vec::from_iter(differs.map(|((name, _), _)| name.clone()));
        if !variables.is_empty() {
            let next = source.line(Location {
                file: next.line.file,
                line: next.line.number,
                column: 0,
            });
            return Ok(Some(ConditionChanged {
                variables,
                next: Some(next),
            }));
        }
    }
    Ok(None)
}

/// Returns the next arrival at another line of the same file, if the activation of an arrival
/// reaches one before it arrives at the same line again or ends.
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
