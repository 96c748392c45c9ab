//! Verifies that snapshots equal the states of the run.

use std::error::Error;

use afterimage_ids::grouped;
use afterimage_machine::{
    LineSet, Machine, MachineError, Next, Observer, Opened, Range, Snapshot, SnapshotError,
    Snapshots, WrittenLines,
};
use afterimage_trace::{Event, LogPlace, LogReader, TraceError};
use afterimage_wpp::{OpenActivation, Segments, StretchDirectory, Summary};

use super::{Follower, OpenActivations, Run, StepsError};

/// Follows a run to each of its snapshots and to its end, and compares all data in the snapshots.
/// With `lines`, also compares the lines of memory that each segment of the path writes. Returns a
/// description of the fault, or `None` if there is no fault. Takes time linear in the run and, for
/// each snapshot, in its memories.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn verify_snapshots<S: Segments>(
    run: Run<'_, S>,
    log: impl Fn() -> Result<LogReader, TraceError>,
    snapshots: &Snapshots,
    (stretches, lines): (Option<&StretchDirectory>, Option<&WrittenLines>),
) -> Result<Option<String>, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let mut follower = Follower::new(run, log().map_err(MachineError::from)?)?;
    let mut open = OpenActivations::default();
    match lines.map_or(Ok(true), WrittenLines::is_sound) {
        Ok(true) => {}
        Ok(false) => {
            return Ok(Some(
                "the list of all lines that the stretches write is incomplete".to_owned(),
            ));
        }
        Err(error) => return Ok(Some(error.to_string())),
    }
    let mut begun = Begun { stretches, next: 1 };
    let mut written = Written::of(run.path.segments().summaries(), lines);
    let restored = log().map_err(MachineError::from)?;
    let mut restored = Machine::new(run.program, run.module, restored)?;
    restored.expect(run.path.nodes().len());
    for (number, &time) in snapshots.times().iter().enumerate() {
        let after = grouped(time);
        let wrong = |what: &str| Ok(Some(format!("the snapshot after {after} blocks {what}")));
        while follower.machine.time() < time
            && let Some(visit) = follower.advance()?
        {
            if let Some(wrong) = begun.at(visit.start, &open, &mut follower.machine)? {
                return Ok(Some(wrong));
            }
            open.next(visit);
            if let Some(wrong) = written.until(visit.start) {
                return Ok(Some(wrong));
            }
            follower.execute(visit, &mut (&mut open, &mut written))?;
        }
        let own = follower.machine.snapshot()?;
        let Some(own) = own.filter(|own| own.time == time) else {
            return wrong("is not between two paths");
        };
        let (stored, opened) = match snapshots.snapshot(number) {
            Ok(found) => found,
            Err(error) => return wrong(&format!("cannot be read: {error}")),
        };
        let place = log().map_err(MachineError::from)?;
        if !goes_on(place, own.log, stored.log).map_err(MachineError::from)? {
            return wrong("continues elsewhere in the log");
        }
        // The number of exceptions depends on the last removal of unreachable exceptions.
        let stored = Snapshot {
            log: own.log,
            room: own.room,
            ..stored
        };
        if stored != own {
            return wrong("differs from the state of the run");
        }
        if !opened.is_empty() && opened != times_of(&open, &own) {
            return wrong("has activations that began at different times");
        }
        match snapshots.restore(&mut restored, number) {
            Ok(_) => {}
            Err(error @ SnapshotError::File(_)) => {
                return wrong(&format!("cannot be read: {error}"));
            }
            Err(error) => return wrong(&format!("cannot be restored: {error}")),
        }
        let memories = follower.machine.state.memories.iter();
        let mut pairs = memories.zip(&restored.state.memories);
        if pairs.any(|(own, stored)| own.bytes[..] != stored.bytes[..]) {
            return wrong("has different bytes of memory");
        }
    }
    // Questions may also follow the path after the last snapshot.
    while let Some(visit) = follower.advance()? {
        if let Some(wrong) = begun.at(visit.start, &open, &mut follower.machine)? {
            return Ok(Some(wrong));
        }
        open.next(visit);
        if let Some(wrong) = written.until(visit.start) {
            return Ok(Some(wrong));
        }
        follower.execute(visit, &mut (&mut open, &mut written))?;
    }
    Ok(written.until(u64::MAX))
}

