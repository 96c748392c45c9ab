//! Which lines of memory are written in each stretch of a run, from one snapshot to the next, by re-executing it.
//!
//! The rewritten module marks each line that it stores to, in a memory of ours, and calls us at the polls at which the snapshots were made. There the marks are taken, written down and removed.

use afterimage_machine::{LINE, WrittenLinesBuilder};
use afterimage_rewrite::{
    CLOCK_AT, Inner, MEMORY_EXPORT, Probes, SNAPSHOT_AT, SNAPSHOT_EXPORT, Snapshots, TAKE_SNAPSHOT,
    inner_export,
};
use afterimage_trace::{Ending, MAX_MEMORY, TraceWriter};
use wasmtime::{AsContextMut, Caller, Func, Instance, Memory, Ref, Store, StoreContextMut};

use crate::RecordError;
use crate::lens::{Job, Repeat};
use crate::paths::RecordedRun;
use crate::snapshots::{word, write};

/// Adds to a file which lines of memory a run writes in each stretch, by re-executing it. A stretch ends, and the next one begins, when the stop clock shows one of these numbers, which ascend, where
/// a snapshot was made: see [`Taken::clock`](crate::Taken::clock). The caller commits.
///
/// # Errors
/// If the recording cannot be repeated exactly, the clock does not show a number where snapshots are made, the program's memories are too many for marks, or the file cannot be written.
pub fn build_written(
    run: &RecordedRun<'_>,
    clocks: &[u64],
    out: &TraceWriter,
) -> Result<(), RecordError> {
    let job = Job::open(run.file, run.bytes, run.program, run.cache, run.progress)?;
    // A stack overflow may take several attempts to find: only one is written down.
    let skip = match job.end.ending {
        Ending::StackOverflow => job.repeat(None)?.0.skip,
        _ => 0,
    };
    let repeat = Repeat {
        probes: Probes::Written(MAX_MEMORY),
        skip,
        snapshots: Some(Snapshots::Unseen),
    };
    let mut lines = Some(WrittenLinesBuilder::new(out)?);
    job.repeat_with(repeat, &mut |job, engine, rewritten, stop| {
        let lines = lines.take().ok_or(RecordError::OverflowNotFound)?;
        let marking = Marking::new(clocks, lines);
        job.replay(engine, rewritten, stop, None, None, Some(Box::new(marking)))
    })?;
    Ok(())
}

/// A store's data of a run whose marks may be taken.
pub(crate) trait HasMarks {
    /// What takes them.
    fn marks(&mut self) -> &mut Option<Box<Marking>>;
}

/// What takes the marks of one instance.
pub(crate) struct Marking {
    lines: WrittenLinesBuilder,
    /// When stretches end, the next one last.
    clocks: Vec<u64>,
    probes: Option<Memory>,
    /// The program's memories, and where the marks of each begin.
    memories: Vec<(Memory, usize)>,
    /// What the host has written, which nothing marks.
    wrote: Vec<(u32, u64, u64)>,
}

impl Marking {
    fn new(clocks: &[u64], lines: WrittenLinesBuilder) -> Self {
        Self {
            lines,
            clocks: clocks.iter().rev().copied().collect(),
            probes: None,
            memories: Vec::new(),
            wrote: Vec::new(),
        }
    }

