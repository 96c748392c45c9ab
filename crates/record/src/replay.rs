//! Repeats a run from the log, with any instrumentation and without a host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use afterimage_ids::{FuncId, ImportId};
use afterimage_program::Program;
use afterimage_rewrite::{
    ARM_CLOCK_AT, ARM_SKIP_AT, LIMIT_AT, MEMORY_EXPORT, Rewritten, START_EXPORT,
};
use afterimage_trace::{
    End, Event, HostStop, Interrupter, LogPlace, LogReader, RawValue, TraceFile,
};
use wasmtime::{AsContextMut, Engine, Func, Instance, Memory, Module, ResourceLimiter, Store, Val};
use wasmtime_wasi::I32Exit;

use crate::ending::{Outcome, classify};
use crate::engine::{REPLAY_STACK, on_guest_thread};
use crate::live::Stopped;
use crate::room::{Room, was_not_asked};
use crate::snapshots::{Capturing, HasSnapshots};
use crate::values::{argument, raw, same_type, val, zero};
use crate::watch::Watching;
use crate::whole_path::{HasPaths, PathHost, say_number};
use crate::{Cache, Interrupt, RecordError};

/// The interval at which a waiting thread checks whether to continue.
pub(crate) const ASK: Duration = Duration::from_millis(20);

/// The point at which to stop a re-execution that does not end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Stop nowhere.
    Never,
    /// Stop at this poll of the stop clock.
    AtPoll(u64),
    /// Stop at an entry of the armed function when the clock has this reading, after skipping
    /// `skip` entries.
    AtEntry { clock: u64, skip: u64 },
}

/// The result of a re-execution.
pub(crate) struct Replayed {
    pub outcome: Outcome,
    /// The contents of the probes' memory.
    pub memory: Vec<u8>,
    /// The number of calls to each import.
    pub calls: Vec<u64>,
    /// The functions that the host called, in order.
    pub entered: Vec<FuncId>,
    /// The collector of snapshots, including the activations that have not yet captured themselves.
    pub snapshots: Option<Capturing>,
    /// The collector of the bytes that the run writes in a region.
    pub watching: Option<Box<Watching>>,
}

/// The observers of a re-execution.
#[derive(Default)]
pub(crate) struct Observers {
    pub paths: Option<PathHost>,
    pub snapshots: Option<Capturing>,
    pub watching: Option<Box<Watching>>,
}

/// A callback that receives the progress of a re-execution from time to time: see [`progress_end`].
pub type Progress = Arc<dyn Fn(u64) + Send + Sync>;

/// The data of the store in a re-execution.
pub(crate) struct Host {
    log: LogReader,
    position: u64,
    memory: Option<Memory>,
    calls: Vec<u64>,
    entered: Vec<FuncId>,
    /// Receives the number of events, unless the progress is counted in polls.
    progress: Option<Progress>,
    room: Room,
    paths: Option<PathHost>,
    snapshots: Option<Capturing>,
    pub(crate) watching: Option<Box<Watching>>,
}

impl HasSnapshots for Host {
    fn snapshots(&mut self) -> Option<&mut Capturing> {
        self.snapshots.as_mut()
    }

    fn place(&self) -> LogPlace {
        self.log.place()
    }
}

impl HasPaths for Host {
    fn paths(&mut self) -> Option<&mut PathHost> {
        self.paths.as_mut()
    }
}

impl Host {
    fn next(&mut self) -> Result<Option<Event>, RecordError> {
        let event = self.log.next().transpose()?;
        self.position += 1;
        if let Some(progress) = &self.progress
            && self.position.is_multiple_of(1024)
        {
            progress(self.position);
        }
        Ok(event)
    }

    fn diverged(&self, what: impl Into<String>) -> RecordError {
        RecordError::Diverged {
            event: self.position.saturating_sub(1),
            what: what.into(),
        }
    }

    fn growth(&mut self, memory: bool, from: usize, to: usize) -> Result<bool, RecordError> {
        match self.next()? {
            Some(Event::MemoryGrow { granted: true }) if memory => {
                if self.room.memory(from, to) {
                    Ok(true)
                } else {
                    Err(self.diverged("the guest's memories grow beyond the limit"))
                }
            }
            Some(Event::TableGrow { granted: true }) if !memory => {
                if self.room.table(from, to) {
                    Ok(true)
                } else {
                    Err(self.diverged("the guest's tables grow beyond the limit"))
                }
            }
            Some(Event::MemoryGrow { granted: false }) if memory => Ok(false),
            Some(Event::TableGrow { granted: false }) if !memory => Ok(false),
            other => Err(self.diverged(format!(
                "the guest grows a memory or table; the recording has {}",
                name(other.as_ref())
            ))),
        }
    }
}

