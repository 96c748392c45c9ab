//! Follows the run to given moments.

use std::error::Error;

use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use crate::steps::{Follower, Paused, Run, StepsError};

/// A moment at which to stop, inside an execution of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Halt {
    /// The time of the execution's first block.
    pub start: u64,
    /// The number of the node's instructions executed before the moment.
    pub instructions: usize,
}

/// Follows a run once, up to the last of these moments, which must be in ascending order. For each
/// moment, passes its index, the first result register of its node, and the state to `show`. Leaves
/// out a moment if the run ended just before it.
///
/// Takes time linear in the memory that is read, and in the blocks between each moment and the
/// previous moment or checkpoint. Memory use is the guest's memory, plus the nodes' code and the
/// cached checkpoint data.
///
/// # Errors
/// Returns an error if the path, the log and the program disagree, or the path has gaps.
pub fn follow_to<S: Segments + Sync>(
    run: Run<'_, S>,
    log: LogReader,
    halts: &[Halt],
    mut show: impl FnMut(usize, u32, &Paused<'_>),
) -> Result<(), StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let mut follower = Follower::new(run, log)?;
    if let Some(first) = halts.first() {
        follower.skip_to(first.start)?;
    }
    let last = halts.last().map_or(0, |last| last.start);
    let now = follower.machine.time();
    run.path
        .read_ahead(now + 1, last, || follow_on(&mut follower, halts, &mut show))
}

fn follow_on<S: Segments>(
    follower: &mut Follower<'_, S>,
    halts: &[Halt],
    show: &mut impl FnMut(usize, u32, &Paused<'_>),
) -> Result<(), StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let mut done = 0;
    let mut pauses = Vec::new();
    let mut skipped = None;
    while let Some(next) = halts.get(done) {
        if skipped != Some(done) {
            follower.skip_to(next.start)?;
            skipped = Some(done);
        }
        let Some(visit) = follower.advance()? else {
            break;
        };
        if next.start != visit.start {
            follower.execute(visit, &mut ())?;
            continue;
        }
        let here = halts[done..].iter();
        let here = here.take_while(|halt| halt.start == visit.start);
        pauses.clear();
        pauses.extend(here.map(|halt| halt.instructions));
        let first_result = follower.machine.codes()[visit.node].first_result();
        let mut shown = done;
        follower.execute_pausing(visit, &mut (), &pauses, |_, paused| {
            show(shown, first_result, paused);
            shown += 1;
        })?;
        done += pauses.len();
    }
    Ok(())
}
