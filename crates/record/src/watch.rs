//! Finds which bytes of a small region of memory a run writes, stretch by stretch. The search
//! re-executes the run with little instrumentation, so it takes little longer than the program
//! alone.

use std::sync::Arc;

use afterimage_machine::{WATCHED, WatchedBytes};
use afterimage_rewrite::{
    CLOCK_AT, MEMORY_EXPORT, Marking, Options, Probes, Rewritten, SNAPSHOT_AT, SNAPSHOT_EXPORT,
    Snapshots, TAKE_SNAPSHOT, WatchedAt, rewrite,
};
use wasmtime::{Caller, Func, Instance, Memory, Ref, Store};

use crate::RecordError;
use crate::deep::Treatment;
use crate::engine::{REPLAY_STACK, Settings, engine};
use crate::live::Stopped;
use crate::replay::{Host, Observers, Progress, Source, Stop, replay, unless_cancelled};
use crate::snapshots::{word, write};
use crate::whole_path::RecordedRun;

/// Finds the bytes written in each of the first stretches of a run, in the region that contains an
/// address. `ends` are the stop clock's readings at the ends of these stretches, where
/// [`build_snapshots`](crate::build_snapshots) cut the path. The rest of the run is not executed.
/// Progress is reported in stretches.
///
/// # Errors
/// Returns an error if the recording cannot be repeated exactly, or its path was not cut at `ends`.
pub fn watch(
    run: &RecordedRun<'_>,
    ends: &[u64],
    memory: u32,
    address: u64,
) -> Result<WatchedBytes, RecordError> {
    let program = run.program;
    let written = WatchedBytes::new(memory, WatchedBytes::region(address));
    let Some(&first) = ends.first() else {
        return Ok(written);
    };
    let end = run.file.end()?.ok_or(RecordError::Cut)?;
    // If `ends` were wrong, a run that was stopped from outside would never end by itself.
    let stop = end.clock.map_or(Stop::Never, Stop::AtPoll);
    let Treatment { large, optimised } = Treatment::of(program);
    let options = Options {
        clock: true,
        large,
        export_start: true,
        snapshots: Some(Snapshots::Cuts),
        marks: Some(Marking::Bytes),
        ..Options::default()
    };
    let rewritten = rewrite(run.bytes, program, Probes::None, &options)?;
    let engine = engine(Settings {
        optimised,
        ..Settings::with_stack(REPLAY_STACK)
    })?;
    let watching = Watching {
        at: watched_at(&rewritten, memory)?,
        next: first,
        ends: Vec::from(&ends[1..]).into_iter(),
        by_host: [0; WATCHED as usize],
        memory,
        first: WatchedBytes::region(address),
        written,
        progress: Arc::clone(run.progress),
        probes: None,
    };
    let observers = Observers {
        watching: Some(Box::new(watching)),
        ..Observers::default()
    };
    let replayed = unless_cancelled(run.cancel, None, |interrupt| {
        let source = Source {
            cache: run.cache,
            program,
            file: run.file,
            progress: None,
            interrupt,
        };
        replay(&engine, &source, &rewritten, stop, observers)
    })?;
    let watching = replayed.watching.ok_or(RecordError::NoCounters)?;
    if watching.written.stretches() == ends.len() {
        Ok(watching.written)
    } else {
        Err(cut_elsewhere())
    }
}

fn watched_at(rewritten: &Rewritten, memory: u32) -> Result<WatchedAt, RecordError> {
    let start = rewritten.marks.get(memory as usize).copied();
    start.map(WatchedAt::new).ok_or(RecordError::NoMemory)
}

fn cut_elsewhere() -> RecordError {
    RecordError::Diverged {
        event: 0,
        what: "it does not reach a moment that the earlier re-execution reached".to_owned(),
    }
}

/// Records which bytes of the region a run writes.
pub(crate) struct Watching {
    at: WatchedAt,
    /// The stop clock's reading at the end of the current stretch. `ends` has the readings at the
    /// ends of later stretches.
    next: u64,
    ends: std::vec::IntoIter<u64>,
    /// For each byte, whether the host wrote it in this stretch.
    by_host: [u8; WATCHED as usize],
    memory: u32,
    first: u64,
    written: WatchedBytes,
    progress: Progress,
    probes: Option<Memory>,
}

impl Watching {
    /// Records a range that the host writes.
    pub(crate) fn wrote(&mut self, memory: u32, address: u64, length: u64) {
        if memory != self.memory {
            return;
        }
        let within = |address: u64| address.saturating_sub(self.first).min(WATCHED) as usize;
        let (begin, end) = (within(address), within(address.saturating_add(length)));
        self.by_host[begin..end].fill(1);
    }

    /// Connects the probes of an instance that has not yet run.
    pub(crate) fn connect(store: &mut Store<Host>, instance: &Instance) -> Result<(), RecordError> {
        let table = instance.get_table(&mut *store, SNAPSHOT_EXPORT);
        let probes = instance.get_memory(&mut *store, MEMORY_EXPORT);
        let Some(own) = &mut store.data_mut().watching else {
            return Ok(());
        };
        let (Some(table), Some(probes)) = (table, probes) else {
            return Err(RecordError::NoCounters);
        };
        own.probes = Some(probes);
        let words = own.at.words(own.first);
        for (address, value) in words.into_iter().chain([(SNAPSHOT_AT, own.next)]) {
            write(probes, store, address, value)?;
        }
        let cut = Func::wrap(&mut *store, |caller: Caller<'_, Host>| cut(caller));
        let set = table.set(&mut *store, TAKE_SNAPSHOT, Ref::Func(Some(cut)));
        set.map_err(|_| RecordError::NoCounters)
    }

    /// Adds the stretch that ends here, and returns whether more stretches follow.
    fn end_stretch(&mut self, marks: &mut [u8]) -> bool {
        for (byte, mark) in self.by_host.iter_mut().zip(&*marks) {
            *byte |= mark;
        }
        self.written.add(&self.by_host);
        (self.progress)(self.written.stretches() as u64);
        self.by_host.fill(0);
        marks.fill(0);
        let next = self.ends.next();
        self.next = next.unwrap_or(u64::MAX);
        next.is_some()
    }
}

/// Handles the end of a stretch.
fn cut(mut caller: Caller<'_, Host>) -> wasmtime::Result<()> {
    let own = caller.data().watching.as_ref();
    let Some((own, probes)) = own.and_then(|own| Some((own, own.probes?))) else {
        return Ok(());
    };
    let (next, at) = (own.next, own.at.marks() as usize);
    if word(probes, &mut caller, CLOCK_AT)? != next {
        return Err(cut_elsewhere().into());
    }
    let (bytes, host) = probes.data_and_store_mut(&mut caller);
    let marks = bytes.get_mut(at..at + WATCHED as usize);
    let (Some(own), Some(marks)) = (&mut host.watching, marks) else {
        return Err(RecordError::NoCounters.into());
    };
    if !own.end_stretch(marks) {
        return Err(Stopped.into());
    }
    let next = own.next;
    Ok(write(probes, &mut caller, SNAPSHOT_AT, next)?)
}
