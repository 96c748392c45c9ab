//! Backward slices of recorded runs.

use std::error::Error;

use afterimage_slice::{Backward, Criterion, Follows, Slice};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::ahead::{Wanted, ahead};
use afterimage_replay::steps::{Run, StepsError};

/// Of the intervals that are left, so many at most are followed at once: a sixteenth of them, so that the two threads wait for each other only a sixteenth of the time, but not so few
/// that most of the time goes into bringing in memory, nor so many that what was followed takes much of it.
fn most(left: u64) -> u64 {
    (left / 16).clamp(8, 16)
}

/// The dynamic slice from criteria: the run is followed from checkpoint to checkpoint, the last stretch first, and each stretch gone over backward, until
/// nothing is wanted any more. Stretches grow from one interval to 16 in long runs: what is near is found soon, and what is far does not bring in memory so often.
///
/// Time is linear in the blocks executed before the last criterion, memory in the guest's and in some intervals, and what stays of checkpoints comes to it; without checkpoints, the whole run is one stretch.
///
/// # Errors
/// If the run cannot be followed.
pub fn backward<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    follows: Follows,
    criteria: Vec<Criterion>,
) -> Result<Slice, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let Some(last) = criteria.iter().map(|criterion| criterion.start).max() else {
        return Ok(Slice::default());
    };
    let nodes = run.path.nodes();
    let slicer = || Backward::new(run.program, nodes, follows, criteria);
    go_back(run, log, last, slicer)
}

/// Goes back over a run, from the node that begins at a time on.
pub(super) fn go_back<'a, S: Segments>(
    run: Run<'a, S>,
    log: LogReader,
    last: u64,
    slicer: impl FnOnce() -> Backward<'a> + Send,
) -> Result<Slice, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let length = run.path.length();
    ahead(
        run,
        log,
        |stretches| {
            let (mut behind, mut intervals) = (last + 1, 1);
            while behind > 1 {
                let (first, before) = match run.checkpoints {
                    None => (0, 0),
                    Some(checkpoints) => {
                        let last = checkpoints.interval_at(behind - 1)?;
                        let last = last.unwrap_or(checkpoints.intervals().saturating_sub(1));
                        let first = (last + 1).saturating_sub(intervals);
                        stretches
                            .follower
                            .go_through(checkpoints, first..last + 1)?;
                        (first, checkpoints.times(first)?.0)
                    }
                };
                if stretches.give(|_, time| time + 1 < behind)? == Wanted::Enough {
                    break;
                }
                (run.progress)(length - before);
                behind = before + 1;
                intervals = (2 * intervals).min(most(first));
            }
            Ok(())
        },
        |coming| {
            let mut slicer = slicer();
            coming.each(|followed| {
                for (node, code) in &followed.codes {
                    slicer.prepare(*node, code);
                }
                slicer.pass(&followed.stretch);
                if slicer.is_done() {
                    Wanted::Enough
                } else {
                    Wanted::More
                }
            });
            slicer.finish()
        },
    )
}
