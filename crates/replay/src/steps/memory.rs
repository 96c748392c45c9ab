//! What memory held at a time, and who wrote and read it.

use std::collections::BTreeMap;
use std::rc::Rc;

use afterimage_machine::{MachineError, Range, State};
use afterimage_trace::LogReader;
use afterimage_wet::{FileEpochs, WholeTrace};
use afterimage_wpp::{Segments, Visit};

use super::follow::Run;
use super::step::overlap;
use super::{
    FileCheckpoints, LastWrite, LastWriteError, LastWrites, Level, Step, Steps, StepsError, Wanted,
    Within,
};
use crate::paths::{At as Moment, Window};

/// Of how many bytes the last writes are looked for one by one.
const FEW: usize = 64;
/// Most bytes that can be asked about at once.
pub const LARGEST_RANGE: u64 = 1 << 16;

/// When.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Right before something is executed.
    Before(Moment),
    /// When the run has ended.
    End,
}

/// Bytes next to each other of which the same is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPart {
    /// Which bytes.
    pub range: Range,
    /// The last write before; `None` if there was none: the module says what it holds, or it is zero.
    pub written: Option<Rc<Step>>,
    /// The next read after.
    pub read_next: Option<Rc<Step>>,
    /// The next write after.
    pub written_next: Option<Rc<Step>>,
}

/// What memory held, and what happened to it before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryAnswer {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many bytes the memory had.
    pub size: u64,
    /// All of the bytes, in parts.
    pub parts: Vec<MemoryPart>,
}

/// What is known of a byte.
#[derive(Clone, Default)]
struct Byte {
    written: Option<Rc<Step>>,
    read_next: Option<Rc<Step>>,
    written_next: Option<Rc<Step>>,
}

/// What some bytes, at most [`LARGEST_RANGE`], held at a time, who wrote them last, and what happens to each of them next.
///
/// With checkpoints only those intervals are followed in which that happens, otherwise all of the run up to there. With values, those in which
/// something was written last are mostly not followed either.
///
/// # Errors
/// If the bytes are not there at that time, or the run cannot be followed, or what is stored is damaged.
pub fn memory_at<'v, S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    values: Option<&'v WholeTrace<'v, S, FileEpochs>>,
    range: Range,
    at: At,
) -> Result<MemoryAnswer, LastWriteError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let length = run.path.length();
    let wanted = Wanted {
        level: Level::Memory,
        window: Window {
            first: 1,
            last: length,
        },
        within: Within::default(),
        function: None,
        range: Some(range),
    };
    let moment = match at {
        At::Before(moment) => moment,
        At::End => Moment {
            time: length.saturating_add(1),
            op: None,
        },
    };
    let mut search = Search {
        steps: Steps::before(run, log, wanted)?,
        run,
        range,
        moment,
        bytes: vec![Byte::default(); range.length as usize],
        held: None,
    };
    search.steps.follower.skip_to(moment.time)?;
    let first = search.steps.follower.machine.time();
    search.follow()?;
    let (held, size) = match search.held.take() {
        Some(held) => held,
        None => search.contents()?,
    };
    if let Some(checkpoints) = run.checkpoints
        && first > 0
    {
        if let Some(values) = values {
            let log = checkpoints.log().map_err(StepsError::from)?;
            let writes = LastWrites::new(run, log, checkpoints, Some(values))?;
            search.told(writes, first)?;
        }
        search.last_writes(checkpoints, first)?;
    }
    Ok(MemoryAnswer {
        bytes: held,
        size,
        parts: parts(&search.bytes, range),
    })
}

/// Looking for what is known of some bytes.
struct Search<'a, S: Segments> {
    steps: Steps<'a, S>,
    run: Run<'a, S>,
    range: Range,
    /// When.
    moment: Moment,
    bytes: Vec<Byte>,
    /// What the bytes held, and how many the memory had.
    held: Option<(Vec<u8>, u64)>,
}

