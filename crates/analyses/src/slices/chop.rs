//! Computes chops, that is, the executions through which one place of a run influenced another.

use std::error::Error;

use afterimage_slice::{Backward, Criterion, Follows, Forward, Instances, Slice};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::ahead::{Wanted, ahead};
use super::backward::go_back;
use afterimage_replay::steps::{Run, StepsError};

/// Finds the executions that depend on a criterion of `from` and on which a criterion of `to`
/// depends. They show how `from` influenced `to` (Jackson and Rollins 1994). `logs` are two readers
/// of the run's log.
///
/// The chop is empty if no path of dependences leads from `from` to `to`. Otherwise it may also
/// include calls and throws that passed unrelated values between the two.
///
/// Time is linear in the blocks executed before the last criterion of `to`. Needs the guest's
/// memory, plus one bit for each instruction executed between the two.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn chop<S: Segments>(
    run: Run<'_, S>,
    logs: [LogReader; 2],
    follows: Follows,
    from: Vec<Criterion>,
    to: Vec<Criterion>,
) -> Result<Slice, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let first = from.iter().map(|criterion| criterion.start).min();
    let last = to.iter().map(|criterion| criterion.start).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Ok(Slice::default());
    };
    if last < first {
        return Ok(Slice::default());
    }
    let [ahead_log, back_log] = logs;
    let instances = reached(run, ahead_log, follows, from.clone(), (first, last))?;
    let nodes = run.path.nodes();
    let slicer = || Backward::new(run.program, nodes, follows, to).within(instances, &from);
    go_back(run, back_log, last, slicer)
}

/// Finds the executions up to a time that depend on the criteria.
fn reached<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    follows: Follows,
    criteria: Vec<Criterion>,
    (first, last): (u64, u64),
) -> Result<Instances, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let Run { program, path, .. } = run;
    let nodes = path.nodes();
    ahead(
        run,
        log,
        |stretches| {
            stretches.follower.skip_to(first)?;
            loop {
                let time = stretches.follower.machine.time();
                (run.progress)(time);
                // Backward slicing begins its stretches where intervals begin.
                let interval = match run.checkpoints {
                    Some(checkpoints) => checkpoints.interval_at(time + 1)?.zip(Some(checkpoints)),
                    None => None,
                };
                let behind = match interval {
                    Some((interval, checkpoints)) => checkpoints.times(interval)?.1,
                    None => u64::MAX,
                };
                let goes_on = |_, time| time < last && time < behind;
                if time >= last || stretches.give(goes_on)? == Wanted::Enough {
                    return Ok(());
                }
            }
        },
        |coming| {
            let mut slicer = Forward::new(program, nodes, follows, criteria).with_instances();
            let mut begun = false;
            coming.each(|followed| {
                followed.go_over(&mut slicer, &mut begun);
                Wanted::More
            });
            slicer.instances().unwrap_or_default()
        },
    )
}
