//! Finds the nearest access to bytes of memory, in either direction.
//!
//! Checkpoints show which intervals read and wrote each word. Recordings without checkpoints show
//! only which stretches wrote a line of memory, so reads are found by following the run.

use afterimage_replay::Writers;
use afterimage_replay::steps::{
    CheckpointError, FileCheckpoints, Follower, Level, Observer, Range, Run, Steps, Wanted, What,
    Within, overlap,
};
use afterimage_replay::whole_path::Window;
use afterimage_wpp::{Segments, Visit};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::{Debugger, Direction, Position};

/// The maximum number of bytes to look up one by one.
const FEW: u64 = 16;
/// The number of stretches to follow without finding a write, because they write only near the
/// bytes. After that, the run is executed again to find which stretches write the bytes.
const MISSES: usize = 2;
/// The number of blocks to follow first in search of the last read. Each later part has twice as
/// many blocks as the previous one, up to [`MOST`].
const FIRST: u64 = 1 << 16;
const MOST: u64 = 1 << 24;
/// The number of blocks to follow between two checks for cancellation.
const CHECK: u64 = 1 << 20;

/// A kind of access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// Reads, including those of the host and of copies.
    Read,
    /// Writes, including those of the host and of copies.
    Write,
    /// Reads and writes.
    ReadWrite,
}

/// Accesses to some bytes.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    pub access: Access,
    pub range: Range,
}

impl Watched {
    fn reads(self) -> bool {
        self.access != Access::Write
    }

    fn writes(self) -> bool {
        self.access != Access::Read
    }

    fn is_made_by(self, what: &What) -> bool {
        let is_here = |range| overlap(range, self.range);
        self.reads() && what.read().is_some_and(is_here)
            || self.writes() && what.written().is_some_and(is_here)
    }

    /// Returns the nearest of the intervals that `find` returns for reads and for writes.
    fn nearest(
        self,
        direction: Direction,
        find: impl Fn(bool) -> Result<Option<u64>, CheckpointError>,
    ) -> Result<Option<u64>> {
        let reads = if self.reads() { find(true)? } else { None };
        let writes = if self.writes() { find(false)? } else { None };
        let both = reads.into_iter().chain(writes);
        Ok(match direction {
            Direction::Forward => both.min(),
            Direction::Backward => both.max(),
        })
    }
}

/// Observes whether a node makes one of the accesses.
struct Watch {
    watched: Watched,
    is_made: bool,
}

impl Watch {
    #[inline]
    fn note(&mut self, is_wanted: bool, range: Range) {
        self.is_made |= is_wanted && overlap(range, self.watched.range);
    }
}

impl Observer for Watch {
    const REGISTERS: bool = false;

    #[inline]
    fn read(&mut self, _: usize, range: Range) {
        self.note(self.watched.reads(), range);
    }

    #[inline]
    fn write(&mut self, _: usize, range: Range) {
        self.note(self.watched.writes(), range);
    }

    fn copy(&mut self, _: usize, from: Range, to: Range) {
        self.note(self.watched.reads(), from);
        self.note(self.watched.writes(), to);
    }

    fn host_read(&mut self, range: Range) {
        self.note(self.watched.reads(), range);
    }

    fn host_write(&mut self, range: Range) {
        self.note(self.watched.writes(), range);
    }
}

