//! Finds the contents of memory at a time, with their writers and readers.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use afterimage_machine::{
    LINE, MachineError, Range, SnapshotError, State, WatchedBytes, WrittenLinesError,
};
use afterimage_trace::{LogReader, TraceError};
use afterimage_wet::{FileEpochs, WholeTrace};
use afterimage_wpp::{Segments, Visit};

use super::follow::Run;
use super::step::overlap;
use super::{
    FileCheckpoints, LastWrite, LastWriteError, LastWrites, Level, Step, Steps, StepsError, Wanted,
    Within,
};
use crate::Writers;
use crate::whole_path::{At as Moment, Window};

/// The largest number of bytes whose last writes are searched for one by one. It is also the
/// largest number of stretches to search.
const FEW: usize = 64;
/// The largest number of regions in which last writes are found by executing the run again, once
/// for each region.
const MOST_WATCHED: usize = 4;
/// The largest number of bytes in one question.
pub const LARGEST_RANGE: u64 = 1 << 16;

/// The time to which a question refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Right before a block or an operator is executed.
    Before(Moment),
    /// After the end of the run.
    End,
}

/// The result of searching for an access to some bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NearestAccess {
    /// There is no such access.
    #[default]
    Never,
    /// The access is this step.
    Step(Rc<Step>),
    /// The search ended at this time. An access may exist before this time or, for the next access,
    /// after it.
    Beyond(u64),
}

impl NearestAccess {
    /// Returns the step of the access, if known.
    pub fn step(&self) -> Option<&Step> {
        match self {
            Self::Step(step) => Some(step),
            _ => None,
        }
    }

    fn is_never(&self) -> bool {
        matches!(self, Self::Never)
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            // Two searches may have found the same step.
            (Self::Step(a), Self::Step(b)) => Rc::ptr_eq(a, b) || a == b,
            _ => self == other,
        }
    }
}

/// Adjacent bytes with the same history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPart {
    /// The range of these bytes in memory.
    pub range: Range,
    /// The last write before the time. If there was none, the bytes have their initial values.
    pub written: NearestAccess,
    /// The next read after the time.
    pub read_next: NearestAccess,
    /// The next write after the time.
    pub written_next: NearestAccess,
}

/// The contents of memory at a time, and the nearest accesses before and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryAnswer {
    /// The contents of the requested range.
    pub bytes: Vec<u8>,
    /// The size of the memory in bytes.
    pub size: u64,
    /// The contents of table 0, as in [`Table`](afterimage_machine::Table). Function pointers are
    /// indices into this table.
    pub table: Vec<u64>,
    /// All bytes, in parts with the same history.
    pub parts: Vec<MemoryPart>,
}

/// The known facts about a byte.
#[derive(Clone, Default)]
struct Byte {
    written: NearestAccess,
    read_next: NearestAccess,
    written_next: NearestAccess,
}

/// An index of the parts of a run in which bytes were written. It supplements the run's
/// checkpoints.
pub enum WriteIndex<'v, S: Segments> {
    /// No index is available.
    None,
    /// The whole execution trace names the last writers.
    Values(&'v WholeTrace<'v, S, FileEpochs>),
    /// An index of the stretches that wrote bytes. The path consists of these stretches. The run
    /// has no checkpoints, but has a snapshot at the beginning of each stretch.
    Stretches {
        /// Finds the stretches that wrote a byte.
        writers: &'v Writers,
        /// Opens the run's log again.
        log: &'v dyn Fn() -> Result<LogReader, TraceError>,
        /// The approximate number of blocks to follow in search of the next accesses. The search
        /// for the last writer follows four times this number, mostly without observation. Once the
        /// writing stretches are known, it follows another eight times this number.
        most: u64,
    },
}

impl<S: Segments> Clone for WriteIndex<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Segments> Copy for WriteIndex<'_, S> {}

