//! Finds the last writers of the bytes of a range.

use std::collections::BTreeMap;

use afterimage_ids::FuncId;
use afterimage_machine::{NodeCode, Observer, Range};
use afterimage_trace::TraceFile;
use afterimage_wet::checkpoint::{CheckpointError, FileCheckpoints};
use afterimage_wet::{StorageCell, Writer};
use afterimage_wpp::Visit;

use super::HostReadsError;
use super::canvas::{Canvas, Part, Wrote};
use super::latest::{Latest, Write};
use crate::steps::{Follower, Paused, Run, StepsError};
use crate::values::{RecordedValues, ValuesError};
use crate::whole_path::FileSegments;

/// The largest number of executions in an interval for which writes are looked up. For more
/// executions, the run is followed through the interval.
const FEW: usize = 8;

/// The moment of a question.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    /// The beginning of the execution of a node that begins with this block.
    Start(u64),
    /// The beginning of the host call that ends an execution of a node.
    Call(Visit),
}

impl Moment {
    /// Returns the time at which the execution begins.
    pub fn start(self) -> u64 {
        match self {
            Self::Start(start) => start,
            Self::Call(visit) => visit.start,
        }
    }
}

/// Finds the last writers of bytes, with the index of checkpoints and by following parts of the
/// run.
pub(super) struct Writers<'a> {
    run: Run<'a, FileSegments>,
    file: TraceFile,
    follower: Option<Follower<'a, FileSegments>>,
    /// The latest writes of the part of the run that was followed last without checkpoints.
    latest: Option<Latest>,
    /// Whether the host may call exported imports. If so, it may also write outside of the guest's
    /// calls.
    host_calls_itself: bool,
}

/// The bytes that each execution of a node wrote last, as positions in a canvas. The key is the
/// time of the execution's first block.
type Written = BTreeMap<u64, Vec<usize>>;

impl<'a> Writers<'a> {
    pub fn new(run: Run<'a, FileSegments>, file: TraceFile) -> Self {
        let imported = |(_, function): &(String, FuncId)| run.program.function(*function).is_none();
        Self {
            host_calls_itself: run.program.exports.iter().any(imported),
            run,
            file,
            follower: None,
            latest: None,
        }
    }

    /// Returns the last writers of the bytes of a range before a moment. Takes memory linear in the
    /// bytes, an index lookup for each byte, and the time to follow parts of the run.
    ///
    /// If `only` is set, only writers in the execution that begins with that block matter. Bytes
    /// with other writers may then be reported as unwritten, and the run is not followed for them.
    pub fn last(
        &mut self,
        values: &RecordedValues<'a>,
        range: Range,
        moment: Moment,
        only: Option<u64>,
    ) -> Result<Vec<Part>, HostReadsError> {
        let mut canvas = Canvas::new(range);
        let Some(checkpoints) = self.run.checkpoints else {
            self.follow(values, None, moment, &mut canvas)?;
            if self.run.snapshots.is_some() {
                before_stretch(values, moment.start(), &mut canvas)?;
            }
            return Ok(canvas.parts());
        };
        let start = moment.start();
        let here = checkpoints.interval_at(start)?;
        let known = match moment {
            Moment::Start(_) => true,
            Moment::Call(visit) => {
                !self.host_calls_itself && own(values, visit, &mut canvas, false)?
            }
        };
        let first = here.unwrap_or_else(|| checkpoints.intervals().saturating_sub(1));
        let follow_first = !known || here.is_none();
        let mut earlier: BTreeMap<u64, Written> = BTreeMap::new();
        let mut is_later = follow_first;
        if !follow_first && !canvas.is_complete() {
            for position in canvas.unknown() {
                let address = range.address + position as u64;
                match checkpoints.last_write_in(range.memory, address, first)? {
                    Some(at) if at < start => {
                        let of = earlier.entry(first).or_default();
                        of.entry(at).or_default().push(position);
                    }
                    // The byte is written again later in the same interval.
                    Some(_) => is_later = true,
                    None => {}
                }
            }
        }
        if is_later {
            earlier.clear();
            let known = canvas.unknown();
            let mut seen = Canvas::new(range);
            self.follow(values, Some((checkpoints, first)), moment, &mut seen)?;
            for position in known {
                canvas.set(position, seen.get(position));
            }
        }
        let here = earlier.remove(&first).unwrap_or_default();
        let mut is_here = vec![false; range.length as usize];
        for &position in here.values().flatten() {
            is_here[position] = true;
        }
        for position in canvas.unknown() {
            if is_here[position] {
                continue;
            }
            let address = range.address + position as u64;
            if let Some((interval, at)) = checkpoints.last_write(range.memory, address, first)? {
                let of = earlier.entry(interval).or_default();
                of.entry(at).or_default().push(position);
            }
        }
        if !here.is_empty() {
            earlier.insert(first, here);
        }
        for (interval, mut written) in earlier {
            written.retain(|&start, _| only.is_none_or(|only| only == start));
            self.tell(values, (checkpoints, interval), written, &mut canvas)?;
        }
        Ok(canvas.parts())
    }

