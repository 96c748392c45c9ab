//! Takes snapshots by following a run: slow, and the oracle for those that an execution takes.

use std::error::Error;

use afterimage_machine::{MachineError, Next, SnapshotBuilder, WrittenPages};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::{Follower, OpenActivations, Run, StepsError};

/// Follows a run to its end and takes a snapshot every `every` blocks, or less often if the
/// snapshots have no room. Linear in the run.
///
/// # Errors
/// If the run cannot be followed.
pub fn take_snapshots<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    every: u64,
    into: &mut SnapshotBuilder,
) -> Result<(), StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let mut follower = Follower::new(run, log)?;
    let mut written = WrittenPages::default();
    let mut open = OpenActivations::default();
    let mut next = every;
    while let Some(visit) = follower.advance()? {
        open.next(visit);
        follower.execute(visit, &mut (&mut written, &mut open))?;
        let time = follower.machine.time();
        if time < next || time == run.path.length() {
            continue;
        }
        let snapshot = follower.machine.snapshot()?;
        let snapshot = snapshot.ok_or(MachineError::Checkpoint)?;
        let mut times = open.times();
        if let (Some(last), Next::Block(_)) = (times.last_mut(), snapshot.next) {
            last.called = last.entered;
        }
        let memories = &follower.machine.state.memories;
        into.add((&snapshot, &times), &written.take(), memories);
        next = time.saturating_add(every.saturating_mul(into.spacing()));
    }
    Ok(())
}