impl ResourceLimiter for Host {
    fn memory_growing(
        &mut self,
        from: usize,
        to: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.growth(true, from, to)?)
    }

    /// Reports a divergence, because this growth did not fail in the recording.
    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        let what = format!("a memory of the guest cannot grow as in the recording: {error}");
        Err(self.diverged(what).into())
    }

    fn table_growing(
        &mut self,
        from: usize,
        to: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.growth(false, from, to)?)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        if was_not_asked(&error) && !self.growth(false, 0, 0)? {
            return Ok(());
        }
        let what = format!("a table of the guest cannot grow as in the recording: {error}");
        Err(self.diverged(what).into())
    }
}

fn name(event: Option<&Event>) -> String {
    match event {
        None => "no more events".to_owned(),
        Some(Event::Enter { function, .. }) => format!("a call to function {}", function.as_u32()),
        Some(Event::Leave { .. }) => "a return to the host".to_owned(),
        Some(Event::HostCall { import, .. }) => format!("a call to import {}", import.as_u32()),
        Some(Event::HostStop { import, .. }) => {
            format!("a last call to import {}", import.as_u32())
        }
        Some(Event::MemoryGrow { .. }) => "a memory growth".to_owned(),
        Some(Event::TableGrow { .. }) => "a table growth".to_owned(),
    }
}

/// A recording to re-execute.
pub(crate) struct Source<'a> {
    pub cache: &'a Cache,
    pub program: &'a Program,
    pub file: &'a TraceFile,
    /// Receives the number of repeated events.
    pub progress: Option<&'a Progress>,
    /// A handle that can stop the re-execution during compilation and, with the stop clock, at each
    /// poll.
    pub interrupt: Option<&'a Interrupt>,
}

/// Runs the rewritten module from the log.
pub(crate) fn replay(
    engine: &Engine,
    source: &Source<'_>,
    rewritten: &Rewritten,
    stop: Stop,
    observers: Observers,
) -> Result<Replayed, RecordError> {
    let Source {
        cache,
        program,
        file,
        progress,
        interrupt,
    } = *source;
    let module = match interrupt {
        Some(interrupt) => compile_unless(interrupt, cache, engine, &rewritten.module)?,
        None => cache.compile(engine, &rewritten.module)?,
    };
    let host = Host {
        log: file.log()?,
        position: 0,
        memory: None,
        calls: vec![0; program.imports.len()],
        entered: Vec::new(),
        progress: progress.cloned(),
        room: Room::of_module(&file.module()?)?,
        paths: observers.paths,
        snapshots: observers.snapshots,
        watching: observers.watching,
    };
    let mut store = Store::new(engine, host);
    let imports = imports(&mut store, &module);
    let instance =
        Instance::new(&mut store, &module, &imports).map_err(RecordError::instantiate)?;
    store.data_mut().memory = instance.get_memory(&mut store, "memory");
    store.limiter(|host| host);
    let probes = instance
        .get_memory(&mut store, MEMORY_EXPORT)
        .ok_or(RecordError::NoMemory)?;
    let mut set = |address: u64, value: u64| {
        probes
            .write(&mut store, address as usize, &value.to_le_bytes())
            .map_err(|e| RecordError::Instantiate(e.to_string()))
    };
    match stop {
        Stop::Never => {}
        Stop::AtPoll(poll) => set(LIMIT_AT, poll)?,
        Stop::AtEntry { clock, skip } => {
            set(ARM_CLOCK_AT, clock)?;
            set(ARM_SKIP_AT, skip)?;
        }
    }
    let address = probes.data_ptr(&store) as usize;
    let _guard = interrupt.map(|interrupt| interrupt.guard(address));
    // This is dropped before the store, because the consumer may be reading the store's memory
    // until then.
    let _quiet = PathHost::connect(&mut store, &instance, &rewritten.layout)?;
    Capturing::connect(&mut store, &instance)?;
    Watching::connect(&mut store, &instance)?;
    let outcome = run(&mut store, &instance, program)?;
    Capturing::finish(&mut store)?;
    PathHost::finish(&mut store)?;
    let memory = probes.data(&store)[..rewritten.layout.buffer() as usize].to_vec();
    let host = store.data_mut();
    Ok(Replayed {
        outcome,
        memory,
        calls: std::mem::take(&mut host.calls),
        entered: std::mem::take(&mut host.entered),
        snapshots: host.snapshots.take(),
        watching: host.watching.take(),
    })
}