    /// Finds the instructions or host calls that wrote bytes in executions of an interval.
    fn tell(
        &mut self,
        values: &RecordedValues<'a>,
        interval: (&'a FileCheckpoints, u64),
        mut written: Written,
        canvas: &mut Canvas,
    ) -> Result<(), HostReadsError> {
        if written.len() <= FEW && !self.host_calls_itself {
            let mut left = Written::new();
            for (start, positions) in written {
                let visit = self.run.path.cursor().seek(start)?;
                let missing = HostReadsError::Damaged("an execution that does not exist");
                let visit = visit.filter(|visit| visit.start == start).ok_or(missing)?;
                if !look_up(values, visit, &positions, canvas)? {
                    left.insert(start, positions);
                }
            }
            written = left;
        }
        let Some((&last, _)) = written.last_key_value() else {
            return Ok(());
        };
        let last = self.run.path.cursor().seek(last)?;
        let behind = last.map_or(u64::MAX, |last| last.last() + 1);
        let mut seen = Canvas::new(canvas.range());
        self.follow(values, Some(interval), Moment::Start(behind), &mut seen)?;
        for position in written.into_values().flatten() {
            if seen.get(position).is_none() {
                let damaged = "a write by an execution that does not write there";
                return Err(HostReadsError::Damaged(damaged));
            }
            canvas.set(position, seen.get(position));
        }
        Ok(())
    }

    /// Returns the contents of memory ranges after `instructions` instructions of an execution.
    pub fn held(
        &mut self,
        visit: Visit,
        instructions: usize,
        ranges: &[Range],
    ) -> Result<Vec<Vec<u8>>, HostReadsError> {
        let mut follower = Follower::new(self.run, self.file.log()?)?;
        follower.skip_to(visit.start)?;
        while let Some(next) = follower.advance()? {
            if next.start < visit.start {
                follower.execute(next, &mut ())?;
                continue;
            }
            let mut held = Ok(Vec::new());
            follower.execute_pausing(next, &mut (), &[instructions], |_, paused| {
                held = ranges.iter().map(|range| bytes(paused, *range)).collect();
            })?;
            let held = held.map_err(StepsError::from)?;
            let held = Vec::from_iter(held.into_iter().flatten());
            if held.len() == ranges.len() {
                return Ok(held);
            }
            break;
        }
        Err(HostReadsError::Damaged("bytes that do not exist"))
    }

    /// Follows the run until a moment, and records the last writers. Begins at an interval, at the
    /// last snapshot before the moment, or at the beginning of the run.
    fn follow(
        &mut self,
        values: &RecordedValues<'a>,
        from: Option<(&'a FileCheckpoints, u64)>,
        moment: Moment,
        canvas: &mut Canvas,
    ) -> Result<(), HostReadsError> {
        let before = moment.start().checked_sub(1).filter(|_| from.is_none());
        let snapshot = match (self.run.snapshots, before) {
            (Some(snapshots), Some(before)) => snapshots.at(before).map(|it| (snapshots, it)),
            _ => None,
        };
        let number = snapshot.map(|(_, number)| number);
        let latest = self.latest.as_ref().filter(|_| from.is_none());
        if latest.is_some_and(|latest| latest.paint(number, moment, canvas)) {
            return Ok(());
        }
        let mut calls = 0;
        let known = self.follower.take().filter(|_| from.is_some());
        let mut follower = match known {
            Some(follower) => follower,
            None => Follower::new(self.run, self.file.log()?)?,
        };
        if let Some((checkpoints, interval)) = from {
            follower.go_to(checkpoints, interval)?;
            if let Some(checkpoint) = checkpoints.checkpoint(interval)? {
                calls = values.host()?.among(checkpoint.log().events)?;
            }
        }
        if let Some((snapshots, number)) = snapshot {
            follower.go_to_snapshot(snapshots, number)?;
            let (snapshot, _) = snapshots.snapshot(number).map_err(StepsError::from)?;
            calls = values.host()?.among(snapshot.log.events)?;
        }
        let mut watch = Watch {
            canvas,
            start: 0,
            calls,
            latest: from.is_none().then(|| Latest::new(number, moment)),
            is_done: false,
            is_last: false,
        };
        while let Some(visit) = follower.advance()? {
            match moment {
                Moment::Start(start) if visit.start >= start => break,
                Moment::Call(last) => watch.is_last = visit.start >= last.start,
                Moment::Start(_) => {}
            }
            watch.start = visit.start;
            watch.is_done = false;
            follower.execute(visit, &mut watch)?;
            if watch.is_last {
                break;
            }
        }
        if from.is_none() {
            self.latest = watch.latest;
        }
        self.follower = from.map(|_| follower);
        Ok(())
    }
}

/// Finds the writers before the stretch that contains a block, for bytes without a known writer.
fn before_stretch(
    values: &RecordedValues<'_>,
    time: u64,
    canvas: &mut Canvas,
) -> Result<(), HostReadsError> {
    let range = canvas.range();
    let missing = HostReadsError::Damaged("an execution that does not exist");
    let at = values.at(time)?.ok_or(missing)?;
    for position in canvas.unknown() {
        let place = StorageCell::Byte {
            memory: range.memory,
            address: range.address + position as u64,
        };
        let wrote = match values.writer_before(at, place)? {
            Writer::Initial => continue,
            Writer::Host { call } => Wrote::Host { call },
            Writer::Write { instance, inst, .. } => Wrote::Guest {
                start: instance.time,
                inst: inst as u32,
            },
        };
        canvas.set(position, Some(wrote));
    }
    Ok(())
}

/// Returns the contents of a memory range, or `None` if a part of it does not exist.
fn bytes(paused: &Paused<'_>, range: Range) -> Result<Option<Vec<u8>>, CheckpointError> {
    let memory = paused.inside.state.memories.get(range.memory as usize);
    let place = memory.and_then(|memory| memory.range(range.address, range.length).ok());
    let Some(place) = place else {
        return Ok(None);
    };
    let mut bytes = vec![0; place.len()];
    let known = paused.memory(range.memory, range.address, &mut bytes)?;
    Ok(known.then_some(bytes))
}

/// Looks up the writers of these bytes in an execution, in the whole execution trace. Returns
/// whether the trace has all of these writers.
fn look_up(
    values: &RecordedValues<'_>,
    visit: Visit,
    positions: &[usize],
    canvas: &mut Canvas,
) -> Result<bool, HostReadsError> {
    let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else {
        return Ok(true);
    };
    let all = canvas.range();
    let mut seen = Canvas::new(Range {
        address: all.address + first as u64,
        length: (last - first) as u64 + 1,
        ..all
    });
    let told = own(values, visit, &mut seen, true)?;
    let told = told && positions.iter().all(|&at| seen.get(at - first).is_some());
    if told {
        for &at in positions {
            canvas.set(at, seen.get(at - first));
        }
    }
    Ok(told)
}

/// Records the writes by the instructions of an execution and, with `host`, by the host call at its
/// end. Returns whether the writes are known. They may be unknown at the end of the run, or without
/// stored values.
fn own(
    values: &RecordedValues<'_>,
    visit: Visit,
    canvas: &mut Canvas,
    host: bool,
) -> Result<bool, HostReadsError> {
    // The last node may not have reached its end.
    if host && visit.last() == values.path().length() {
        return Ok(false);
    }
    match wrote(values, visit, canvas, host) {
        Ok(()) => Ok(true),
        Err(HostReadsError::Values(ValuesError::Outside { .. })) => Ok(false),
        Err(error) => Err(error),
    }
}

fn wrote(
    values: &RecordedValues<'_>,
    visit: Visit,
    canvas: &mut Canvas,
    host: bool,
) -> Result<(), HostReadsError> {
    let missing = HostReadsError::Damaged("an execution that does not exist");
    let instance = values.at(visit.start)?.ok_or(missing)?;
    let mut ranges = Vec::new();
    let compiled = values.compiled(instance.node)?;
    for write in compiled.model.writes.iter().rev() {
        let inst = write.inst;
        if let Some(range) = values.range_written(instance, inst as usize)? {
            let start = visit.start;
            ranges.push((range, Wrote::Guest { start, inst }));
        }
    }
    if host && let Some(call) = values.host_call(instance)? {
        let missing = HostReadsError::Damaged("a host call");
        let logged = values.host()?.get(call)?.ok_or(missing)?;
        for write in &logged.writes {
            let range = Range {
                memory: write.memory,
                address: write.address,
                length: write.bytes.len() as u64,
            };
            canvas.under(range, Wrote::Host { call });
        }
    }
    for (range, wrote) in ranges {
        canvas.under(range, wrote);
    }
    Ok(())
}

/// Records the writers of bytes.
struct Watch<'c> {
    canvas: &'c mut Canvas,
    /// The time at which the current node began.
    start: u64,
    /// The number of host calls so far.
    calls: u64,
    latest: Option<Latest>,
    /// Whether the instructions of the current node are done.
    is_done: bool,
    /// Whether this is the last node, whose host call at the end is ignored.
    is_last: bool,
}

impl Watch<'_> {
    #[inline]
    fn wrote(&mut self, range: Range, wrote: Wrote) {
        self.canvas.over(range, wrote);
        if let Some(latest) = &mut self.latest {
            latest.push(Write {
                start: self.start,
                is_by_call: self.is_done,
                range,
                wrote,
            });
        }
    }
}

impl Observer for Watch<'_> {
    const REGISTERS: bool = false;

    #[inline]
    fn write(&mut self, inst: usize, range: Range) {
        let start = self.start;
        let inst = inst as u32;
        self.wrote(range, Wrote::Guest { start, inst });
    }

    fn copy(&mut self, inst: usize, _: Range, to: Range) {
        self.write(inst, to);
    }

    fn done(&mut self, _: &NodeCode, _: &[u64], _: &[u64]) {
        self.is_done = true;
    }

    fn host_call(&mut self) {
        self.calls += 1;
    }

    fn host_write(&mut self, range: Range) {
        if !(self.is_last && self.is_done) {
            let call = self.calls;
            self.wrote(range, Wrote::Host { call });
        }
    }
}
