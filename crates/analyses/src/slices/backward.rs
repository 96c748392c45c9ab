//! Computes backward slices of recorded runs.

use std::error::Error;

use afterimage_slice::{Backward, Criterion, Follows, Slice};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::ahead::{Wanted, ahead};
use afterimage_replay::steps::{Run, StepsError};

/// Returns the number of remaining intervals to follow at once. It is a sixteenth of them, but at
/// least 8 and at most 16.
///
/// With a sixteenth, the two threads wait for each other for at most a sixteenth of the time. With
/// fewer than 8, restoring memory would take most of the time. More than 16 would take too much
/// memory.
fn most(left: u64) -> u64 {
    (left / 16).clamp(8, 16)
}

/// Computes the backward dynamic slice from criteria.
///
/// Follows the run in stretches between checkpoints, the last stretch first, and processes each
/// stretch backward until nothing more is wanted. In long runs, stretches grow from one interval to
/// 16. So near dependences are found soon, and memory is restored less often for distant
/// dependences.
///
/// Time is linear in the blocks executed before the last criterion. Needs the guest's memory, and
/// memory for a few intervals and for the checkpoints. Without checkpoints, the whole run is one
/// stretch.
///
/// # Errors
/// Returns an error if the run cannot be followed.
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

/// Slices backward over a run, beginning with the node that begins at time `last`.
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