/// Returns the contents of at most [`LARGEST_RANGE`] bytes at a time, the last writer of each byte,
/// and the next accesses to it.
///
/// With checkpoints, only the intervals with these accesses are followed. Without checkpoints, the
/// whole run up to the accesses is followed. With values, most intervals with last writes need not
/// be followed either. With stretches, the run is followed as far as [`WriteIndex::Stretches`]
/// allows. For a few bytes, earlier last writes are found by executing the run again.
///
/// # Errors
/// Returns an error if the bytes do not exist at that time, if the run cannot be followed, or if
/// the stored data is damaged.
pub fn memory_at<'v, S: Segments + Sync>(
    run: Run<'_, S>,
    log: LogReader,
    index: WriteIndex<'v, S>,
    range: Range,
    at: At,
) -> Result<MemoryAnswer, LastWriteError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let length = run.path.length();
    let moment = match at {
        At::Before(moment) => moment,
        At::End => Moment {
            time: length.saturating_add(1),
            op: None,
        },
    };
    let end = match index {
        WriteIndex::Stretches { most, .. } => moment.time.saturating_add(most),
        _ => u64::MAX,
    };
    let (search, held) = searched(run, log, index, range, (moment, end))?;
    Ok(MemoryAnswer {
        parts: parts(&search.bytes, range),
        ..held
    })
}

/// Examines the history of some bytes, backward from a moment, and forward from it up to `end`.
fn searched<'a, 'v, S: Segments + Sync>(
    run: Run<'a, S>,
    log: LogReader,
    index: WriteIndex<'v, S>,
    range: Range,
    (moment, end): (Moment, u64),
) -> Result<(Search<'a, S>, MemoryAnswer), LastWriteError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut search = Search::new(run, log, range, (moment, end))?;
    search.steps.follower.skip_to(moment.time)?;
    let first = search.steps.follower.machine.time();
    if let WriteIndex::Stretches { writers, .. } = index {
        search.follow_to_stretch(writers)?;
    }
    search.follow()?;
    let held = match search.held.take() {
        Some(held) => held,
        None => search.contents()?,
    };
    if let WriteIndex::Stretches { writers, log, most } = index {
        search.not_looked_at(writers)?;
        let index = (writers, log);
        let most = most.saturating_mul(4);
        let mut left = search.last_writes_in_stretches(index, first, most)?;
        if left > 0 && search.watch(writers, left) {
            left = search.last_writes_in_stretches(index, left, most.saturating_mul(8))?;
        }
        search.not_found(left);
    }
    if let Some(checkpoints) = run.checkpoints
        && first > 0
    {
        if let WriteIndex::Values(values) = index {
            let log = checkpoints.log().map_err(StepsError::from)?;
            let writes = LastWrites::new(run, log, checkpoints, Some(values))?;
            search.find_indexed(writes, first)?;
        }
        search.last_writes(checkpoints, first)?;
    }
    Ok((search, held))
}

/// Returns the last writer of each byte of a range within the first `before` blocks, if following
/// the run from one snapshot finds the writer. That snapshot is the last one before a stretch that
/// may have written one of the bytes.
///
/// # Errors
/// Returns an error if the run cannot be followed, or the stored data is damaged.
pub fn last_writes_from_snapshot<S: Segments + Sync>(
    run: Run<'_, S>,
    index: StretchIndex<'_>,
    range: Range,
    before: u64,
) -> Result<Vec<NearestAccess>, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let moment = Moment {
        time: before + 1,
        op: None,
    };
    let (_, log) = index;
    let own = log().map_err(MachineError::from)?;
    let mut search = Search::new(run, own, range, (moment, moment.time))?;
    let left = search.last_writes_in_stretches(index, before, 1)?;
    search.not_found(left);
    Ok(search.bytes.into_iter().map(|byte| byte.written).collect())
}

/// Finds the stretches that wrote a byte, and opens the run's log again.
type StretchIndex<'i> = (&'i Writers, &'i dyn Fn() -> Result<LogReader, TraceError>);

/// The search for the history of some bytes.
struct Search<'a, S: Segments> {
    steps: Steps<'a, S>,
    run: Run<'a, S>,
    wanted: Wanted,
    range: Range,
    /// The moment before and after which to search.
    moment: Moment,
    bytes: Vec<Byte>,
    /// The answer without its parts, once the moment has been reached.
    held: Option<MemoryAnswer>,
    /// The time at which to stop following the run.
    end: u64,
}

