//! Backward slices of recorded runs.

use std::error::Error;

use afterimage_slice::{Backward, Criterion, Follows, Slice, Stretch};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use crate::steps::{Follower, Run, StepsError};

/// Most intervals between checkpoints that are followed at once.
const MOST: u64 = 16;

/// The dynamic slice from criteria: the run is followed from checkpoint to checkpoint, the last stretch first, and each stretch gone over backward, until
/// nothing is wanted any more. Stretches grow from one interval to sixteen: what is near is found soon, and what is far does not bring in memory so often.
///
/// Time is linear in the blocks executed before the last criterion, memory in the guest's and in sixteen intervals; without checkpoints, the whole run is one stretch.
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
    let progress = run.progress;
    let run = Run {
        progress: &|_| {},
        ..run
    };
    let mut follower = Follower::new(run, log)?;
    let last = criteria.iter().map(|criterion| criterion.start).max();
    let mut behind = last.map_or(0, |last| last + 1);
    let mut slicer = Backward::new(run.program, run.path.nodes(), follows, criteria);
    let mut stretch = Stretch::default();
    let mut intervals = 1;
    while behind > 1 && !slicer.is_done() {
        let before = match run.checkpoints {
            None => 0,
            Some(checkpoints) => {
                let last = checkpoints.interval_at(behind - 1)?;
                let last = last.unwrap_or(checkpoints.intervals().saturating_sub(1));
                let first = (last + 1).saturating_sub(intervals);
                follower.go_to(checkpoints, first)?;
                checkpoints.times(first)?.0
            }
        };
        stretch.clear();
        while let Some(visit) = follower.next()?.filter(|visit| visit.start < behind) {
            stretch.at(visit.start);
            follower.execute(visit, &mut stretch)?;
            if visit.last() + 1 >= behind {
                break;
            }
        }
        slicer.pass(&stretch, follower.machine.codes());
        progress(run.path.length() - before);
        behind = before + 1;
        intervals = (2 * intervals).min(MOST);
    }
    Ok(slicer.finish())
}