/// Returns the times of the open activations, the outermost first.
fn times_of(open: &OpenActivations, stands: &Snapshot) -> Vec<Opened> {
    let mut times = open.times();
    if let (Some(last), Next::Block(_)) = (times.last_mut(), stands.next) {
        last.called = last.entered;
    }
    times
}

/// Compares the activations that are open at the beginning of each stretch with the file.
struct Begun<'a> {
    stretches: Option<&'a StretchDirectory>,
    /// The number of the stretch that begins next.
    next: usize,
}

impl Begun<'_> {
    /// If a stretch begins with this block, returns the stretch's fault, or `None` if there is no
    /// fault.
    fn at(
        &mut self,
        start: u64,
        open: &OpenActivations,
        machine: &mut Machine<'_>,
    ) -> Result<Option<String>, MachineError> {
        let Some(stretches) = self.stretches else {
            return Ok(None);
        };
        let summaries = &stretches.directory.summaries;
        let before = summaries.get(self.next).map(|summary| summary.before);
        if before.is_none_or(|before| before + 1 != start) {
            return Ok(None);
        }
        let told = &stretches.open[self.next - 1];
        let known = StretchDirectory::known_before(&summaries[self.next - 1]);
        self.next += 1;
        let stands = machine.snapshot()?.ok_or(MachineError::Checkpoint)?;
        let frames = stands.frames.iter().zip(times_of(open, &stands));
        let own = frames.map(|(&(function, call), times)| OpenActivation {
            function,
            call,
            entered: times.entered,
            called: times.called,
        });
        let same = own.skip(known).eq(told.iter().copied());
        Ok((!same).then(|| {
            format!("the activations open before block {start} differ from those in the file")
        }))
    }
}

/// Compares the lines of memory that the segments of a path write with the file.
struct Written<'a> {
    lines: Option<&'a WrittenLines>,
    segments: &'a [Summary],
    /// The current segment.
    segment: usize,
    /// The lines that the current segment has written so far.
    set: LineSet,
}

impl<'a> Written<'a> {
    fn of(segments: &'a [Summary], lines: Option<&'a WrittenLines>) -> Self {
        Self {
            lines,
            segments,
            segment: 0,
            set: LineSet::default(),
        }
    }

    /// Returns the fault in the segments that end before a block, or `None` if there is no fault.
    fn until(&mut self, time: u64) -> Option<String> {
        let lines = self.lines?;
        while let Some(summary) = self.segments.get(self.segment)
            && summary.before + summary.length < time
        {
            let told = match lines.lines(self.segment) {
                Ok(told) => told,
                Err(error) => return Some(error.to_string()),
            };
            let mut all = LineSet::default();
            told.iter().for_each(|run| all.mark(run.range()));
            if !all.has_all(&self.set) {
                let before = summary.before;
                return Some(format!("lines written after {before} blocks are missing"));
            }
            self.set.clear();
            self.segment += 1;
        }
        None
    }
}

impl Observer for Written<'_> {
    const REGISTERS: bool = false;

    fn write(&mut self, _: usize, range: Range) {
        if self.lines.is_some() {
            self.set.mark(range);
        }
    }

    fn copy(&mut self, inst: usize, _: Range, to: Range) {
        self.write(inst, to);
    }

    fn host_write(&mut self, range: Range) {
        self.write(0, range);
    }
}

/// Whether two places in the log are equivalent. Only allocations that the engine made for itself
/// may lie between equivalent places.
fn goes_on(mut log: LogReader, own: LogPlace, stored: LogPlace) -> Result<bool, TraceError> {
    log.go(own)?;
    while log.events() < stored.events {
        match log.next().transpose()? {
            Some(Event::MemoryGrow { .. }) => {}
            _ => return Ok(false),
        }
    }
    Ok(log.place() == stored)
}