impl<'a, S: Segments + Sync> Search<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    fn new(
        run: Run<'a, S>,
        log: LogReader,
        range: Range,
        (moment, end): (Moment, u64),
    ) -> Result<Self, StepsError<S::Error>> {
        let wanted = Wanted {
            level: Level::Memory,
            window: Window {
                first: 1,
                last: run.path.length(),
            },
            within: Within::default(),
            function: None,
            range: Some(range),
        };
        Ok(Self {
            steps: Steps::before(run, log, wanted)?,
            run,
            wanted,
            range,
            moment,
            bytes: vec![Byte::default(); range.length as usize],
            held: None,
            end,
        })
    }

    /// Follows the run from its current position until all accesses after the moment are known.
    fn follow(&mut self) -> Result<(), StepsError<S::Error>> {
        // This is the time at which to look for the next interval to follow.
        let mut until = 0;
        loop {
            let now = self.steps.follower.machine.time();
            if self.held.is_some() && now >= self.end {
                return Ok(());
            }
            if let Some(checkpoints) = self.run.checkpoints
                && self.held.is_some()
                && now >= until
            {
                let here = checkpoints.interval_at(now + 1)?;
                if self.skip(checkpoints, here)? {
                    return Ok(());
                }
                let now = self.steps.follower.machine.time();
                let interval = checkpoints.interval_at(now + 1)?;
                let times = interval.map(|interval| checkpoints.times(interval));
                until = times.transpose()?.map_or(u64::MAX, |(_, after)| after);
            }
            if self.held.is_some() && self.steps.follower.machine.time() >= self.end {
                return Ok(());
            }
            let Some(visit) = self.steps.follower.advance()? else {
                return Ok(());
            };
            if self.held.is_none() && self.moment.time <= visit.last() {
                self.execute_at(visit)?;
            } else {
                match self.steps.execute(visit) {
                    // The recording was cut off, so later events are unknown.
                    Err(StepsError::Machine(MachineError::LogEnds { .. }))
                        if self.held.is_some() =>
                    {
                        return Ok(());
                    }
                    executed => executed?,
                }
            }
            self.note();
            if self.held.is_some() && self.bytes.iter().all(Byte::is_known) {
                return Ok(());
            }
        }
    }

    /// Goes to the first interval, beginning with `here`, that may access bytes whose next access
    /// is still unknown. Returns `true` if there is no such interval.
    fn skip(
        &mut self,
        checkpoints: &'a FileCheckpoints,
        here: Option<u64>,
    ) -> Result<bool, StepsError<S::Error>> {
        let Some(here) = here else {
            return Ok(false);
        };
        let mut first: Option<u64> = None;
        for reads in [true, false] {
            let is_missing = |byte: &Byte| {
                if reads {
                    byte.read_next.is_never()
                } else {
                    byte.written_next.is_never()
                }
            };
            let mut address = self.range.address;
            for some in self.bytes.chunk_by(|a, b| is_missing(a) == is_missing(b)) {
                let part = (address, some.len() as u64);
                address = address.wrapping_add(part.1);
                if is_missing(&some[0]) {
                    let found = checkpoints.first_touch(self.range.memory, part, here, reads)?;
                    let nearest = first.into_iter().chain(found).min();
                    first = nearest;
                }
            }
        }
        match first {
            Some(first) if first > here => self.steps.follower.go_to(checkpoints, first)?,
            Some(_) => {}
            None if checkpoints.end() >= self.run.path.length() => return Ok(true),
            // The index does not cover the run after the last checkpoint.
            None => {
                let last = checkpoints.intervals().saturating_sub(1);
                if last > here {
                    self.steps.follower.go_to(checkpoints, last)?;
                }
            }
        }
        Ok(false)
    }

    /// Executes the node that contains the time, and reads the bytes at that time.
    fn execute_at(&mut self, visit: Visit) -> Result<(), StepsError<S::Error>> {
        let range = self.range;
        self.need()?;
        let Moment { time, op } = self.moment;
        if time <= visit.start && op.is_none() {
            self.held = Some(contents(&self.steps.follower.machine.state, range)?);
            return self.steps.execute(visit);
        }
        let mut held = None;
        self.steps.execute_until(visit, self.moment, |inside| {
            held = Some(contents(inside.state, range));
        })?;
        self.held = match held {
            Some(held) => Some(held?),
            None => Some(self.contents()?),
        };
        Ok(())
    }

    /// For bytes without a known writer, finds the last writers before `first`, if the index and
    /// the values show them.
    fn find_indexed(
        &mut self,
        mut writes: LastWrites<'a, '_, S>,
        first: u64,
    ) -> Result<(), LastWriteError<S::Error>> {
        let missing = self.bytes.iter().filter(|byte| byte.written.is_never());
        // For more bytes, following the run is faster.
        if missing.count() > FEW {
            return Ok(());
        }
        let mut known: Vec<(LastWrite, Rc<Step>)> = Vec::new();
        for (byte, address) in self.bytes.iter_mut().zip(self.range.address..) {
            if !byte.written.is_never() {
                continue;
            }
            let Some(write) = writes.before(self.range.memory, address, first + 1)? else {
                continue;
            };
            if let Some((_, step)) = known.iter().find(|(other, _)| *other == write) {
                byte.written = NearestAccess::Step(Rc::clone(step));
            } else if let Some(step) = writes.step(&write)? {
                let step = Rc::new(step);
                known.push((write, Rc::clone(&step)));
                byte.written = NearestAccess::Step(step);
            }
        }
        Ok(())
    }

    /// Finds the last writers of bytes without a known writer. Goes back to the intervals before
    /// `first` that wrote these bytes last.
    fn last_writes(
        &mut self,
        checkpoints: &'a FileCheckpoints,
        first: u64,
    ) -> Result<(), StepsError<S::Error>> {
        let Some(before) = checkpoints.interval_at(first + 1)? else {
            return Ok(());
        };
        // For each interval, the time of its last write, and the bytes.
        let mut intervals: BTreeMap<u64, (u64, Vec<usize>)> = BTreeMap::new();
        for at in 0..self.bytes.len() {
            if !self.bytes[at].written.is_never() {
                continue;
            }
            let address = self.range.address + at as u64;
            let found = checkpoints.last_write(self.range.memory, address, before)?;
            if let Some((interval, time)) = found {
                let known = intervals.entry(interval).or_default();
                known.0 = known.0.max(time);
                known.1.push(at);
            }
        }
        for (interval, (last, bytes)) in intervals {
            self.steps.follower.go_to(checkpoints, interval)?;
            let mut found = vec![Byte::default(); self.bytes.len()];
            while let Some(visit) = self.steps.follower.advance()?
                && visit.start <= last
            {
                self.steps.execute(visit)?;
                for step in self.steps.taken() {
                    note(&mut found, self.range, step, true);
                }
            }
            for at in bytes {
                self.bytes[at].written = std::mem::take(&mut found[at].written);
            }
        }
        Ok(())
    }

    /// Marks bytes without a known access after the moment as not fully searched. According to the
    /// written lines, some bytes are never written again, so their search for writes is complete.
    fn not_looked_at(&mut self, writers: &Writers) -> Result<(), StepsError<S::Error>> {
        let end = self.steps.follower.machine.time();
        if end >= self.run.path.length() {
            return Ok(());
        }
        let all = self.run.path.segments().summaries();
        let here = all.partition_point(|stretch| stretch.before <= end);
        for at in 0..self.bytes.len() {
            // The last followed stretch is the stretch before `here`.
            if self.bytes[at].written_next.is_never()
                && self
                    .last_stretch(writers, writers.stretches(), at)?
                    .is_some_and(|last| last + 1 >= here)
            {
                self.bytes[at].written_next = NearestAccess::Beyond(end);
            }
        }
        for byte in &mut self.bytes {
            if byte.read_next.is_never() {
                byte.read_next = NearestAccess::Beyond(end);
            }
        }
        Ok(())
    }

    /// Finds the last writers of bytes without a known writer. Goes back to the stretches before
    /// `first` that wrote these bytes last. Follows the run from snapshots to the ends of these
    /// stretches, about `most` blocks in total. Returns the time from which the search is complete.
    fn last_writes_in_stretches(
        &mut self,
        (writers, log): StretchIndex<'_>,
        mut first: u64,
        most: u64,
    ) -> Result<u64, StepsError<S::Error>> {
        let Some(snapshots) = self.run.snapshots else {
            return Ok(first);
        };
        let all = self.run.path.segments().summaries();
        let mut left = most;
        let mut missing = self.missing();
        while first > 0 && !missing.is_empty() {
            let before = all.partition_point(|stretch| stretch.before < first);
            let mut last = BTreeSet::new();
            let mut open = Vec::with_capacity(missing.len());
            for at in missing {
                let found = self.last_stretch(writers, before, at)?;
                last.extend(found);
                open.extend(found.map(|_| at));
            }
            missing = open;
            let Some(&newest) = last.last() else {
                return Ok(0);
            };
            let Some(summary) = all.get(newest) else {
                return Err(SnapshotError::Damaged("a stretch that does not exist").into());
            };
            let (begin, end) = (summary.before, summary.before + summary.length);
            if left == 0 {
                return Ok(end);
            }
            let snapshot = snapshots.at(begin);
            let from = snapshot.map_or(0, |number| snapshots.times()[number]);
            let writing = if self.is_watched(writers, before, &missing) {
                Some(last)
            } else {
                let first = all.partition_point(|of| of.before < from);
                self.all_stretches(writers, first..before, &missing)?
            };
            // Executing all stretches again is faster than examining many of them one by one.
            if writing.is_none() && self.watch(writers, end) {
                first = end;
                continue;
            }
            left = left.saturating_sub(end - from);
            match snapshot {
                Some(number) => {
                    self.steps.follower.go_to_snapshot(snapshots, number)?;
                }
                None => {
                    let log = log().map_err(MachineError::from)?;
                    self.steps = Steps::before(self.run, log, self.wanted)?;
                }
            }
            let mut found = vec![Byte::default(); self.bytes.len()];
            self.follow_writes(end, writing.as_ref(), &mut found)?;
            for &at in &missing {
                self.bytes[at].written = std::mem::take(&mut found[at].written);
            }
            missing.retain(|&at| self.bytes[at].written.is_never());
            first = from;
        }
        Ok(0)
    }

    /// Follows the run to the end of a stretch and records the writers of the bytes. Observes only
    /// the `writing` stretches, or all stretches if `writing` is `None`.
    fn follow_writes(
        &mut self,
        end: u64,
        writing: Option<&BTreeSet<usize>>,
        found: &mut [Byte],
    ) -> Result<(), StepsError<S::Error>> {
        let (path, now) = (self.run.path, self.steps.follower.machine.time());
        path.read_ahead(now + 1, end, || self.follow_observing(end, writing, found))
    }

    fn follow_observing(
        &mut self,
        end: u64,
        writing: Option<&BTreeSet<usize>>,
        found: &mut [Byte],
    ) -> Result<(), StepsError<S::Error>> {
        let all = self.run.path.segments().summaries();
        // The end of the current stretch, and whether it is observed.
        let (mut until, mut is_observed) = (0, false);
        while self.steps.follower.machine.time() < end
            && let Some(visit) = self.steps.follower.advance()?
        {
            if visit.start > until {
                let next = all.partition_point(|of| of.before < visit.start);
                until = all.get(next).map_or(u64::MAX, |next| next.before);
                is_observed = writing.is_none_or(|writing| writing.contains(&(next - 1)));
            }
            if !is_observed {
                self.steps.follower.execute(visit, &mut ())?;
                continue;
            }
            self.steps.execute(visit)?;
            for step in self.steps.taken() {
                note(found, self.range, step, true);
            }
        }
        Ok(())
    }

    /// Follows the run to the beginning of the stretch that contains the moment. Observes only the
    /// stretches that may write some of the bytes.
    fn follow_to_stretch(&mut self, writers: &Writers) -> Result<(), StepsError<S::Error>> {
        let all = self.run.path.segments().summaries();
        let stretch_at = |time: u64| all.partition_point(|of| of.before < time).saturating_sub(1);
        let begin = stretch_at(self.steps.follower.machine.time() + 1);
        let here = stretch_at(self.moment.time);
        let every = Vec::from_iter(0..self.bytes.len());
        let writing = self.all_stretches(writers, begin..here, &every)?;
        let mut bytes = std::mem::take(&mut self.bytes);
        let end = all.get(here).map_or(0, |here| here.before);
        let followed = self.follow_writes(end, writing.as_ref(), &mut bytes);
        self.bytes = bytes;
        followed
    }

    /// Returns the positions, in the range, of the bytes without a known writer.
    fn missing(&self) -> Vec<usize> {
        let all = 0..self.bytes.len();
        Vec::from_iter(all.filter(|&at| self.bytes[at].written.is_never()))
    }

    /// Watches the bytes without a known writer in all stretches before a time. Returns `false` if
    /// the bytes are too far apart to be watched.
    fn watch(&self, writers: &Writers, before: u64) -> bool {
        let all = self.run.path.segments().summaries();
        let before = all.partition_point(|stretch| stretch.before < before);
        let regions = self.regions(&self.missing());
        if regions.len() > MOST_WATCHED {
            return false;
        }
        let memory = self.range.memory;
        for &address in &regions {
            writers.watch(before, memory, address);
        }
        self.is_watched(writers, before, &self.missing())
    }

    /// Whether all these bytes have been watched in the first `end` stretches.
    fn is_watched(&self, writers: &Writers, end: usize, bytes: &[usize]) -> bool {
        let watched = |address| writers.watched_before(end, self.range.memory, address);
        let regions = self.regions(bytes);
        regions
            .into_iter()
            .all(|address| watched(address).is_some())
    }

    /// Returns the regions that contain the bytes.
    fn regions(&self, bytes: &[usize]) -> BTreeSet<u64> {
        let addresses = bytes.iter().map(|&at| self.range.address + at as u64);
        addresses.map(WatchedBytes::region).collect()
    }

    /// Marks the bytes whose writers were not found. The search went back only to time `from`.
    fn not_found(&mut self, from: u64) {
        if from > 0 {
            for at in self.missing() {
                self.bytes[at].written = NearestAccess::Beyond(from + 1);
            }
        }
    }

    /// Returns the last stretch, among the first `end`, that may have written a byte.
    fn last_stretch(
        &self,
        writers: &Writers,
        end: usize,
        at: usize,
    ) -> Result<Option<usize>, WrittenLinesError> {
        writers.last_before(end, self.range.memory, self.range.address + at as u64)
    }

    /// Returns the stretches in a range that may have written one of the bytes, or `None` if there
    /// are more than [`FEW`].
    fn all_stretches(
        &self,
        writers: &Writers,
        stretches: std::ops::Range<usize>,
        bytes: &[usize],
    ) -> Result<Option<BTreeSet<usize>>, WrittenLinesError> {
        let mut found = BTreeSet::new();
        let addresses = bytes.iter().map(|&at| self.range.address + at as u64);
        let lines = BTreeSet::from_iter(addresses.map(|address| address / LINE));
        for line in lines {
            let mut end = stretches.end;
            let memory = self.range.memory;
            while let Some(last) = writers.lines().last_before(end, memory, line * LINE, 1)?
                && last >= stretches.start
            {
                if found.insert(last) && found.len() > FEW {
                    return Ok(None);
                }
                end = last;
            }
        }
        Ok(Some(found))
    }

    fn note(&mut self) {
        for step in self.steps.taken() {
            let before = is_before(&step, self.moment);
            note(&mut self.bytes, self.range, step, before);
        }
    }

    fn need(&mut self) -> Result<(), StepsError<S::Error>> {
        let Range {
            memory,
            address,
            length,
        } = self.range;
        self.steps.follower.need(memory, address, length)
    }

    fn contents(&mut self) -> Result<MemoryAnswer, StepsError<S::Error>> {
        self.need()?;
        contents(&self.steps.follower.machine.state, self.range)
    }
}

