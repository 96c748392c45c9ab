//! Computes forward slices of recorded runs.

use std::error::Error;

use afterimage_slice::{Criterion, Follows, Forward, HostTook, Slice};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::ahead::{Wanted, ahead};
use afterimage_replay::steps::{Run, StepsError};

/// The number of nodes to follow before they are processed.
const NODES: usize = 1 << 19;

/// Computes the forward dynamic slice from criteria. It consists of the executions whose backward
/// slices contain a criterion. Follows the run from the checkpoint before the first criterion to
/// its end.
///
/// Time is linear in the blocks executed after that checkpoint. Needs the guest's memory.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn forward<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    follows: Follows,
    criteria: Vec<Criterion>,
) -> Result<Slice, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    Ok(influence(run, log, follows, criteria)?.0)
}

/// Like [`forward`], but also returns the data that the host read and that depends on the criteria,
/// such as output. The data is in the order of the reads.
///
/// # Errors
/// Returns the same errors as [`forward`].
pub fn influence<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    follows: Follows,
    criteria: Vec<Criterion>,
) -> Result<(Slice, Vec<HostTook>), StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let Some(first) = criteria.iter().map(|criterion| criterion.start).min() else {
        return Ok((Slice::default(), Vec::new()));
    };
    let Run { program, path, .. } = run;
    let (nodes, length) = (path.nodes(), path.length());
    ahead(
        run,
        log,
        |stretches| {
            stretches.follower.skip_to(first)?;
            loop {
                let time = stretches.follower.machine.time();
                (run.progress)(time);
                if time == length || stretches.give(|nodes, _| nodes < NODES)? == Wanted::Enough {
                    return Ok(());
                }
            }
        },
        |coming| {
            let mut slicer = Forward::new(program, nodes, follows, criteria);
            let mut begun = false;
            coming.each(|followed| {
                followed.go_over(&mut slicer, &mut begun);
                Wanted::More
            });
            let read = slicer.host_read();
            (slicer.finish(), read)
        },
    )
}
