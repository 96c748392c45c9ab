//! Takes snapshots by following a run. This is slow, and serves as an oracle for snapshots that are
//! taken during execution.

use std::error::Error;

use afterimage_machine::{MachineError, Next, SnapshotBuilder, State, WrittenPages};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::{Follower, OpenActivations, Run, StepsError};

/// Follows a run to its end and takes a snapshot every `every` blocks, or less often if there is
/// not enough room. Takes time linear in the run.
///
/// # Errors
/// Returns an error if the run cannot be followed.
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

/// Follows a run from its last snapshot before block `from` until block `until` is executed. Takes
/// a snapshot where it begins, unless that is the start of the run. Takes further snapshots every
/// `every` blocks, or less often if there is not enough room. Each snapshot is complete by itself.
/// Takes no snapshots if the existing snapshot lacks the times at which its activations began.
/// Takes time linear in the blocks that are followed.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn take_snapshots_between<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    (from, until): (u64, u64),
    every: u64,
    into: &mut SnapshotBuilder,
) -> Result<(), StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let mut follower = Follower::new(run, log)?;
    let mut written = WrittenPages::default();
    let before = from.saturating_sub(1);
    let known = run
        .snapshots
        .and_then(|known| Some((known, known.at(before)?)));
    let mut open = OpenActivations::default();
    if let Some((snapshots, number)) = known {
        let restored = follower.go_to_snapshot(snapshots, number)?;
        match OpenActivations::at(restored) {
            Some(found) => open = found,
            None => return Ok(()),
        }
        let (first, _) = State::of_module(run.program, run.module)?;
        written.mark_others(&follower.machine.state.memories, &first.memories);
    }
    let mut next = follower.machine.time();
    loop {
        let time = follower.machine.time();
        if time >= next && time > 0 {
            let snapshot = follower.machine.snapshot()?;
            let Some(snapshot) = snapshot else {
                return Ok(());
            };
            let mut times = open.times();
            if let (Some(last), Next::Block(_)) = (times.last_mut(), snapshot.next) {
                last.called = last.entered;
            }
            let memories = &follower.machine.state.memories;
            into.add((&snapshot, &times), &written.take(), memories);
            next = time.saturating_add(every.saturating_mul(into.spacing()));
        }
        if time >= until {
            return Ok(());
        }
        let Some(visit) = follower.advance()? else {
            return Ok(());
        };
        if visit.last() == run.path.length() {
            return Ok(());
        }
        open.next(visit);
        follower.execute(visit, &mut (&mut written, &mut open))?;
    }
}