impl Byte {
    fn is_known(&self) -> bool {
        !self.read_next.is_never() && !self.written_next.is_never()
    }
}

/// Whether a step comes before a moment.
fn is_before(step: &Step, moment: Moment) -> bool {
    let within = || step.op.zip(moment.op).is_some_and(|(op, at)| op < at);
    step.time < moment.time || step.time == moment.time && within()
}

/// Records the effect of a step on the bytes of a range, before or after the requested moment.
fn note(bytes: &mut [Byte], range: Range, step: Step, before: bool) {
    let (read, written) = (step.what.read(), step.what.written());
    let step = Rc::new(step);
    if let Some(written) = written {
        for byte in touched(bytes, range, written) {
            if before {
                byte.written = NearestAccess::Step(Rc::clone(&step));
            } else if byte.written_next.is_never() {
                byte.written_next = NearestAccess::Step(Rc::clone(&step));
            }
        }
    }
    if let Some(read) = read.filter(|_| !before) {
        for byte in touched(bytes, range, read) {
            if byte.read_next.is_never() {
                byte.read_next = NearestAccess::Step(Rc::clone(&step));
            }
        }
    }
}

/// Returns the bytes of a range that are also in another range.
fn touched(bytes: &mut [Byte], range: Range, by: Range) -> &mut [Byte] {
    if !overlap(range, by) {
        return &mut [];
    }
    let first = by.address.saturating_sub(range.address);
    let last = by.address.saturating_add(by.length - 1) - range.address;
    let end = last.saturating_add(1).min(range.length);
    &mut bytes[first as usize..end as usize]
}

