//! Finds the nearest write to bytes of memory, in either direction.

use afterimage_replay::Writers;
use afterimage_replay::steps::{
    Level, NearestAccess, Range, Run, Steps, Wanted, Within, WriteIndex, written_before,
};
use afterimage_replay::whole_path::Window;
use afterimage_wpp::Segments;
use anyhow::Result;

use super::{Debugger, Direction, Position};

/// The maximum number of bytes to look up one by one.
const FEW: u64 = 16;
/// The maximum number of stretches to follow in vain, because they write only near the bytes. After
/// that, the run is executed again to find which stretches write the bytes.
const MISSES: usize = 2;

impl Debugger<'_> {
    /// Returns where bytes are written next, or were written last. The search may end with `None`
    /// once it is beyond `bound`. The position is right after the write going forward, and right
    /// before it going backward.
    pub(super) fn nearest_write(
        &self,
        range: Range,
        from: Position,
        direction: Direction,
        bound: Option<Position>,
    ) -> Result<Option<Position>> {
        let write = match (direction, self.session().writers()) {
            (Direction::Forward, None) => self.forward_by_checkpoints(range, from)?,
            (Direction::Backward, None) => self.backward_by_values(range, from)?,
            (_, Some(writers)) => self.by_stretches(writers, range, from, direction, bound)?,
        };
        match (write, direction) {
            (Some(write), Direction::Forward) => self.after(write).map(Some),
            (write, _) => Ok(write),
        }
    }

    /// Returns the position after an operator.
    fn after(&self, at: Position) -> Result<Position> {
        let ops = self.ops(self.block(at.time)?);
        if ops.is_some_and(|ops| at.op + 1 < ops.end) {
            return Ok(Position {
                op: at.op + 1,
                ..at
            });
        }
        if at.time < self.length() {
            self.first_of(at.time + 1)
        } else {
            Ok(at)
        }
    }

    /// Finds the nearest write beyond a position, within some blocks.
    fn write_in(
        &self,
        range: Range,
        from: Position,
        direction: Direction,
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
            range: Some(range),
        };
        let log = self.session().file().log()?;
        let mut steps = Steps::new(run, log, wanted)?;
        let mut found = None;
        while let Some(step) = steps.next()? {
            let (Some(op), Some(_)) = (step.op, step.what.written()) else {
                continue;
            };
            let at = Position::new(step.time, op);
            match direction {
                // A write before the current position is not the next write.
                Direction::Forward if at >= from => return Ok(Some(at)),
                Direction::Backward if at < from => found = Some(at),
                _ => {}
            }
        }
        Ok(found)
    }

    fn by_stretches(
        &self,
        writers: &Writers,
        range: Range,
        from: Position,
        direction: Direction,
        bound: Option<Position>,
    ) -> Result<Option<Position>> {
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
            if let Some(found) = self.write_in(range, from, direction, window)? {
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

    fn backward_by_values(&self, range: Range, from: Position) -> Result<Option<Position>> {
        let log = self.session().file().log()?;
        let values = self.session().values()?;
        let index = WriteIndex::Values(&values);
        let found = written_before(self.run, log, index, range, from.at())?;
        let steps = found.iter().filter_map(NearestAccess::step);
        let at = steps.filter_map(|step| Some(Position::new(step.time, step.op?)));
        Ok(at.max())
    }

    fn forward_by_checkpoints(&self, range: Range, from: Position) -> Result<Option<Position>> {
        let forward = Direction::Forward;
        let Some(checkpoints) = self.run.checkpoints else {
            let window = (from.time, self.length());
            return self.write_in(range, from, forward, window);
        };
        let mut time = from.time;
        while let Some(here) = checkpoints.interval_at(time)? {
            self.check()?;
            let (address, length) = (range.address, range.length);
            let touched = checkpoints.first_touch(range.memory, (address, length), here, false)?;
            let Some(interval) = touched else {
                time = checkpoints.end() + 1;
                break;
            };
            let (before, last) = checkpoints.times(interval)?;
            let window = (time.max(before + 1), last);
            if let Some(found) = self.write_in(range, from, forward, window)? {
                return Ok(Some(found));
            }
            time = last + 1;
        }
        if time <= self.length() {
            self.write_in(range, from, forward, (time, self.length()))
        } else {
            Ok(None)
        }
    }
}