impl Debugger<'_> {
    /// Returns where bytes are accessed next, or were accessed last. The search may end with `None`
    /// once it is beyond `bound`. The position is right after the access in a forward search, and
    /// right before it in a backward search.
    pub(super) fn nearest_access(
        &self,
        watched: Watched,
        from: Position,
        direction: Direction,
        bound: Option<Position>,
    ) -> Result<Option<Position>> {
        let found = self.access(watched, from, direction, bound)?;
        match (found, direction) {
            (Some(at), Direction::Forward) => {
                // The run may have ended at the access.
                let after = self.step_operator(at, direction)?.unwrap_or(at);
                Ok(Some(after).filter(|after| *after > from))
            }
            (found, _) => Ok(found),
        }
    }

    /// Returns the position right before the next or last write to bytes. A write by the operator
    /// at `from` does not count as the next write. Ignores blocks outside of `window`.
    pub(crate) fn nearest_write(
        &self,
        range: Range,
        from: Position,
        direction: Direction,
        window: Window,
    ) -> Result<Option<Position>> {
        let access = Access::Write;
        let watched = Watched { access, range };
        let from = match direction {
            Direction::Forward => match self.step_operator(from, direction)? {
                Some(next) => next,
                None => return Ok(None),
            },
            Direction::Backward => from,
        };
        let end = match direction {
            Direction::Forward => window.last,
            Direction::Backward => window.first,
        };
        let found = self.access(watched, from, direction, Some(self.first_of(end)?))?;
        Ok(found.filter(|at| (window.first..=window.last).contains(&at.time)))
    }

    /// Returns the position right before the next or last access. The search may end with `None`
    /// once it is beyond `bound`.
    fn access(
        &self,
        watched: Watched,
        from: Position,
        direction: Direction,
        bound: Option<Position>,
    ) -> Result<Option<Position>> {
        match (self.session().writers(), self.run.checkpoints) {
            (Some(writers), _) if watched.access == Access::Write => {
                self.by_stretches(writers, watched, (from, direction), bound)
            }
            (_, Some(checkpoints)) => self.by_intervals(checkpoints, watched, (from, direction)),
            (_, None) => match direction {
                Direction::Forward => self.next_by_following(watched, from, bound),
                Direction::Backward => self.last_by_following(watched, from, bound),
            },
        }
    }

    /// Finds the nearest access beyond a position, within some blocks.
    fn access_in(
        &self,
        watched: Watched,
        (from, direction): (Position, Direction),
        (first, last): (u64, u64),
    ) -> Result<Option<Position>> {
        let near = self.near(first)?;
        let run = Run {
            snapshots: near.as_deref().or(self.run.snapshots),
            ..self.run
        };
        let wanted = Wanted {
            level: Level::Memory,
            window: Window { first, last },
            within: Within::default(),
            function: None,
            range: Some(watched.range),
        };
        let log = self.session().file().log()?;
        let mut steps = Steps::new(run, log, wanted)?;
        let mut found = None;
        while let Some(step) = steps.next()? {
            let Some(op) = step.op.filter(|_| watched.is_made_by(&step.what)) else {
                continue;
            };
            let at = Position::new(step.time, op);
            match direction {
                // An access before the current position is not the next access.
                Direction::Forward if at >= from => return Ok(Some(at)),
                Direction::Backward if at < from => found = Some(at),
                _ => {}
            }
        }
        Ok(found)
    }

    /// Follows the run in a window, and calls `each` for every node that makes such an access,
    /// until `each` returns `true`.
    fn each_accessing(
        &self,
        watched: Watched,
        (first, last): (u64, u64),
        mut each: impl FnMut(Visit) -> Result<bool>,
    ) -> Result<()> {
        let mut follower = Follower::new(self.run, self.session().file().log()?)?;
        follower.skip_to(first)?;
        let mut watch = Watch {
            watched,
            is_made: false,
        };
        let mut check = 0;
        while let Some(visit) = follower.advance()?
            && visit.start <= last
        {
            if visit.start >= check {
                self.check()?;
                check = visit.start + CHECK;
            }
            if visit.last() < first {
                follower.execute(visit, &mut ())?;
                continue;
            }
            follower.execute(visit, &mut watch)?;
            if std::mem::take(&mut watch.is_made) && each(visit)? {
                break;
            }
        }
        Ok(())
    }

    fn next_by_following(
        &self,
        watched: Watched,
        from: Position,
        bound: Option<Position>,
    ) -> Result<Option<Position>> {
        let last = bound.map_or(self.length(), |bound| bound.time);
        let mut found = None;
        self.each_accessing(watched, (from.time, last), |visit| {
            let window = (visit.start.max(from.time), visit.last());
            found = self.access_in(watched, (from, Direction::Forward), window)?;
            Ok(found.is_some())
        })?;
        Ok(found)
    }

    fn last_by_following(
        &self,
        watched: Watched,
        from: Position,
        bound: Option<Position>,
    ) -> Result<Option<Position>> {
        let here = self.path().cursor().seek(from.time)?;
        let here = here.context("a position is not in the path")?;
        let beyond = (from, Direction::Backward);
        if let Some(found) = self.access_in(watched, beyond, (here.start, from.time))? {
            return Ok(Some(found));
        }
        let mut end = here.start - 1;
        let mut size = FIRST;
        while end > 0 && bound.is_none_or(|bound| bound.time <= end) {
            // A part begins at a snapshot, because the run is followed from there anyway.
            let snapshots = self.run.snapshots;
            let number = snapshots.and_then(|all| all.at(end.saturating_sub(size)));
            let before = snapshots.zip(number);
            let before = before.map_or(0, |(all, number)| all.times()[number]);
            let mut last = None;
            self.each_accessing(watched, (before + 1, end), |visit| {
                last = Some(visit);
                Ok(false)
            })?;
            let Some(visit) = last else {
                end = before;
                size = (2 * size).min(MOST);
                continue;
            };
            let window = (visit.start, visit.last());
            if let Some(found) = self.access_in(watched, beyond, window)? {
                return Ok(Some(found));
            }
            end = visit.start - 1;
        }
        Ok(None)
    }

    fn by_stretches(
        &self,
        writers: &Writers,
        watched: Watched,
        (from, direction): (Position, Direction),
        bound: Option<Position>,
    ) -> Result<Option<Position>> {
        let range = watched.range;
        let all = self.path().segments().summaries();
        let holding = |time: u64| all.partition_point(|of| of.before < time).saturating_sub(1);
        let of = |number: usize| {
            let summary = &all[number];
            (summary.before + 1, summary.before + summary.length)
        };
        let mut here = holding(from.time);
        let mut misses = 0;
        loop {
            self.check()?;
            let (first, last) = of(here);
            let window = match direction {
                Direction::Forward => (first.max(from.time), last),
                Direction::Backward => (first, last.min(from.time)),
            };
            if let Some(found) = self.access_in(watched, (from, direction), window)? {
                return Ok(Some(found));
            }
            misses += 1;
            if misses == MISSES && range.length <= FEW {
                let end = all.len().saturating_sub(1);
                for byte in range.address..range.address.saturating_add(range.length) {
                    writers.watch(end, range.memory, byte);
                }
            }
            let next = match direction {
                Direction::Backward => self.writing_before(writers, range, here)?,
                Direction::Forward => self.writing_after(writers, range, here)?,
            };
            match (next, bound, direction) {
                (None, ..) => return Ok(None),
                (Some(next), Some(bound), Direction::Forward) if of(next).0 > bound.time => {
                    return Ok(None);
                }
                (Some(next), Some(bound), Direction::Backward) if of(next).1 < bound.time => {
                    return Ok(None);
                }
                (Some(next), ..) => here = next,
            }
        }
    }

    /// Finds the last of the first `end` stretches that may write some of the bytes.
    fn writing_before(&self, writers: &Writers, range: Range, end: usize) -> Result<Option<usize>> {
        let Range {
            memory,
            address,
            length,
        } = range;
        if length > FEW {
            return Ok(writers.lines().last_before(end, memory, address, length)?);
        }
        let mut last = None;
        for byte in address..address.saturating_add(length) {
            last = last.max(writers.last_before(end, memory, byte)?);
        }
        Ok(last)
    }

    /// Returns the first stretch after `here` that may write some of the bytes.
    fn writing_after(&self, writers: &Writers, range: Range, here: usize) -> Result<Option<usize>> {
        let count = writers.stretches();
        let mut ahead = 1;
        loop {
            let end = here.saturating_add(1).saturating_add(ahead).min(count);
            let mut first = None;
            let mut before = end;
            while let Some(found) = self.writing_before(writers, range, before)?
                && found > here
            {
                first = Some(found);
                before = found;
            }
            if first.is_some() || end == count {
                return Ok(first);
            }
            ahead = ahead.saturating_mul(2);
        }
    }

    fn by_intervals(
        &self,
        checkpoints: &FileCheckpoints,
        watched: Watched,
        (from, direction): (Position, Direction),
    ) -> Result<Option<Position>> {
        let Range {
            memory,
            address,
            length,
        } = watched.range;
        let part = (address, length);
        // The index does not cover the run after the last checkpoint.
        let end = checkpoints.end();
        let in_window = |window| self.access_in(watched, (from, direction), window);
        match direction {
            Direction::Forward => {
                let mut time = from.time;
                while let Some(here) = checkpoints.interval_at(time)? {
                    self.check()?;
                    let touched = watched.nearest(direction, |reads| {
                        checkpoints.first_touch(memory, part, here, reads)
                    })?;
                    let Some(interval) = touched else {
                        time = end + 1;
                        break;
                    };
                    let (before, last) = checkpoints.times(interval)?;
                    let found = in_window((time.max(before + 1), last))?;
                    if found.is_some() {
                        return Ok(found);
                    }
                    time = last + 1;
                }
                if time <= self.length() {
                    in_window((time, self.length()))
                } else {
                    Ok(None)
                }
            }
            Direction::Backward => {
                if from.time > end
                    && let Some(found) = in_window((end + 1, from.time))?
                {
                    return Ok(Some(found));
                }
                let here = checkpoints.interval_at(from.time)?;
                let mut until = here.map_or(checkpoints.intervals(), |here| here + 1);
                while let Some(interval) = watched.nearest(direction, |reads| {
                    checkpoints.last_touch(memory, part, until, reads)
                })? {
                    self.check()?;
                    let (before, last) = checkpoints.times(interval)?;
                    let found = in_window((before + 1, last.min(from.time)))?;
                    if found.is_some() {
                        return Ok(found);
                    }
                    until = interval;
                }
                Ok(None)
            }
        }
    }
}