impl<'a, S: Segments> Search<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    /// Follows the run from where it is until all is known that comes after the time.
    fn follow(&mut self) -> Result<(), StepsError<S::Error>> {
        // When it is to be looked which interval is the next one to follow.
        let mut until = 0;
        loop {
            let now = self.steps.follower.machine.time();
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
            let Some(visit) = self.steps.follower.advance()? else {
                return Ok(());
            };
            if self.held.is_none() && self.moment.time <= visit.last() {
                self.execute_at(visit)?;
            } else {
                match self.steps.execute(visit) {
                    // Of a recording that was cut off, nothing is known of what came next.
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

    /// Goes to the first interval, from this one on, in which something may happen to bytes of which it is not known yet. Whether there is none.
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
                    byte.read_next.is_none()
                } else {
                    byte.written_next.is_none()
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
            // Behind the last checkpoint nothing is known.
            None => {
                let last = checkpoints.intervals().saturating_sub(1);
                if last > here {
                    self.steps.follower.go_to(checkpoints, last)?;
                }
            }
        }
        Ok(false)
    }

    /// Executes the node in which the time is, and looks at the bytes when it comes.
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

    /// Finds those who wrote bytes last of which nothing was seen to write them from `first` on, as far as the index and values tell.
    fn told(
        &mut self,
        mut writes: LastWrites<'a, '_, S>,
        first: u64,
    ) -> Result<(), LastWriteError<S::Error>> {
        let missing = self.bytes.iter().filter(|byte| byte.written.is_none());
        // Of more it is faster to follow.
        if missing.count() > FEW {
            return Ok(());
        }
        let mut known: Vec<(LastWrite, Rc<Step>)> = Vec::new();
        for (byte, address) in self.bytes.iter_mut().zip(self.range.address..) {
            if byte.written.is_some() {
                continue;
            }
            let Some(write) = writes.before(self.range.memory, address, first + 1)? else {
                continue;
            };
            if let Some((_, step)) = known.iter().find(|(other, _)| *other == write) {
                byte.written = Some(Rc::clone(step));
            } else if let Some(step) = writes.step(&write)? {
                let step = Rc::new(step);
                known.push((write, Rc::clone(&step)));
                byte.written = Some(step);
            }
        }
        Ok(())
    }

    /// Goes back to the intervals that wrote bytes last of which nothing was seen to write them from `first` on.
    fn last_writes(
        &mut self,
        checkpoints: &'a FileCheckpoints,
        first: u64,
    ) -> Result<(), StepsError<S::Error>> {
        let Some(before) = checkpoints.interval_at(first + 1)? else {
            return Ok(());
        };
        // By interval: the last time, and the bytes.
        let mut intervals: BTreeMap<u64, (u64, Vec<usize>)> = BTreeMap::new();
        for at in 0..self.bytes.len() {
            if self.bytes[at].written.is_some() {
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
                self.bytes[at].written = found[at].written.take();
            }
        }
        Ok(())
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

    fn contents(&mut self) -> Result<(Vec<u8>, u64), StepsError<S::Error>> {
        self.need()?;
        contents(&self.steps.follower.machine.state, self.range)
    }
}

impl Byte {
    fn is_known(&self) -> bool {
        self.read_next.is_some() && self.written_next.is_some()
    }
}

/// Whether a step comes before a moment.
fn is_before(step: &Step, moment: Moment) -> bool {
    let within = || step.op.zip(moment.op).is_some_and(|(op, at)| op < at);
    step.time < moment.time || step.time == moment.time && within()
}

/// Notes what a step did to the bytes of a range, before the moment that is asked about or after it.
fn note(bytes: &mut [Byte], range: Range, step: Step, before: bool) {
    let (read, written) = (step.what.read(), step.what.written());
    let step = Rc::new(step);
    if let Some(written) = written {
        for byte in touched(bytes, range, written) {
            if before {
                byte.written = Some(Rc::clone(&step));
            } else if byte.written_next.is_none() {
                byte.written_next = Some(Rc::clone(&step));
            }
        }
    }
    if let Some(read) = read.filter(|_| !before) {
        for byte in touched(bytes, range, read) {
            if byte.read_next.is_none() {
                byte.read_next = Some(Rc::clone(&step));
            }
        }
    }
}

/// Those of the bytes of a range that another one has, too.
fn touched(bytes: &mut [Byte], range: Range, by: Range) -> &mut [Byte] {
    if !overlap(range, by) {
        return &mut [];
    }
    let first = by.address.saturating_sub(range.address);
    let last = by.address.saturating_add(by.length - 1) - range.address;
    let end = last.saturating_add(1).min(range.length);
    &mut bytes[first as usize..end as usize]
}

/// The bytes of a range, and how many the memory has.
fn contents<E: std::error::Error + 'static>(
    state: &State,
    range: Range,
) -> Result<(Vec<u8>, u64), StepsError<E>> {
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
    Ok((memory.bytes[place].to_vec(), size))
}

/// Bytes next to each other of which the same is known, as parts.
fn parts(bytes: &[Byte], range: Range) -> Vec<MemoryPart> {
    let same = |a: &Option<Rc<Step>>, b: &Option<Rc<Step>>| match (a, b) {
        (Some(a), Some(b)) => Rc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    };
    let groups = bytes.chunk_by(|a, b| {
        same(&a.written, &b.written)
            && same(&a.read_next, &b.read_next)
            && same(&a.written_next, &b.written_next)
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