    /// Connects an instance, before it is run.
    pub(crate) fn connect<T: HasMarks + 'static>(
        store: &mut Store<T>,
        instance: &Instance,
        starts: &[u64],
    ) -> Result<(), RecordError> {
        if store.data_mut().marks().is_none() {
            return Ok(());
        }
        let table = instance.get_table(&mut *store, SNAPSHOT_EXPORT);
        let probes = instance.get_memory(&mut *store, MEMORY_EXPORT);
        let (Some(table), Some(probes)) = (table, probes) else {
            return Err(RecordError::NoCounters);
        };
        let take = Func::wrap(&mut *store, |caller: Caller<'_, T>| Ok(take_marks(caller)?));
        let set = table.set(&mut *store, TAKE_SNAPSHOT, Ref::Func(Some(take)));
        set.map_err(|_| RecordError::NoCounters)?;
        let mut memories = Vec::with_capacity(starts.len());
        for (memory, start) in (0..).zip(starts) {
            let memory = instance.get_memory(&mut *store, &inner_export(Inner::Memory, memory));
            memories.push((memory.ok_or(RecordError::NoMemory)?, *start as usize));
        }
        let Some(own) = store.data_mut().marks() else {
            return Ok(());
        };
        (own.probes, own.memories) = (Some(probes), memories);
        let next = own.next();
        write(probes, store, SNAPSHOT_AT, next)
    }

    /// When the stretch ends.
    fn next(&self) -> u64 {
        self.clocks.last().copied().unwrap_or(u64::MAX)
    }

    /// Tells of what the host writes.
    pub(crate) fn wrote(&mut self, memory: u32, address: u64, length: u64) {
        self.wrote.push((memory, address, length));
    }

    /// Marks what the host has written.
    pub(crate) fn host_wrote<T: HasMarks>(
        mut store: StoreContextMut<'_, T>,
    ) -> Result<(), RecordError> {
        let Some(mut own) = store
            .data_mut()
            .marks()
            .take_if(|own| !own.wrote.is_empty())
        else {
            return Ok(());
        };
        let probes = own.probes.ok_or(RecordError::NoCounters)?;
        let marks = probes.data_mut(&mut store);
        for (memory, address, length) in own.wrote.drain(..) {
            let Some(last) = length.checked_sub(1) else {
                continue;
            };
            let start = own.memories.get(memory as usize).map(|memory| memory.1);
            let start = start.ok_or(RecordError::NoMemory)?;
            let line = |address: u64| start + (address / LINE) as usize;
            let lines = marks.get_mut(line(address)..=line(address + last));
            lines.ok_or(RecordError::NoMemory)?.fill(1);
        }
        *store.data_mut().marks() = Some(own);
        Ok(())
    }

    /// Takes the marks of the last stretch.
    pub(crate) fn finish<T: HasMarks>(store: &mut Store<T>) -> Result<(), RecordError> {
        let Some(mut own) = store.data_mut().marks().take() else {
            return Ok(());
        };
        if let Some(missed) = own.clocks.last() {
            return Err(RecordError::NoMoment(*missed));
        }
        own.take(store.as_context_mut())?;
        Ok(own.lines.finish()?)
    }

    /// Takes the marks and removes them. O(lines of all memories).
    fn take<T>(&mut self, mut store: StoreContextMut<'_, T>) -> Result<(), RecordError> {
        let probes = self.probes.ok_or(RecordError::NoCounters)?;
        for (number, (memory, start)) in (0..).zip(&self.memories) {
            let lines = memory.data_size(&store) / LINE as usize;
            let marks = probes.data_mut(&mut store).get_mut(*start..start + lines);
            let marks = marks.ok_or(RecordError::NoMemory)?;
            for (word, marks) in marks.chunks_mut(64).enumerate() {
                if marks.iter().fold(0, |any, mark| any | mark) == 0 {
                    continue;
                }
                let bits = (0..).zip(&*marks);
                let bits = bits.fold(0, |bits, (i, mark)| bits | u64::from(*mark) << i);
                self.lines.lines().add(number, word, bits);
                marks.fill(0);
            }
        }
        Ok(())
    }
}

/// Ends a stretch.
fn take_marks<T: HasMarks>(mut caller: Caller<'_, T>) -> Result<(), RecordError> {
    let Some(mut own) = caller.data_mut().marks().take() else {
        return Ok(());
    };
    let probes = own.probes.ok_or(RecordError::NoCounters)?;
    let clock = word(probes, &mut caller, CLOCK_AT)?;
    match own.clocks.pop() {
        Some(expected) if expected == clock => {}
        expected => return Err(RecordError::NoMoment(expected.unwrap_or(clock))),
    }
    own.take(caller.as_context_mut())?;
    own.lines.next(clock)?;
    let next = own.next();
    *caller.data_mut().marks() = Some(own);
    write(probes, &mut caller, SNAPSHOT_AT, next)
}