/// Returns the progress of a complete re-execution that can be cancelled: the number of polls of
/// the stop clock or, without a clock, of events. Returns `None` if there are too few events to
/// show progress.
pub fn progress_end(end: &End) -> Option<u64> {
    let events = || Some(end.events).filter(|events| *events >= TELLING);
    end.clock.or_else(events)
}

/// The minimum number of events for which progress is reported.
const TELLING: u64 = 1000;

/// Runs `work` on a guest thread, and stops its re-execution once `cancel` is set. `polls` receives
/// the number of polls of the stop clock.
pub(crate) fn unless_cancelled<R: Send>(
    cancel: Option<&AtomicBool>,
    polls: Option<&Progress>,
    work: impl FnOnce(Option<&Interrupt>) -> Result<R, RecordError> + Send,
) -> Result<R, RecordError> {
    let Some(cancel) = cancel else {
        return on_guest_thread(REPLAY_STACK, || work(None));
    };
    if cancel.load(Ordering::SeqCst) {
        return Err(RecordError::Interrupted);
    }
    let interrupt = &Interrupt::new();
    let (ends, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let watch = move || {
            // The guest's thread sends nothing. It drops its end of the channel when it ends.
            while ended.recv_timeout(ASK) == Err(RecvTimeoutError::Timeout) {
                if cancel.load(Ordering::SeqCst) {
                    interrupt.stop(Interrupter::CtrlC);
                }
                if let (Some(polls), Some(clock)) = (polls, interrupt.clock()) {
                    polls(clock);
                }
            }
        };
        let watcher = std::thread::Builder::new().spawn_scoped(scope, watch);
        watcher.map_err(RecordError::Thread)?;
        on_guest_thread(REPLAY_STACK, || {
            let _ends = ends;
            let done = work(Some(interrupt));
            match interrupt.requested() {
                None => done,
                Some(_) => Err(RecordError::Interrupted),
            }
        })
    })
}

/// Compiles a module on another thread, because the compiler cannot be interrupted. If a stop is
/// requested, the thread is abandoned.
pub(crate) fn compile_unless(
    interrupt: &Interrupt,
    cache: &Cache,
    engine: &Engine,
    bytes: &[u8],
) -> Result<Module, RecordError> {
    let (send, compiled) = mpsc::channel();
    let (cache, engine, bytes) = (cache.clone(), engine.clone(), bytes.to_vec());
    std::thread::Builder::new()
        .stack_size(REPLAY_STACK)
        .spawn(move || {
            // The receiver may be gone.
            let _ = send.send(cache.compile(&engine, &bytes));
        })
        .map_err(RecordError::Thread)?;
    loop {
        match compiled.recv_timeout(ASK) {
            Ok(module) => return module,
            Err(RecvTimeoutError::Timeout) if interrupt.requested().is_none() => {}
            Err(RecvTimeoutError::Timeout) => return Err(RecordError::Interrupted),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(RecordError::Compile("its compiler ended early".to_owned()));
            }
        }
    }
}

/// Repeats the calls that the host made.
fn run(
    store: &mut Store<Host>,
    instance: &Instance,
    program: &Program,
) -> Result<Outcome, RecordError> {
    loop {
        let (function, args) = match store.data_mut().next()? {
            None => return Ok(Outcome::Returned),
            Some(Event::Enter { function, args }) => (function, args),
            Some(other) => {
                let what = format!(
                    "the guest is not running; the recording has {}",
                    name(Some(&other))
                );
                return Err(store.data().diverged(what));
            }
        };
        store.data_mut().entered.push(function);
        if let Some(paths) = &store.data().paths {
            paths.host_call(function)?;
        }
        let export = if program.start == Some(function) && store.data().entered.len() == 1 {
            Some(START_EXPORT)
        } else {
            program
                .exports
                .iter()
                .find(|e| e.1 == function)
                .map(|e| e.0.as_str())
        };
        let callee = export.and_then(|e| instance.get_func(&mut *store, e));
        let Some(callee) = callee else {
            return Err(store
                .data()
                .diverged(format!("function {} cannot be called", function.as_u32())));
        };
        let types = callee.ty(&*store);
        if types.params().len() != args.len() {
            return Err(store
                .data()
                .diverged("a call with a different number of arguments"));
        }
        let params = args.iter().zip(types.params());
        let params = Vec::from_iter(params.map(|(&a, ty)| argument(a, &ty)));
        let mut results: Vec<Val> = callee.ty(&*store).results().map(|ty| zero(&ty)).collect();
        if let Err(error) = callee.call(&mut *store, &params, &mut results) {
            return classify(error, program, function);
        }
        if (store.data().snapshots.as_ref()).is_some_and(Capturing::has_left) {
            return Ok(Outcome::Returned);
        }
        let results: Vec<RawValue> = results.iter().map(raw).collect();
        match store.data_mut().next()? {
            Some(Event::Leave { results: recorded }) if recorded == results => {}
            other => {
                let what = format!(
                    "the guest returned {results:?}; the recording has {}",
                    name(other.as_ref())
                );
                return Err(store.data().diverged(what));
            }
        }
    }
}