/// Returns the contents of a range, and the size of the memory.
fn contents<E: std::error::Error + 'static>(
    state: &State,
    range: Range,
) -> Result<MemoryAnswer, StepsError<E>> {
    let count = state.memories.len();
    let missing = StepsError::NoMemory {
        memory: range.memory,
        count,
    };
    let memory = state.memories.get(range.memory as usize).ok_or(missing)?;
    let size = memory.bytes.len() as u64;
    let Ok(place) = memory.range(range.address, range.length) else {
        return Err(StepsError::Outside {
            memory: range.memory,
            size,
            address: range.address.max(size),
        });
    };
    let table = state.tables.first();
    Ok(MemoryAnswer {
        bytes: memory.bytes[place].to_vec(),
        size,
        table: table.map_or_else(Vec::new, |table| table.elements.clone()),
        parts: Vec::new(),
    })
}

/// Groups adjacent bytes with the same history into parts.
fn parts(bytes: &[Byte], range: Range) -> Vec<MemoryPart> {
    let groups = bytes.chunk_by(|a, b| {
        a.written.is_same(&b.written)
            && a.read_next.is_same(&b.read_next)
            && a.written_next.is_same(&b.written_next)
    });
    let mut address = range.address;
    let parts = groups.map(|group| {
        let length = group.len() as u64;
        let part = MemoryPart {
            range: Range {
                memory: range.memory,
                address,
                length,
            },
            written: group[0].written.clone(),
            read_next: group[0].read_next.clone(),
            written_next: group[0].written_next.clone(),
        };
        address = address.wrapping_add(length);
        part
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::{Byte, Range, touched};

    #[test]
    fn touched_bytes_are_those_of_both_ranges() {
        for (address, length) in (0..12).flat_map(|a| (0..12).map(move |l| (a, l))) {
            let range = Range {
                memory: 0,
                address: 4,
                length: 5,
            };
            let by = Range {
                memory: 0,
                address,
                length,
            };
            let expected = (4..9).filter(|at| (address..address + length).contains(at));
            let mut bytes = vec![Byte::default(); 5];
            let base = bytes.as_ptr() as usize;
            let found = touched(&mut bytes, range, by);
            let first = (found.as_ptr() as usize).wrapping_sub(base) / size_of::<Byte>();
            let found = (0..found.len()).map(|i| 4 + (first + i) as u64);
            assert!(expected.eq(found), "{by:?}");
        }
    }
}