/// Builds imports that replay the log.
fn imports(store: &mut Store<Host>, module: &Module) -> Vec<wasmtime::Extern> {
    let mut imports = Vec::new();
    for (i, import) in module.imports().enumerate() {
        let wasmtime::ExternType::Func(ty) = import.ty() else {
            continue;
        };
        let id = ImportId::from_u32(i as u32);
        // The engine passes result slots that do not yet contain values of their types.
        let zeros: Vec<Val> = ty.results().map(|ty| zero(&ty)).collect();
        let function = Func::new(&mut *store, ty, move |mut caller, params, results| {
            results.clone_from_slice(&zeros);
            say_number(caller.as_context_mut(), FuncId::from_u32(i as u32))?;
            let memory = caller.data().memory;
            match memory {
                Some(memory) => {
                    let (bytes, host) = memory.data_and_store_mut(&mut caller);
                    repeat(host, bytes, id, params, results)?;
                }
                None => repeat(caller.data_mut(), &mut [], id, params, results)?,
            }
            Ok(Capturing::host_wrote(caller.as_context_mut())?)
        });
        imports.push(function.into());
    }
    imports
}

fn repeat(
    host: &mut Host,
    bytes: &mut [u8],
    id: ImportId,
    params: &[Val],
    results: &mut [Val],
) -> wasmtime::Result<()> {
    host.calls[id.as_u32() as usize] += 1;
    let event = host.next()?;
    let (import, args, reads, digest) = match &event {
        Some(Event::HostCall {
            import,
            args,
            reads,
            read_digest,
            ..
        })
        | Some(Event::HostStop {
            import,
            args,
            reads,
            read_digest,
            ..
        }) => (*import, args, reads, *read_digest),
        other => {
            let what = format!(
                "the guest calls import {}; the recording has {}",
                id.as_u32(),
                name(other.as_ref())
            );
            return Err(host.diverged(what).into());
        }
    };
    let same = import == id
        && args.len() == params.len()
        && args.iter().zip(params).all(|(a, p)| *a == raw(p));
    if !same {
        let what = format!(
            "the guest calls import {} with {params:?}; the recording has import {} with {args:?}",
            id.as_u32(),
            import.as_u32()
        );
        return Err(host.diverged(what).into());
    }
    let mut hasher = crc32fast::Hasher::new();
    for read in reads {
        let range = range(read.address, read.length).and_then(|r| bytes.get(r));
        hasher.update(
            range.ok_or_else(|| host.diverged("the host read outside the guest's memory"))?,
        );
    }
    if hasher.finalize() != digest {
        return Err(host
            .diverged("the guest passed different bytes to the host")
            .into());
    }
    match event {
        Some(Event::HostCall {
            writes,
            results: recorded,
            ..
        }) => {
            for write in &writes {
                let target =
                    range(write.address, write.bytes.len() as u64).and_then(|r| bytes.get_mut(r));
                let target = target
                    .ok_or_else(|| host.diverged("the host wrote outside the guest's memory"))?;
                target.copy_from_slice(&write.bytes);
                let length = write.bytes.len() as u64;
                if let Some(snapshots) = &mut host.snapshots {
                    snapshots.wrote(write.memory, write.address, length);
                }
                if let Some(watching) = &mut host.watching {
                    watching.wrote(write.memory, write.address, length);
                }
            }
            let fits = recorded.len() == results.len()
                && recorded
                    .iter()
                    .zip(results.iter())
                    .all(|(r, slot)| same_type(*r, slot));
            if !fits {
                return Err(host
                    .diverged("a host call has results of other types")
                    .into());
            }
            for (slot, value) in results.iter_mut().zip(recorded) {
                *slot = val(value);
            }
            Ok(())
        }
        Some(Event::HostStop {
            outcome: HostStop::Exit(code),
            ..
        }) => Err(I32Exit(code).into()),
        Some(Event::HostStop {
            outcome: HostStop::Interrupted,
            ..
        }) => Err(Stopped.into()),
        Some(Event::HostStop {
            outcome: HostStop::Error(message),
            ..
        }) => Err(wasmtime::Error::msg(message)),
        _ => Ok(()),
    }
}

fn range(address: u64, length: u64) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(address).ok()?;
    Some(start..start.checked_add(usize::try_from(length).ok()?)?)
}
